"""Windows of a lattice: how much of a composition lies outside of them.

Sums over a window of ``N`` nodes see what lies outside of it as if it lay inside: mass comes back
around. Under the tilt it is at most ``2 tau`` by Chernoff's bound, with the exact moment generating
functions of the discrete measures.
"""

from __future__ import annotations

import math

from psinoise.accounting.compose.frequencies.lattice import NodeMeasure

# Windows are no longer than this many times those of normal losses, or than is found.
_NEAR = 1.05


def window_needed(parts: list[tuple[NodeMeasure, int]], tail: float) -> tuple[int, int]:
    """First node and length of a window that holds all but ``2 tail`` of the composition."""
    moments = [(measure.moments, count) for measure, count in parts]
    offset = math.fsum(count * measure.offset for measure, count in parts)
    mean = math.fsum(count * m[0] for m, count in moments)
    variance = math.fsum(count * m[1] for m, count in moments)
    step = parts[0][0].step
    reach = [_reach(parts, mean, variance, sign, tail) for sign in (1.0, -1.0)]
    low = math.floor((mean - offset - reach[1]) / step) - 1
    need = math.ceil((mean - offset + reach[0]) / step) + 2 - low
    return low, need


def tail_within(
    parts: list[tuple[NodeMeasure, int]],
    log_delta: float,
    epsilon: float,
    share: float,
    least: float,
) -> float:
    """Tilted mass on one side of a window that costs no more than a share of delta at epsilon.

    That is a quarter of the share; but for what is below ``e^least``, or above 1e-6.
    """
    tilt = parts[0][0].tilt
    log_norm = math.fsum(count * measure.log_norm for measure, count in parts)
    log_main = log_delta - (log_norm - tilt * epsilon)
    log_tail = log_main + math.log(share / (4.0 * largest_weight(tilt)))
    return math.exp(min(max(log_tail, least), math.log(1e-6)))


def _reach(
    parts: list[tuple[NodeMeasure, int]], mean: float, variance: float, sign: float, tail: float
) -> float:
    """``T`` with ``P(sign (L - mean) >= T) <= tail``: any ``s`` gives a bound, a few are tried.

    Until it is near that of a normal loss.
    """
    log_tail = -math.log(tail)
    normal = math.sqrt(2.0 * log_tail * max(variance, 1e-300))
    s = 2.0 * log_tail / normal
    best = math.inf
    for _ in range(24):
        log_mgf = math.fsum(count * measure.log_mgf(sign * s) for measure, count in parts)
        reach = (log_mgf + log_tail) / s - sign * mean
        if reach >= best:
            break
        best = reach
        if best <= _NEAR * normal:
            break
        s *= 0.7
    return best


def largest_weight(tilt: float) -> float:
    """Maximum of ``(1 - e^{-y}) e^{-t y}`` over ``y >= 0``: ``t^t / (1 + t)^(1 + t)``."""
    return math.exp(-tilt * math.log1p(1.0 / tilt) - math.log1p(tilt))


def weights_norm(tilt: float, step: float) -> float:
    """A bound on the 2-norm of these weights on a lattice: the integral, and a maximum for it."""
    square = 0.5 / (tilt * (2.0 * tilt + 1.0) * (tilt + 1.0) * step) + largest_weight(tilt) ** 2
    return math.sqrt(square)
