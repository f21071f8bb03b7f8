"""Loss bins and their composition: twins of ``csrc/kernels/pieces.cpp`` and ``compose.cpp``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics import double_double as dd
from psinoise.numerics.elementary import exponential, log_one_plus, logarithm
from psinoise.reference.law import LawTable

Float = NDArray[np.float64]

_BALANCE_ROUNDING, _WIDEST = 2e-13, 1e200
Complex = NDArray[np.complex128]

_RULE = np.polynomial.legendre.leggauss(6)
_CHUNK = 1 << 16
# p is below e^-40 of q p(x - shift) where the log of their ratio is this much larger.
_ALONE = 40.0
_MOST_POLISHING = 64


class Transform:
    """Real transforms of one length, a power of two or three times one."""

    def __init__(self, size: int) -> None:
        even = size // 3 if size % 3 == 0 and size >= 12 else size
        if even < 2 or even & (even - 1):
            raise ValueError("size must be a power of two, or three times one")
        self._size = size

    @property
    def size(self) -> int:
        """Number of points."""
        return self._size

    def compose_into(self, masses: Float, count: int, product: Complex) -> None:
        """``product *= rfft(masses) ** count``, the power by repeated squaring."""
        if masses.shape != (self._size,) or product.shape != (self._size // 2 + 1,):
            raise ValueError("masses or product has the wrong size")
        base = np.fft.rfft(masses)
        with np.errstate(under="ignore"):
            while True:
                if count & 1:
                    product *= base
                count >>= 1
                if count == 0:
                    return
                base = base * base

    def inverse(
        self, spectra: Complex, factors: Complex | None = None, out: Float | None = None
    ) -> Float:
        """Sums over the frequencies of both signs; spectra end in zeros that are left out."""
        if not 1 <= spectra.shape[-1] <= self._size // 2 + 1:
            raise ValueError("spectra have the wrong size")
        if factors is not None and factors.shape != spectra.shape[-1:]:
            raise ValueError("factors have the wrong size")
        rows = spectra if factors is None else spectra * factors
        values = np.fft.irfft(rows, self._size, norm="forward")
        if out is None:
            return values
        if out.shape != values.shape:
            raise ValueError("out has the wrong shape")
        out[...] = values
        return out


def table_log(law: LawTable, x: Float, scale: float) -> dd.Pair:
    """``log p(x)``, up to the log of the scale; NaN beyond the table."""
    hi, lo = dd.divide(np.abs(x), np.full_like(x, scale))
    inside = hi < law.log_density.limit
    return law.log_density.pair(np.where(inside, hi, 0.0), np.where(inside, lo, np.nan))


def piece_masses(
    law: LawTable,
    scale: float,
    shift_p: float,
    shift_q: float,
    rate: float,
    edges: Float,
    levels: Float,
    tilt: float,
    log_norm: float,
) -> tuple[Float, Float]:
    """Tilted mass of each piece and its excess over the level."""
    if edges.size != levels.size + 1:
        raise ValueError("edges must outnumber levels by 1")
    mass, excess = np.empty_like(levels), np.empty_like(levels)
    for start in range(0, levels.size, _CHUNK):
        part = slice(start, min(start + _CHUNK, levels.size))
        mass[part], excess[part] = _pieces(
            law,
            (scale, shift_p, shift_q, rate),
            edges[start : part.stop + 1],
            levels[part],
            tilt,
            log_norm,
        )
    return mass, excess


def log_ratios(law: LawTable, scale: float, shift: float, x: Float, base: dd.Pair) -> Float:
    """``log p(x - shift)/p(x)``; 0 without a shift."""
    if shift == 0.0:
        return np.zeros_like(x)
    hi, lo = table_log(law, x - shift, scale)
    return np.asarray((hi - base[0]) + (lo - base[1]))


def mix(ratio: Float, rate: float, shift: float) -> Float:
    """``log(1 - q + q e^r)``; as it is without a shift or sampling."""
    if shift == 0.0 or rate == 1.0:
        return ratio
    capped = np.minimum(ratio, 600.0)
    change = rate * np.expm1(capped)
    plain = logarithm((1.0 - rate) + rate * np.exp(capped))
    moderate = np.where(change > -0.5, log_one_plus(change), plain)
    large = ratio + float(logarithm(np.array([rate]))[0])
    return np.where(ratio > 600.0, large, moderate)


def _mixture_loss(
    law: LawTable, scale: float, rate: float, shift: float, x: Float, base: dd.Pair
) -> Float:
    return mix(log_ratios(law, scale, shift, x, base), rate, shift)


def _log_p(
    law: LawTable, scale: float, rate: float, shift: float, x: Float, base: dd.Pair
) -> tuple[Float, Float, Float]:
    """``log P/p``, and ``log P`` in two parts, up to the log of the scale.

    Where the ratio is so large that ``p`` adds nothing, not as a sum with a loss as large as that.
    """
    if shift == 0.0:
        return np.zeros_like(x), *base
    moved = table_log(law, x - shift, scale)
    ratio = np.asarray((moved[0] - base[0]) + (moved[1] - base[1]))
    log_rate = 0.0 if rate == 1.0 else float(logarithm(np.array([rate]))[0])
    loss = mix(ratio, rate, shift)
    near = (ratio <= _ALONE - log_rate) & (rate < 1.0)
    hi, lo = dd.two_sum(np.where(near, base[0], moved[0]), np.where(near, loss, log_rate))
    return loss, hi, lo + np.where(near, base[1], moved[1])


def _pieces(
    law: LawTable,
    pair: tuple[float, float, float, float],
    edges: Float,
    levels: Float,
    tilt: float,
    log_norm: float,
) -> tuple[Float, Float]:
    scale, shift_p, shift_q, rate = pair
    points, weights = _RULE
    half = 0.5 * np.diff(edges)
    x = ((edges[:-1] + half)[:, None] + half[:, None] * points).ravel()
    with np.errstate(all="ignore"):
        base = table_log(law, x, scale)
        ratio, log_p, low = _log_p(law, scale, rate, shift_p, x, base)
        value = ratio - _mixture_loss(law, scale, rate, shift_q, x, base)
        level = np.repeat(levels, points.size)
        weight = (half[:, None] * weights).ravel()
        # Levels, and so tilts, may be far larger than what is left of them.
        tilted = dd.two_product(np.full_like(level, tilt), level)
        normed = dd.two_sum(tilted[0], np.full_like(level, -log_norm))
        log_scale = logarithm(np.full_like(x, scale))
        plain = dd.two_sum(log_p, -log_scale)
        exponent, rest = dd.two_sum(plain[0], normed[0])
        rest = rest + ((plain[1] + low) + (normed[1] + tilted[1]))
        density = weight * exponential(exponent, rest)
        over = density * -np.expm1(-np.clip(value - level, 0.0, 700.0))
    shape = (levels.size, points.size)
    return density.reshape(shape).sum(axis=1), over.reshape(shape).sum(axis=1)


def _losses(law: LawTable, pair: tuple[float, float, float, float], x: Float) -> Float:
    scale, shift_p, shift_q, rate = pair
    base = table_log(law, x, scale)
    return _mixture_loss(law, scale, rate, shift_p, x, base) - _mixture_loss(
        law, scale, rate, shift_q, x, base
    )


def level_points(
    law: LawTable,
    scale: float,
    shift_p: float,
    shift_q: float,
    rate: float,
    x: Float,
    loss: Float,
    slope: Float,
    levels: Float,
    tolerance: float,
) -> tuple[Float, float]:
    """Where the loss has the levels: inverse Hermite interpolation, Newton's method, bisection."""
    if x.size < 2:
        raise ValueError("there must be at least two samples")
    k = np.clip(np.searchsorted(loss, levels, side="right") - 1, 0, loss.size - 2)
    rise, width = (loss[1:] - loss[:-1])[k], (x[1:] - x[:-1])[k]
    with np.errstate(all="ignore"):
        tangent = rise / width
        left, right = tangent / slope[k], tangent / slope[k + 1]
        u = np.nan_to_num(np.clip((levels - loss[k]) / rise, 0.0, 1.0))
    # Slopes that do not belong to a monotone cubic are replaced by the chord.
    sane = (left > 0.0) & (left < 3.0) & (right > 0.0) & (right < 3.0)
    left, right = np.where(sane, left, 1.0), np.where(sane, right, 1.0)
    v = 1.0 - u
    place = u * u * (3.0 - 2.0 * u) + u * v * (v * left - u * right)
    slant = tangent / (left + (right - left) * place)
    low, high = np.minimum(x[k], x[k] + width), np.maximum(x[k], x[k] + width)
    point = np.clip(x[k] + place * width, low, high)
    best, error = point.copy(), np.full(levels.shape, np.inf)
    rising = width > 0.0
    for _ in range(_MOST_POLISHING):
        with np.errstate(all="ignore"):
            miss = _losses(law, (scale, shift_p, shift_q, rate), point) - levels
            size = np.abs(miss)
            slow = ~(size <= 0.5 * error)
            best = np.where(size < error, point, best)
            error = np.where(size < error, size, error)
            open_ = error > tolerance
            below = (miss < 0.0) == rising
            low = np.where(open_ & below, point, low)
            high = np.where(open_ & ~below, point, high)
            newton = point - miss / slant
            inside = (newton > low) & (newton < high) & ~slow
            moved = np.where(open_, np.where(inside, newton, 0.5 * (low + high)), point)
        if not (moved != point).any():
            break
        point = moved
    return best, float(error.max(initial=0.0))


def _balance(mass: Float, excess: Float, room: Float, falling: Float) -> tuple[Float, int, float]:
    """Shares that do not go up, from both ends towards the largest bin; and the bin of which a part
    goes down by one node more than the rest of its share, and that part: 0 of the first if none.

    `falling` has the excess of each bin over the level before its own.
    """
    count, meeting = mass.size, max(int(np.argmax(mass)), 1)
    share = np.zeros(count)

    def needed(j: int) -> float:
        """At a node, for what comes up to it: not a number if that is nothing of an endless room,
        which is not below anything."""
        with np.errstate(invalid="ignore"):
            return float((1.0 - share[j - 1]) * room[j - 1])

    def from_left(j: int) -> float:
        wanted = needed(j)
        return wanted / float(excess[j]) if wanted < excess[j] else 1.0

    for j in range(1, meeting):
        share[j] = from_left(j)
    share[-1] = 1.0
    for j in range(count - 1, meeting, -1):
        wanted = share[j] * excess[j]
        share[j - 1] = 1.0 - wanted / room[j - 1] if wanted < room[j - 1] else 0.0
    if meeting == count - 1 or needed(meeting) < share[meeting] * excess[meeting]:
        share[meeting] = from_left(meeting)
        meeting += 1
    if meeting + 1 >= count:
        return share, 0, 0.0
    missing = needed(meeting) - share[meeting] * excess[meeting]
    far = meeting + 1
    # It is not there for the node between, to which less goes up.
    with np.errstate(all="ignore"):
        less = float(excess[far] / room[meeting])
        most = min(float(share[far]), float((1.0 - share[meeting]) / less))
        part = missing / (float(falling[far]) + less * float(excess[meeting]))
    # Nothing pays for an endless need.
    if not (part > 0.0 and most > 0.0 and missing < np.inf):
        return share, 0, 0.0
    part = min(part, most)
    share[meeting] = min(share[meeting] + part * less, 1.0)
    return share, far, part


def balanced_nodes(mass: Float, excess: Float, widths: Float, tilt: float) -> Float:
    """Masses of the nodes of the balanced contraction (``frequencies.lattice`` of accounting)."""
    if mass.size < 2:
        raise ValueError("there must be at least two bins")
    with np.errstate(over="ignore", invalid="ignore"):
        rise, growth = np.exp(tilt * widths), np.expm1(widths)
        held = (1.0 + growth) * excess
        deficit = np.maximum(mass * growth - held + _BALANCE_ROUNDING * held, 0.0)
        deficit[growth >= _WIDEST] = np.inf
        room = deficit * rise
    with np.errstate(invalid="ignore"):
        gone = np.where(growth < _WIDEST, growth / (1.0 + growth), 1.0)
        falling = np.zeros(mass.size)
        falling[1:] = (excess[1:] / (1.0 + growth[:-1]) + mass[1:] * gone[:-1]) / rise[:-1]
        # No part of an endless room is a part of it.
        share, far, part_of_far = _balance(mass, excess, room, falling)
        up, down = 1.0 - share, share.copy()
        down[far] -= part_of_far
        need = up * room
    paid = np.append(down[1:] * excess[1:], 0.0)
    paid[far - 2] += part_of_far * falling[far]
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(need > 0.0, up * (paid / need), 0.0)
        part = np.where(need <= paid * (1.0 + 1e-14), up, part)
    nodes = np.zeros(mass.size + 1)
    nodes[:-1] = down * mass + (up - part) * mass
    nodes[1:] += np.where(part > 0.0, part * mass * rise, 0.0)
    nodes[far - 1] += part_of_far * mass[far] / rise[far - 1]
    return nodes
