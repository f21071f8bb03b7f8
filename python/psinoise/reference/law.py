"""A compiled law: twin of ``kernels/evaluate.cpp``, ``quantiles.cpp`` and ``near_tables.cpp``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics import double_double as dd
from psinoise.numerics.elementary import (
    exponential,
    exponential_shifted,
    log_one_plus,
    logarithm,
)
from psinoise.reference.panels import PanelArguments, Panels, odd_and_even

Float = NDArray[np.float64]
ZigguratArguments = tuple[NDArray[np.unsignedinteger], Float, float, float]

_LOG2 = math.log(2.0)
QUANTITIES = ("pdf", "logpdf", "cdf", "ccdf", "logcdf", "logccdf")


@dataclass(frozen=True)
class Ziggurat:
    """Strips of equal area; see ``csrc/kernels/tables.hpp``."""

    entries: NDArray[np.unsignedinteger]
    heights: Float
    base_edge: float
    tail_depth: float


# Of tables near the center, as in ``csrc/kernels/near_tables.cpp``.
_NEAR_PANELS, _NEAR_TERMS = 16, 11
_RIGHT_NODES = [
    float.fromhex(node)
    for node in (
        "0x1.fac9e043842efp-1",
        "0x1.d1bb48eee2c13p-1",
        "0x1.82f19bb3a28a1p-1",
        "0x1.14cedf8bb580bp-1",
        "0x1.207e7fd768dbfp-2",
    )
]
_NODES = np.array([*_RIGHT_NODES, 0.0, *(-node for node in _RIGHT_NODES[::-1])])
_CHECKS = np.array([-1.0, -0.9912109375, -0.5, 0.1416015625, 0.9912109375, 1.0])
_FALL, _NEAR_TOLERANCE, _AT_MODE, _OF_HALF = 10.0, 4e-15, 4.0 * 2.0**-52, 2.0**-52
_QUANTILE_TOLERANCE = 1e-15


@dataclass(frozen=True)
class NearTable:
    """A function on panels of equal width; see ``csrc/kernels/near_tables.cpp``."""

    limit: float
    terms: Float

    def value(self, t: Float) -> Float:
        """The function for ``0 <= t < limit``."""
        width = self.limit / _NEAR_PANELS
        panel = (t * ((1.0 - 2.0**-51) / width)).astype(np.int64)
        u = (t - (panel + 0.5) * width) * (2.0 / width)
        c = self.terms[:, panel]
        odd, even = odd_and_even(c, u)
        return np.asarray(odd + (even + c[0]))


def _near_table(
    function: Callable[[Float], Float], limits: Iterable[float], tolerance: float, at_zero: float
) -> NearTable | None:
    """That with the first limit for which the function is met between nodes too; None if none."""
    most = np.full((_CHECKS.size, _NEAR_PANELS), tolerance)
    most[0, 0] = at_zero
    for limit in limits:
        width = limit / _NEAR_PANELS
        centers = (np.arange(_NEAR_PANELS, dtype=np.float64) + 0.5) * width
        with np.errstate(all="ignore"):
            terms = _interpolate(function(centers + 0.5 * width * _NODES[:, None]))
            exact = function(centers + 0.5 * width * _CHECKS[:, None])
            found = np.polynomial.polynomial.polyval(_CHECKS, terms).T
            if (np.abs(found - exact) <= most * exact).all():
                return NearTable(limit, terms)
    return None


def _interpolate(values: Float) -> Float:
    """Coefficients in powers of ``u`` from values at the nodes, by discrete orthogonality."""
    older, old = np.eye(2, _NEAR_TERMS)
    before, now = np.ones(_NEAR_TERMS), _NODES
    terms = np.zeros_like(values)
    middle = values[_NEAR_TERMS // 2].copy()
    for j in range(_NEAR_TERMS):
        # In the order of the nodes.
        total = np.cumsum((values - middle) * before[:, None], axis=0)[-1]
        weight = total * ((1.0 if j == 0 else 2.0) / _NEAR_TERMS)
        terms = terms + weight * older[:, None]
        before, now = now, 2.0 * _NODES * now - before
        older, old = old, 2.0 * np.concatenate([[0.0], old[:-1]]) - older
    terms[0] += middle
    return terms


class LawTable:
    """The tables of one standardized law."""

    def __init__(
        self,
        log_density: PanelArguments,
        log_mills: PanelArguments,
        tail_quantile: PanelArguments,
        central_quantile: PanelArguments,
        wide: ZigguratArguments,
        narrow: ZigguratArguments,
    ) -> None:
        self.log_density = Panels(*log_density)
        self.log_mills = Panels(*log_mills)
        self.tail_quantile = Panels(*tail_quantile)
        self.central_quantile = Panels(*central_quantile)
        self.wide = Ziggurat(*wide)
        self.narrow = Ziggurat(*narrow)

    def close_error(self, scale: float, shift: float, rate: float) -> float:
        """How far log ratios of close neighbors may be off; 0 of others."""
        distance = abs(shift) / scale
        error = distance * self.log_density.slope_error
        some = distance >= 2.0**-200 and rate * distance >= 2.0**-400
        close = some and distance <= 2.0**-14 and error <= 2.0**-47
        return error if close else 0.0

    @property
    def _near_limits(self) -> list[float]:
        """Where tables of the density and of the upper tail may end, the widest first."""
        log_density = self.log_density
        if log_density.parts:
            return []
        limits = np.outer(2.0 ** np.arange(6, -7, -1), [1.75, 1.5, 1.25, 1.0]).ravel()
        limits = limits[limits < log_density.limit]
        falls = log_density.value(np.zeros(1)) - log_density.value(limits)
        return list(limits[falls <= _FALL])

    @cached_property
    def near_density(self) -> NearTable | None:
        """That of the density; None where no such table is right."""

        def density(t: Float) -> Float:
            return exponential(*self.log_density.pair(t))

        return _near_table(density, self._near_limits, _NEAR_TOLERANCE, _AT_MODE)

    @cached_property
    def near_survival(self) -> NearTable | None:
        """That of the upper tail; None where no such table is right."""

        def survival(t: Float) -> Float:
            log_density = self.log_density.pair(t)
            return exponential(*_log_survival(log_density, self.log_mills.value(t)))

        return _near_table(survival, self._near_limits, _NEAR_TOLERANCE, _OF_HALF)

    @cached_property
    def near_quantile(self) -> NearTable | None:
        """That of the quantile over its argument ``v``; None where no such table is right."""

        def quantile(v: Float) -> Float:
            central = v < 0.25
            near = self.central_quantile.value(np.where(central, v, 0.0))
            far = self.upper_quantile(-logarithm(2.0 * np.where(central, 0.25, 0.5 - v))) / v
            return np.where(central, near, far)

        limits = 0.0625 * np.arange(7.0, 3.0, -1.0)
        return _near_table(quantile, list(limits), _QUANTILE_TOLERANCE, _QUANTILE_TOLERANCE)

    def density(self, t: Float) -> Float:
        """``p(t)`` for ``0 <= t < limit``, as the wedges of the sampler use it."""
        return exponential(self.log_density.value(t), np.zeros_like(t))

    def upper_quantile(self, depth: Float) -> Float:
        """The point ``t`` with ``-log(2 P(X > t)) = depth >= 1/2``."""
        zero = np.zeros_like(depth)
        t = exponential(self.tail_quantile.value(depth), zero)
        for _ in range(3 if self.tail_quantile.bits > 3 else 0):
            inside = t < self.log_density.limit
            at = np.where(inside, t, 0.0)
            hi, lo = self.log_density.pair(at)
            mills = self.log_mills.value(at)
            excess = ((hi + depth) + (mills + _LOG2)) + lo
            t = np.where(inside, t + excess * exponential(mills, zero), t)
        return t


def panel_values(rows: Float, first_exponent: int, bits: int, t: Float) -> Float:
    """Values of a panel table at ``t``; NaN outside ``[0, limit)``."""
    panels = Panels(rows, first_exponent, bits)
    inside = (t >= 0.0) & (t < panels.limit)
    return np.where(inside, panels.value(np.where(inside, np.abs(t), 0.0)), np.nan)


def _log_survival(log_density: dd.Pair, log_mills: Float) -> dd.Pair:
    hi, carry = dd.two_sum(log_density[0], log_mills)
    return hi, carry + log_density[1]


def evaluate(
    law: LawTable, quantity: str, scale: float, x: NDArray[Any], out: NDArray[Any], threads: int
) -> int:
    """Write a quantity of ``QUANTITIES`` at ``x`` to ``out``; return how many points lie beyond."""
    del threads
    if quantity not in QUANTITIES:
        raise ValueError("unknown quantity")
    points = x.reshape(-1).astype(np.float64)
    with np.errstate(all="ignore"):
        size = np.abs(points)
        shrink = 2.0**-100 if scale > 2.0**900 else 1.0
        divisor = np.full_like(size, scale * shrink)
        hi, lo = dd.quotient(size * shrink, divisor, 1.0 / divisor)
        inside, beyond = hi < law.log_density.limit, hi >= law.log_density.limit
        t, correction = np.where(inside, hi, 0.0), np.where(inside, lo, 0.0)
        log_hi, log_lo = law.log_density.pair(t, correction)
        mantissa, exponent = math.frexp(scale)
        table = None
        if not quantity.startswith("log") and abs(exponent) <= 1000:
            table = law.near_density if quantity == "pdf" else law.near_survival
        quick, near = size * (1.0 / scale), np.zeros(size.shape, np.bool_)
        close = np.zeros_like(size)
        if table is not None:
            end = float(law.upper_quantile(np.array([746.0]))[0]) if quantity != "pdf" else np.inf
            gone = size >= end * scale
            near = (quick < table.limit) | gone
            close = table.value(np.where(quick < table.limit, quick, 0.0))
            close = np.where(gone, 0.0, close)
            inside, beyond = inside | gone, beyond & ~gone
        if quantity == "pdf":
            value = exponential_shifted(log_hi, log_lo, -exponent) * (1.0 / mantissa)
            value = np.where(near, close * (1.0 / mantissa) * 2.0**-exponent, value)
        elif quantity == "logpdf":
            value = (log_hi - logarithm(np.array([scale]))) + log_lo
        else:
            log_survival = _log_survival((log_hi, log_lo), law.log_mills.value(t, correction))
            survival = np.where(near, close, exponential(*log_survival))
            upper = points >= 0.0 if "ccdf" in quantity else points <= 0.0
            if quantity.startswith("log"):
                value = np.where(upper, log_survival[0] + log_survival[1], log_one_plus(-survival))
            else:
                value = np.where(upper, survival, 1.0 - survival)
        out.reshape(-1)[...] = np.where(inside, value, np.nan)
    return int(np.count_nonzero(beyond))


def inverse_survival(
    law: LawTable, scale: float, probability: NDArray[Any], out: NDArray[Any], threads: int
) -> None:
    """Write the points with ``P(scale * X > point) = probability`` to ``out``."""
    del threads
    q = probability.reshape(-1).astype(np.float64)
    with np.errstate(all="ignore"):
        valid = (q >= 0.0) & (q <= 1.0)
        tail = np.where(valid, np.where(q <= 0.5, q, 1.0 - q), 0.5)
        central = tail > 0.25
        v = np.where(central, 0.5 - tail, 0.0)
        near = v * law.central_quantile.value(v)
        table = law.near_quantile
        if table is not None:
            served = 0.5 - tail < table.limit
            inside = np.where(served, 0.5 - tail, 0.0)
            near = np.where(served, table.value(inside) * inside, near)
            central = central | served
        deep = ~central & (tail > 0.0)
        far = law.upper_quantile(np.where(deep, -logarithm(2.0 * np.where(deep, tail, 0.25)), 1.0))
        x = np.where(tail == 0.0, np.inf, np.where(central, near, far) * scale)
        out.reshape(-1)[...] = np.where(valid, np.where(q <= 0.5, x, -x), np.nan)
