"""What accounting needs to know about a noise law."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Float", "Law"]

Float = NDArray[np.float64]


class Law(Protocol):
    """What accounting needs to know about a noise law: hashable, symmetric about 0.

    Estimates take ``logpdf`` alone; certified bounds also need the distribution function and the
    table of the law. ``logpdf`` is right to ``5e-14 max(1, |log p|)`` of the standardized law. The
    density of a law that is not log-concave is such that far out, deeper than ``exp(-1000)`` or
    2**40 scales and three shifts away, its score is at most the larger of its mean over the octave
    before and ``score_limit``, the limit of the score.
    """

    @property
    def scale(self) -> float: ...
    @property
    def log_concave(self) -> bool: ...
    @property
    def unimodal(self) -> bool: ...
    @property
    def kinks(self) -> tuple[float, ...]: ...
    @property
    def score_limit(self) -> float: ...
    @property
    def support(self) -> float: ...
    def __hash__(self) -> int: ...
    def logpdf(self, x: ArrayLike) -> Any: ...
    def logcdf(self, x: ArrayLike) -> Any: ...
    def cdf(self, x: ArrayLike) -> Any: ...
    def ccdf(self, x: ArrayLike) -> Any: ...
    @property
    def _table(self) -> Any: ...
    @property
    def _log_kept(self) -> float: ...
