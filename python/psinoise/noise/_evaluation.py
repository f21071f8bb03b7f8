"""Densities, distribution functions and quantiles, as every noise law has them."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise.noise import _checks

__all__ = ["Evaluated"]

Numbers = NDArray[Any]
_Fill = Callable[[Numbers, Numbers, int], None]


class Evaluated(ABC):
    """Points are checked and results made room for here; subclasses write them."""

    def pdf(self, x: ArrayLike, *, out: Any = None, threads: int | None = None) -> Any:
        """Density at ``x``.

        Relative error below 5e-14 wherever the result is a normal number (below 2e-13 for laws in
        cells and ``TruncatedLaplace``, whose logarithm may be rounded); NaN at NaN.

        Parameters
        ----------
        x : array_like of real numbers
            Any shape; a scalar gives a scalar.
        out : array, optional
            Where the results are written, of the shape of ``x`` and as for ``sample``; it may be
            ``x`` itself. Results are float64 unless it is float32; then they are rounded once more.
        threads : int or None
            As for ``sample``; the results do not depend on it. Of whole numbers and of
            ``TruncatedLaplace``, which are evaluated by NumPy, one thread is used.

        Returns
        -------
        float or ndarray
            ``out`` itself, if it is given.

        Raises
        ------
        TypeError, ValueError
            If ``x`` is not real, or ``out`` cannot hold the results.

        Examples
        --------
        >>> import numpy as np
        >>> import psinoise as pn
        >>> noise, points = pn.Airy(mean_abs=2.0), np.linspace(-9.0, 9.0, 1000)
        >>> single = noise.pdf(points, out=np.empty(1000, np.float32))
        >>> bool((single == noise.pdf(points).astype(np.float32)).all())
        True
        """
        return self._evaluated("pdf", x, out, threads)

    def logpdf(self, x: ArrayLike, *, out: Any = None, threads: int | None = None) -> Any:
        """Logarithm of the density; absolute error below ``5e-14 * max(1, |value|)``."""
        return self._evaluated("logpdf", x, out, threads)

    def cdf(self, x: ArrayLike, *, out: Any = None, threads: int | None = None) -> Any:
        """``P(X <= x)``; relative error in both tails as of the density."""
        return self._evaluated("cdf", x, out, threads)

    def ccdf(self, x: ArrayLike, *, out: Any = None, threads: int | None = None) -> Any:
        """``P(X > x)``; relative error in both tails as of the density."""
        return self._evaluated("ccdf", x, out, threads)

    @property
    def support(self) -> float:
        """The density is positive up to here on both sides; ``inf`` for the whole line."""
        return math.inf

    def _left_by(self, shift: float) -> float:
        """``P(X > support - shift)``: what a shift moves out of the support."""
        return float(self.ccdf(self.support - shift))

    def logcdf(self, x: ArrayLike, *, out: Any = None, threads: int | None = None) -> Any:
        """Logarithm of ``cdf``; does not underflow."""
        return self._evaluated("logcdf", x, out, threads)

    def logccdf(self, x: ArrayLike, *, out: Any = None, threads: int | None = None) -> Any:
        """Logarithm of ``ccdf``; does not underflow."""
        return self._evaluated("logccdf", x, out, threads)

    def icdf(self, p: ArrayLike, *, out: Any = None, threads: int | None = None) -> Any:
        """The point with ``cdf(point) = p``; NaN for ``p`` outside [0, 1].

        Relative error a few ulp beyond what the rounding of ``log p`` implies, down to the
        smallest positive float64. Of laws of whole numbers the smallest one with ``cdf(k) >= p``.
        """
        return self._filled(self._inverse_cdf, _checks.points("p", p), out, threads)

    def iccdf(self, p: ArrayLike, *, out: Any = None, threads: int | None = None) -> Any:
        """The point with ``ccdf(point) = p``; NaN for ``p`` outside [0, 1].

        Of laws of whole numbers the smallest one with ``ccdf(k) <= p``.
        """
        return self._filled(self._inverse_survival, _checks.points("p", p), out, threads)

    def _evaluated(self, quantity: str, x: ArrayLike, out: Any, threads: int | None) -> Any:
        fill = functools.partial(self._evaluate, quantity)
        return self._filled(fill, _checks.points("x", x), out, threads)

    def _filled(self, fill: _Fill, points: Numbers, out: Any, threads: int | None) -> Any:
        """The results of a function that writes them; ``out`` itself, if it is given."""
        points, results = _checks.results(points, out)
        fill(points, results, _checks.worker_count(threads, points.size))
        return results[()] if out is None else out

    @abstractmethod
    def _evaluate(self, quantity: str, x: Numbers, out: Numbers, workers: int) -> None:
        """Write a quantity, by its name, at checked points of float64 or float32 to an array."""

    @abstractmethod
    def _inverse_survival(self, p: Numbers, out: Numbers, workers: int) -> None:
        """Write the upper quantiles of probabilities that have been checked for their kind."""

    def _inverse_cdf(self, p: Numbers, out: Numbers, workers: int) -> None:
        """The same for lower quantiles."""
        self._inverse_survival(p, out, workers)
        np.negative(out, out=out)
