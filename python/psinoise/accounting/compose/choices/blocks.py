"""Bounds by blocks of uses: steps under a tilt, a frame, and what a recursion makes of them.

*Shifts that are far behind.* Of very many uses a shift whose moment is smaller than another's by
some hundred, over all of them, is a choice only in the last few. From above its losses may be moved
up until it is no farther behind, as every ``V_k`` (``composer``) rises; from below it is left out.
What such a shift takes away from the functions then is not large beside what matters.

*Images.* A period ``p`` adds ``e^{-c k p} V_0(y + k p)`` to ``V_0(y)``, for all ``k`` but 0. From
below they have to go. As ``V_0 <= 1``, those of ``k > 0`` are ``1/(e^{c p} - 1)`` together at most.
With ``V_0(y) <= e^{m y}`` for any ``m > 0`` those of ``k < 0`` become at most
``M(m)^n e^{m y} / (e^{(m - c) p} - 1)`` for ``m > c``.

*Rounding.* A symbol ``E_P[e^{(c + i w) L}]`` is off by its transform (`Frame.transformed`), and
every argument ``(c + i w) L`` by some roundings of its parts, whose means count. Each use adds a
relative error of the masses, and one of ``y``. As the recursion is monotone and moves with ``y``,
these add up over the uses, whatever is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise._kept import cached_property
from psinoise.accounting.compose.choices.recursion import Recursion
from psinoise.accounting.compose.choices.waves import (
    MOVED,
    SMOOTHING,
    STEEPEST,
    Complex,
    Frame,
    degree_of,
    hinge,
    power_error,
    total_of,
)
from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.measure import UNIT, Measure, Side
from psinoise.accounting.loss.pairs import Float
from psinoise.numerics.crossing import narrowed

#: Points of all transforms of one recursion, at most.
MOST_WORK = 3.5e8
#: Of the first recursion; see `Recursion`.
FINENESS = 8
#: The log of an error from above, at most, for one of delta.
MOST_LOG = 50.0
# The log of the share of its bound by moments, over 1 + tilt, that delta has if none of many losses
# matter much.
_CENTRAL = math.log(0.01)
# Degrees of the first polynomials of one.
_LEAST_DEGREE, _MOST_DEGREE = 256, 2**15
# Shares of the tilt at the saddle that are tried; another than the first for so much less work.
_TILTS, _BETTER = (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3), 0.75
# A period has so many deviations at least, and leaves so little of the width to images.
_DEVIATIONS, _NEGLIGIBLE = 16.0, 50.0
# Deviations from one tilt to others, for images.
_FARTHER = (0.5, 1.0, 2.0, 4.0, 6.0, 9.0)
# Share of the width that a side may lose to a smooth hinge.
_HINGE = 0.4
# Tilts are sought from the inverse of this to it, to such a share of themselves.
_LARGEST_TILT, _SAME_TILT = 2e17, 1e-3
# Logs of moments of all uses by which a shift may be behind.
_BEHIND = 400.0


@dataclass(frozen=True, eq=False)
class Steps:
    """Losses of one use of each step, on one side: of the first, which has the choices, those of
    each of its shifts. And how often each step is used."""

    shifts: tuple[Measure, ...]
    others: tuple[Measure, ...]
    counts: tuple[int, ...]

    @cached_property
    def _joined(self) -> tuple[Float, Float, NDArray[np.intp], NDArray[np.intp], Float]:
        """All losses and masses in a row; where those of each measure begin; whose they are; the
        largest losses."""
        measures = self.shifts + self.others
        sizes = [measure.loss.size for measure in measures]
        loss = np.concatenate([measure.loss for measure in measures])
        mass = np.concatenate([measure.mass for measure in measures])
        first = np.cumsum([0, *sizes[:-1]])
        owner = np.repeat(np.arange(first.size), sizes)
        return loss, mass, first, owner, np.maximum.reduceat(loss, first)

    @cached_property
    def uncertain(self) -> bool:
        """Whether all losses of one use may be infinite."""
        return not all(measure.mass.any() for measure in self.shifts + self.others)

    def moments(self, tilt: float) -> Float:
        """A row for each measure: ``log E_P[e^{tilt L}]``, and its first two derivatives."""
        loss, mass, first, owner, top = self._joined
        weight = mass * np.exp(tilt * (loss - top[owner]))
        total = np.add.reduceat(weight, first)
        mean = np.add.reduceat(weight * loss, first) / total
        variance = np.add.reduceat(weight * (loss - mean[owner]) ** 2, first) / total
        return np.array([np.log(total) + tilt * top, mean, variance]).T

    def each(self, tilt: float) -> Float:
        """A row for each step: of the shift with the largest moment, and of the others."""
        found, shifts = self.moments(tilt), len(self.shifts)
        if shifts == 1:
            return found
        return np.concatenate([found[[int(np.argmax(found[:shifts, 0]))]], found[shifts:]])

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """The largest log moment of all together, its mean and variance."""
        value, mean, variance = np.array(self.counts, dtype=float) @ self.each(tilt)
        return float(value), float(mean), float(variance)

    def central(self, epsilon: float, log_delta: float) -> bool:
        """Whether delta is about what a sum of many small losses makes of its moment."""
        tilt = self.saddle(epsilon)
        if tilt is None:
            return False
        return log_delta - self.cumulants(tilt)[0] + tilt * epsilon + math.log1p(tilt) > _CENTRAL

    def estimate(self, tilt: float) -> tuple[float, float]:
        """Epsilon and log delta where a tilt is that of the saddle point, about."""
        value, mean, variance = self.cumulants(tilt)
        epsilon = mean - 1.0 / tilt - 1.0 / (1.0 + tilt)
        spread = variance + 1.0 / tilt**2 + 1.0 / (1.0 + tilt) ** 2
        log_delta = value - tilt * epsilon - math.log(tilt * (1.0 + tilt))
        return epsilon, log_delta - 0.5 * math.log(2.0 * math.pi * spread)

    def saddle(self, epsilon: float) -> float | None:
        """The tilt where ``M^n e^{-c epsilon} / (c (1 + c))`` is least, which delta is about."""
        return _falling(lambda tilt: epsilon - self.estimate(tilt)[0])

    def saddle_at(self, log_delta: float) -> float | None:
        """The same where that is about as large as a delta."""
        return _falling(lambda tilt: self.estimate(tilt)[1] - log_delta)


def _falling(excess: Callable[[float], float]) -> float | None:
    """The positive number from which on a falling function is at most 0, or a little more; None if
    there is none to be found."""
    low = high = 1.0
    at_low = at_high = excess(1.0)
    while not at_high <= 0.0:
        low, at_low = high, at_high
        high *= math.e
        if high > _LARGEST_TILT:
            return None
        at_high = excess(high)
    while not at_low >= 0.0:
        high, at_high = low, at_low
        low /= math.e
        if low < 1.0 / _LARGEST_TILT:
            return None
        at_low = excess(low)
    return narrowed(excess, (low, at_low), (high, at_high), 0.0, _SAME_TILT)


def best_frame(
    steps: Steps, saddle: float, epsilon: float, asked: float, fineness: int, log_delta: float
) -> tuple[Frame, float, float] | None:
    """A frame under the tilt of the saddle point, or a smaller one; the tilt by which its images
    before the first are least, and the function there.

    ``log_delta`` is what is looked for, about. None where losses hardly differ under the tilt, no
    width is allowed, or waves would be too short.
    """
    if not asked > 0.0:
        return None
    known = [(share * saddle, *steps.cumulants(share * saddle)) for share in _TILTS]
    deviation = math.sqrt(max(known[0][3], 1e-300))
    farther = [saddle + far / deviation for far in _FARTHER]
    moments = [each[:2] for each in known] + [(t, steps.cumulants(t)[0]) for t in farther]
    # What images may add is a small share of what is asked.
    rare = min(max(math.log(_NEGLIGIBLE) - math.log(saddle) - math.log(asked), 10.0), 25.0)
    found = []
    for tilt, value, _, variance in known:
        size = math.exp(min(max(log_delta - value + tilt * epsilon, -600.0), 600.0))
        spread = math.sqrt(max(variance, 0.0))
        if not (spread > 1e-12 / tilt and math.isfinite(value)):
            continue
        images = [
            ((log_moment - value - math.log(size) + rare) / (far - tilt) - epsilon, far)
            for far, log_moment in moments
            if far > tilt and math.isfinite(log_moment)
        ]
        if not images:
            continue
        least, far = min(images)
        period = max(_DEVIATIONS * spread, (rare - log_delta) / tilt, least)
        frame = _frame(tilt, period, asked, fineness)
        if frame is not None:
            found.append((frame, far, size))
    if not found:
        return None
    # Where rare large losses decide, a period is much shorter under a smaller tilt. The smaller the
    # function asked about is there the more blocks it takes.
    work = [frame.degree / math.sqrt(size) for frame, _, size in found]
    return found[int(np.argmin(work)) if min(work) < _BETTER * work[0] else 0]


def _frame(tilt: float, period: float, asked: float, fineness: int) -> Frame | None:
    """Of a period, with waves as short as they have to be."""
    # A hinge should cost a share of what is asked. Smoothing adds ``s^2/2`` of the second
    # derivative, which is about ``c (1 + c)`` of delta.
    smoothing = math.sqrt(_HINGE * asked / (1.0 + tilt)) * FINENESS / fineness
    if smoothing > STEEPEST:
        smoothing = max(STEEPEST, min(smoothing, _HINGE * asked / MOVED))
    waves = min(max(SMOOTHING * period / smoothing, _LEAST_DEGREE), _MOST_DEGREE)
    frame = Frame(tilt, period, degree_of(waves))
    s = frame.smoothing
    short = tilt * s <= MOVED and 0.5 * tilt * (1.0 + tilt) * s**2 <= MOST_LOG
    return frame if short else None


@dataclass(frozen=True, eq=False)
class ChoiceBound(Bound):
    """``e^{log_scale + c y} (p(y) +- error)`` with ``y = -epsilon``, and what is added apart.

    ``relative`` is the error of delta, ``slack`` that of epsilon; ``images``, from below, are logs
    of two terms, with the tilts by which they change.
    """

    side: Side
    frame: Frame
    coefficients: Complex
    log_scale: float
    error: float
    infinite: float
    relative: float
    slack: float
    images: tuple[tuple[float, float], ...]
    composer = "choices"
    between = 0.5

    def log_deltas(self, epsilons: Float) -> Float:
        """Logs of the bound on delta at some epsilons, rounded outwards."""
        y = self.sign * self.slack - np.asarray(epsilons, dtype=float)
        terms = 2.0 * self.coefficients[None]
        terms[0, 0] *= 0.5
        period = self.frame.period
        value = core.wave_sums(terms, 2.0 * math.pi / period, np.mod(y, period))[0]
        # Of frequencies, of arguments of waves within the period, and of their sum.
        size, wave = 2.0 * np.abs(self.coefficients), np.arange(self.coefficients.size)
        rounding = np.abs(y) * float(size @ self.frame.waves)
        rounding += float(size @ (6.0 * wave + (size.size + 64.0)))
        value += self.sign * (self.error + 4.0 * UNIT * rounding)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.log_scale + self.frame.tilt * y + np.log(np.maximum(value, 0.0))
        found = found + self.sign * self.relative
        if self.infinite > 0.0:
            found = np.logaddexp(found, math.log(self.infinite))
        for log_norm, tilt in self.images:
            found = _less(found, log_norm + tilt * y)
        return np.asarray(np.minimum(found, 0.0))


def _less(found: Float, term: Float) -> Float:
    """Log of the difference of two exponentials; of nothing where there is none."""
    gap = np.minimum(term - found, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(found > term, found + np.log(-np.expm1(gap)), -np.inf))


def symbols(
    side: Side,
    frame: Frame,
    measures: Sequence[Measure],
    log_moments: Float,
    log_scale: float,
    most: float,
) -> tuple[Complex, Float]:
    """``E_P[e^{(c + i w) L}] / e^log_scale`` for each measure and frequency; their errors.

    What is farther behind the largest log moment is left out from below, and moved up from above.
    """
    made, error, tilt = [], np.zeros(frame.degree + 1), frame.tilt
    least = float(log_moments.max()) - most
    reach = most if side == "upper" else math.inf
    for measure, log_moment in zip(measures, log_moments.tolist(), strict=True):
        if side == "lower" and not log_moment >= least:
            continue
        loss, behind = measure.loss, log_scale - log_moment
        moved = max(behind - reach, 0.0) / tilt
        with np.errstate(divide="ignore"):  # of no mass; a small one may have a large power
            weight = np.exp(np.log(measure.mass) + (tilt * loss - log_moment))
        sums, rounding = frame.transformed(loss, weight)
        size = float(weight @ np.abs(loss))
        logs = tilt * size + abs(log_moment) + abs(log_scale)
        rounding = rounding + 4.0 * UNIT * (logs + frame.waves * (size + moved))
        scaled = math.exp(-min(behind, reach))
        made.append(sums * (scaled * np.exp(1j * moved * frame.waves)))
        error = np.maximum(error, scaled * rounding)
    return np.array(made), error


def choice_bound(
    side: Side, steps: Steps, found: tuple[Frame, float, float], fineness: int, allowed: float
) -> tuple[ChoiceBound, float] | None:
    """A bound of one side, and the work that it took; None if it takes too much.

    What `best_frame` found is used with a `Recursion` whose error may be a share of the function.
    """
    if steps.uncertain:
        return None
    frame, farther, size = found
    shifts, count, tilt, period = steps.shifts, steps.counts[0], frame.tilt, frame.period
    logs, others = np.split(steps.moments(tilt)[:, 0], [len(shifts)])
    log_scale, drift, variance = steps.each(tilt)[0].tolist()
    log_scale += _sum_rounding(shifts)
    once, doubt = symbols(side, frame, shifts, logs, log_scale, _BEHIND / count)
    start, error = hinge(frame, side)
    made = Recursion(side, frame, once, doubt, start, error, fineness, drift)
    if not made.advance(count, allowed * size, variance, MOST_WORK):
        return None
    scale = count * log_scale
    for k, (other, uses) in enumerate(zip(steps.others, steps.counts[1:], strict=True)):
        scaled = float(others[k]) + _sum_rounding([other])
        factor, more = symbols(side, made.frame, [other], others[k : k + 1], scaled, math.inf)
        made.error += total_of(power_error(factor[0], more, uses) * made.coefficients)
        made.coefficients = made.coefficients * np.exp(uses * np.log(factor[0]))
        scale += uses * scaled
    infinite = relative = slack = moments = 0.0
    alike = [shifts, *((other,) for other in steps.others)]
    for measures, uses in zip(alike, steps.counts, strict=True):
        infinite += uses * max(measure.infinite for measure in measures)
        relative += uses * (max(measure.rounding for measure in measures) + 4.0 * UNIT)
        slack += uses * max(measure.slack for measure in measures)
        moments += uses * _sum_rounding(measures)
    relative += 16.0 * UNIT * (1.0 + abs(scale) + tilt * period)
    slack += 4.0 * UNIT * count * abs(drift)
    images: tuple[tuple[float, float], ...] = ()
    if side == "lower":
        before = steps.cumulants(farther)[0] + moments + relative
        before += _log_image((farther - tilt) * period)
        infinite, images = 0.0, ((_log_image(tilt * period), 0.0), (before, farther))
    bound = ChoiceBound(
        side, made.frame, made.coefficients, scale, made.error, infinite, relative, slack, images
    )
    return bound, made.work


def _log_image(power: float) -> float:
    """Log of ``1/(e^power - 1)``, rounded up."""
    return -power - math.log1p(-math.exp(-power)) + 1e-9


def _sum_rounding(measures: Sequence[Measure]) -> float:
    """Of the logarithm of a moment."""
    return 16.0 * UNIT * (max(measure.loss.size for measure in measures) + 32)
