"""A compiled law: twin of ``math/panels.hpp``, ``kernels/evaluate.cpp`` and ``quantiles.cpp``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics import double_double as dd
from psinoise.numerics.bits import bits_of, double_from
from psinoise.numerics.elementary import (
    exponential,
    exponential_shifted,
    log_one_plus,
    logarithm,
)

Float = NDArray[np.float64]
PanelArguments = tuple[Float, int, int]
ZigguratArguments = tuple[NDArray[np.unsignedinteger], Float, float, float]

_ROW = 12
_LOG2 = math.log(2.0)
_MANTISSA = np.uint64(2**52 - 1)
_ONE = np.uint64(0x3FF0000000000000)
QUANTITIES = ("pdf", "logpdf", "cdf", "ccdf", "logcdf", "logccdf")


@dataclass(frozen=True)
class Panels:
    """Piecewise polynomials on dyadic panels; see ``csrc/math/panels.hpp``."""

    rows: Float
    first_exponent: int
    bits: int

    def __post_init__(self) -> None:
        if not 3 <= self.bits <= 8:
            raise ValueError("an octave must have 8 to 256 panels")
        count, width = self.panels, self.rows.shape[1]
        if width != _ROW or count < 2 or (count - 1) % (1 << self.bits):
            raise ValueError("rows must have shape (1 + 2**bits exponents, 12)")

    @cached_property
    def panels(self) -> int:
        """Rows that are panels: parts come after them, two rows each, the second ends in NaN."""
        count: int = self.rows.shape[0]
        while count > 2 and np.isnan(self.rows[count - 1, -1]):
            count -= 2
        return count

    @cached_property
    def parts(self) -> list[tuple[int, float, int, float, float]]:
        """The panel of a part, the position from which it serves, its own row, its center, and one
        over its half width."""
        found = self.rows[self.panels + 1 :: 2, :5].tolist()
        return [(int(panel), u, int(own), *local) for panel, u, own, *local in found]

    @property
    def limit(self) -> float:
        """Right end of the last panel."""
        return float(2.0 ** (self.first_exponent + ((self.panels - 1) >> self.bits)))

    def _locate(self, t: Float, correction: Float) -> tuple[Float, Float]:
        bits = bits_of(t)
        first = (self.first_exponent + 1023) << self.bits
        index = (bits >> np.uint64(52 - self.bits)).astype(np.int64) - first
        central = index < 0
        fraction = double_from(((bits << np.uint64(self.bits)) & _MANTISSA) | _ONE)
        inverse = double_from(
            (np.uint64(2047 + self.bits) - (bits >> np.uint64(52))) << np.uint64(52)
        )
        inverse = np.where(central, 2.0 ** (1 - self.first_exponent), inverse)
        u = np.where(central, t * inverse - 1.0, 2.0 * fraction - 3.0) + correction * inverse
        row = np.where(central, 0, index + 1)
        whole, place = row, u
        for panel, begin, own, center, stretch in self.parts:
            here = (whole == panel) & (place >= begin)
            row = np.where(here, own, row)
            u = np.where(here, (place - center) * stretch, u)
        return self.rows[row], u

    def pair(self, t: Float, correction: Float) -> dd.Pair:
        """Value at ``t + correction`` as ``hi + lo``."""
        row, u = self._locate(t, correction)
        return dd.two_sum(row[:, 0], _polynomial_part(row, u) + row[:, 1])

    def value(self, t: Float, correction: Float | None = None) -> Float:
        """Value at ``t + correction``; ``t`` must lie in ``[0, limit)``."""
        row, u = self._locate(t, np.zeros_like(t) if correction is None else correction)
        return np.asarray(row[:, 0] + (_polynomial_part(row, u) + row[:, 1]))


def _polynomial_part(row: Float, u: Float) -> Float:
    c = row[:, 1:].T
    v = u * u
    odd = (((c[9] * v + c[7]) * v + c[5]) * v + c[3]) * v + c[1]
    even = (((c[10] * v + c[8]) * v + c[6]) * v + c[4]) * v + c[2]
    return np.asarray(u * odd + v * even)


@dataclass(frozen=True)
class Ziggurat:
    """Strips of equal area; see ``csrc/kernels/tables.hpp``."""

    entries: NDArray[np.unsignedinteger]
    heights: Float
    base_edge: float
    tail_depth: float


# Of tables near the center, as in ``csrc/kernels/near_tables.cpp``.
_NEAR_PANELS, _NEAR_TERMS = 16, 11
_NODES = tuple(
    float.fromhex(node)
    for node in (
        "0x1.fac9e043842efp-1",
        "0x1.d1bb48eee2c13p-1",
        "0x1.82f19bb3a28a1p-1",
        "0x1.14cedf8bb580bp-1",
        "0x1.207e7fd768dbfp-2",
        "0x0.0p+0",
        "-0x1.207e7fd768dbfp-2",
        "-0x1.14cedf8bb580bp-1",
        "-0x1.82f19bb3a28a1p-1",
        "-0x1.d1bb48eee2c13p-1",
        "-0x1.fac9e043842efp-1",
    )
)
_CHECKS = (-1.0, -0.9912109375, -0.5, 0.1416015625, 0.9912109375, 1.0)
_FALL, _NEAR_TOLERANCE, _AT_MODE, _OF_HALF = 10.0, 4e-15, 4.0 * 2.0**-52, 2.0**-52
_QUANTILE_TOLERANCE = 1e-15


@dataclass(frozen=True)
class NearTable:
    """A function on panels of equal width; see ``csrc/kernels/near_tables.cpp``."""

    limit: float
    width: float
    terms: Float

    @classmethod
    def of_density(cls, law: LawTable) -> NearTable | None:
        """That of the density; None where no such table is right."""

        def density(t: Float) -> Float:
            return exponential(*law.log_density.pair(t, np.zeros_like(t)))

        return cls._widest(law.log_density, density, _AT_MODE)

    @classmethod
    def of_survival(cls, law: LawTable) -> NearTable | None:
        """That of the upper tail; None where no such table is right."""

        def survival(t: Float) -> Float:
            log_density = law.log_density.pair(t, np.zeros_like(t))
            return exponential(*_log_survival(log_density, law.log_mills.value(t)))

        return cls._widest(law.log_density, survival, _OF_HALF)

    @staticmethod
    def _widest(
        log_density: Panels, function: Callable[[Float], Float], at_zero: float
    ) -> NearTable | None:
        if log_density.parts:
            return None
        limits = [
            0.25 * quarter * 2.0**octave
            for octave in range(6, -7, -1)
            for quarter in range(7, 3, -1)
        ]
        for limit in limits:
            if limit >= log_density.limit:
                continue
            ends = log_density.value(np.array([0.0, limit]))
            if ends[0] - ends[1] <= _FALL:
                found = _near(function, _NEAR_TOLERANCE, at_zero, limit)
                if found is not None:
                    return found
        return None

    @staticmethod
    def of_quantile(law: LawTable) -> NearTable | None:
        """That of the quantile over its argument ``v``; None where no such table is right."""

        def quantile(v: Float) -> Float:
            central = v < 0.25
            near = law.central_quantile.value(np.where(central, v, 0.0))
            far = law.upper_quantile(-logarithm(2.0 * np.where(central, 0.25, 0.5 - v))) / v
            return np.where(central, near, far)

        for sixteenth in range(7, 3, -1):
            tolerance = _QUANTILE_TOLERANCE
            found = _near(quantile, tolerance, tolerance, 0.0625 * sixteenth)
            if found is not None:
                return found
        return None

    def value(self, t: Float) -> Float:
        """The function for ``0 <= t < limit``."""
        panel = (t * ((1.0 - 2.0**-51) / self.width)).astype(np.int64)
        u = (t - (panel + 0.5) * self.width) * (2.0 / self.width)
        c = self.terms[:, panel]
        v = u * u
        odd = (((c[9] * v + c[7]) * v + c[5]) * v + c[3]) * v + c[1]
        even = ((((c[10] * v + c[8]) * v + c[6]) * v + c[4]) * v + c[2]) * v + c[0]
        return np.asarray(u * odd + even)


def _near(
    function: Callable[[Float], Float], tolerance: float, at_zero: float, limit: float
) -> NearTable | None:
    width = limit / _NEAR_PANELS
    half = 0.5 * width
    centers: Float = (np.arange(_NEAR_PANELS, dtype=np.float64) + 0.5) * width
    with np.errstate(all="ignore"):
        terms = _interpolate(np.array([function(centers + half * u) for u in _NODES]))
        for u in _CHECKS:
            total = terms[-1]
            for term in terms[-2::-1]:
                total = total * u + term
            exact = function(centers + half * u)
            most = np.full(exact.shape, tolerance)
            most[0] = at_zero if u == -1.0 else tolerance
            if not (np.abs(total - exact) <= most * exact).all():
                return None
    return NearTable(limit, width, terms)


def _interpolate(values: Float) -> Float:
    """Coefficients in powers of ``u`` from values at the nodes, by discrete orthogonality."""
    nodes = np.array(_NODES)
    older, old = np.eye(2, _NEAR_TERMS)
    before, now = np.ones(_NEAR_TERMS), nodes
    terms = np.zeros_like(values)
    middle = values[_NEAR_TERMS // 2].copy()
    for j in range(_NEAR_TERMS):
        total = np.zeros(values.shape[1])
        for row, at in zip(values, before, strict=True):
            total = total + (row - middle) * at
        weight = total * ((1.0 if j == 0 else 2.0) / _NEAR_TERMS)
        terms = terms + weight * older[:, None]
        before, now = now, 2.0 * nodes * now - before
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
        self.near_density = NearTable.of_density(self)
        self.near_survival = NearTable.of_survival(self)
        self.near_quantile = NearTable.of_quantile(self)

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
            hi, lo = self.log_density.pair(at, zero)
            mills = self.log_mills.value(at)
            excess = ((hi + depth) + (mills + _LOG2)) + lo
            t = np.where(inside, t + excess * exponential(mills, zero), t)
        return t


def panel_values(rows: Float, first_exponent: int, bits: int, t: Float) -> Float:
    """Values of a panel table at ``t``; NaN outside ``[0, limit)``."""
    panels = Panels(rows, first_exponent, bits)
    inside = (t >= 0.0) & (t < panels.limit)
    return np.where(inside, panels.value(np.where(inside, np.abs(t), 0.0)), np.nan)


def evaluate(
    law: LawTable, quantity: str, scale: float, x: NDArray[Any], out: NDArray[Any], threads: int
) -> int:
    """Write a quantity of ``QUANTITIES`` at ``x`` to ``out``; return how many points lie beyond."""
    del threads
    if quantity not in QUANTITIES:
        raise ValueError("unknown quantity")
    with np.errstate(all="ignore"):
        flat = x.reshape(-1).astype(np.float64)
        shrink = 2.0**-100 if scale > 2.0**900 else 1.0
        divisor = np.full_like(flat, scale * shrink)
        hi, lo = dd.quotient(np.abs(flat) * shrink, divisor, 1.0 / divisor)
        inside = hi < law.log_density.limit
        beyond = int(np.count_nonzero(hi >= law.log_density.limit))
        t = np.where(inside, hi, 0.0)
        correction = np.where(inside, lo, 0.0)
        log_hi, log_lo = law.log_density.pair(t, correction)
        mantissa, exponent = math.frexp(scale)
        tables = {"pdf": law.near_density, "cdf": law.near_survival, "ccdf": law.near_survival}
        table = tables.get(quantity) if abs(exponent) <= 1000 else None
        close, near = np.abs(flat) * (1.0 / scale), np.zeros(flat.shape, np.bool_)
        if table is not None:
            end = float(law.upper_quantile(np.array([746.0]))[0]) if quantity != "pdf" else np.inf
            gone = np.abs(flat) >= end * scale
            near = (close < table.limit) | gone
            close = np.where(gone, 0.0, table.value(np.where(close < table.limit, close, 0.0)))
            beyond -= int(np.count_nonzero(gone & (hi >= law.log_density.limit)))
            inside = inside | gone
        if quantity == "pdf":
            value = exponential_shifted(log_hi, log_lo, -exponent) * (1.0 / mantissa)
            value = np.where(near, close * (1.0 / mantissa) * 2.0**-exponent, value)
        elif quantity == "logpdf":
            value = (log_hi - logarithm(np.array([scale]))) + log_lo
        else:
            log_survival = _log_survival((log_hi, log_lo), law.log_mills.value(t, correction))
            survival = np.where(near, close, exponential(*log_survival))
            value = _of_survival(quantity, flat, log_survival, survival)
        out.reshape(-1)[...] = np.where(inside, value, np.nan)
    return beyond


def _log_survival(log_density: dd.Pair, log_mills: Float) -> dd.Pair:
    hi, carry = dd.two_sum(log_density[0], log_mills)
    return hi, carry + log_density[1]


def _of_survival(quantity: str, x: Float, log_survival: dd.Pair, survival: Float) -> Float:
    upper = x <= 0.0 if quantity in ("cdf", "logcdf") else x >= 0.0
    if quantity.startswith("log"):
        return np.where(upper, log_survival[0] + log_survival[1], log_one_plus(-survival))
    return np.where(upper, survival, 1.0 - survival)


def inverse_survival(
    law: LawTable, scale: float, probability: NDArray[Any], out: NDArray[Any], threads: int
) -> None:
    """Write the points with ``P(scale * X > point) = probability`` to ``out``."""
    del threads
    with np.errstate(all="ignore"):
        q = probability.reshape(-1).astype(np.float64)
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
