"""Compositions in which rare, large losses decide: they are told apart by their largest loss.

With a small sampling rate and few uses the loss is heavy-tailed. Most of ``E[exp(c L)]`` may come
from outcomes too rare to matter for delta; then the integrand is many orders of magnitude larger
than the integral, and digits cancel. Or the losses that matter are a thousand times as large as
the typical one, whose transform lives a thousand times as far: the contour is long.

So the losses of each step are divided by size, by cuts at ever larger losses. With ``psi_k`` the
transform of those below the cut ``k``, and ``psi_K = phi``, the sum telescopes:

    ``prod phi^n = prod psi_0^n + sum_k (prod psi_{k+1}^n - prod psi_k^n)``.

A term is the transform of those compositions whose largest loss lies between two sizes; it is
integrated along a line of its own, through its own saddle point, in steps and to an end that suit
its size. Every term contributes a positive amount to delta: nothing cancels between them. As the
cuts are smooth (``windows``), a term decays like the transform of a smooth density as wide as its
cut, however narrow the smaller losses are. Within one size the density of the loss is close to
log-linear, and a saddle point represents it well.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.contour.atoms import Atoms
from psinoise.accounting.contour.composition import Composition, Saddle, Transform
from psinoise.accounting.contour.integrand import Complex, damping, log_power, ratios, tilted_sums
from psinoise.accounting.contour.line import (
    LARGEST_ERROR,
    STEPS_PER_DEVIATION,
    Line,
    step_of,
    trace,
)
from psinoise.accounting.loss.measure import Cumulants, LossMeasure
from psinoise.accounting.loss.windows import Cut, Window

# The smallest cut: so many losses are expected to be larger, but not more than a fifth of all.
_EXPECTED = 1.0
_SHARE = 0.2
_MOST_CUTS = 64
# A cut ends at this many times the loss where it begins, or where losses are rarer by this, as a
# logarithm: within one size the logarithm of their density should not bend by more than a few.
_SPREAD = 4.0
_STEEPEST = 60.0
_LEAST_SPREAD = 1.05
# Terms below this share of delta, as a logarithm, are left out.
_NEGLIGIBLE = -40.0
# A term is followed to this over the width of its cut at first: where most have died.
_REACH = 240.0
_FURTHEST = 8
_MOST_STEPS = 2**15
# Error of delta from one line that is not asked to be smaller.
_SMALL_ERROR = 1e-12
# Tilts beside that of the saddle point, what may cancel there, as a logarithm, and how much longer
# the steps must be.
_LESS_TILT = (0.95, 0.9, 0.8)
_LARGEST_RISE = 5.0
_LONGER = 1.5
# Shares of large losses so small that log(1 + x) = x to double precision.
_LINEAR = -37.0


@dataclass(frozen=True, eq=False)
class SizeClass(Transform):
    """Compositions whose largest loss is of one size.

    Attributes
    ----------
    below : the composition of smaller losses alone
    own : the losses of this size, of each step
    cut : where they begin
    """

    below: Composition
    own: tuple[LossMeasure, ...]
    cut: Cut

    def saddle(self, c: float) -> Saddle:
        """Value and derivatives of ``sum n log psi_{k+1} - sum n log psi_k``, exponentiated.

        With ``r_i`` the ratio of a step's own losses to the smaller ones at ``c`` the exponent is
        ``K_k + log(e^s - 1)`` with ``s = sum n_i log(1 + r_i)``.
        """
        smaller = self.below.saddle(c)
        own = [measure.tilted_moments(c) for measure in self.own]
        log_ratios = _log_ratios(own, smaller)
        log_sum = self._log_sum(log_ratios)
        # n_i r_i/(1 + r_i)/(1 - e^-s), which is how many uses are of this size if any is.
        log_any = _log_expm1(log_sum) - math.exp(log_sum)
        mean, square, spread = 0.0, 0.0, 0.0
        for part, before, log_ratio, count in zip(
            own, smaller.parts, log_ratios, self.below.counts, strict=True
        ):
            log_share = -float(np.logaddexp(0.0, -log_ratio))
            expected = math.exp(math.log(count) + log_share - log_any)
            distance = part.mean - before.mean
            mean += expected * distance
            rest = -math.expm1(log_share)
            square += expected * (part.variance - before.variance + rest * distance**2)
        spread = mean**2 * math.exp(-math.exp(log_sum))
        return Saddle(
            c,
            smaller.parts,
            smaller.value + _log_expm1(log_sum),
            smaller.mean + mean,
            max(smaller.variance + square - spread, 0.0),
        )

    def line(self, saddle: Saddle, epsilon: float, error: float) -> Line:
        """The integrand as far as it lives, or until delta is right to some relative error."""
        saddle, step = self._beside(saddle, epsilon)
        steps = int(min(max(_REACH / (self.cut.width * step), 64.0), _MOST_STEPS))
        most = min(_FURTHEST * steps, _MOST_STEPS)
        tapered: Line | None = None
        while True:
            line = (self._resolved(saddle, steps * step) or self)._evaluate(saddle, step, steps)
            # Where all but rounding has died, more steps are of no use.
            if line.doubt <= max(error * line.value(epsilon), 10.0 * line.rounding):
                return line
            tapered = line.cut(tapered, epsilon)
            if steps >= most or tapered.doubt <= error * tapered.value(epsilon):
                return min(line, tapered, key=lambda found: found.doubt)
            steps *= 2

    def _beside(self, saddle: Saddle, epsilon: float) -> tuple[Saddle, float]:
        """A point beside the saddle point, if longer steps may be taken there; and the step.

        At the saddle point two large losses may weigh about as much as one, and three as two: the
        aliases are far. With a little less of a tilt they are near, and little more cancels.
        """
        step = step_of(self, saddle, epsilon)
        if step * math.sqrt(saddle.curvature) * STEPS_PER_DEVIATION > 1.0 / _LONGER:
            return saddle, step
        top = saddle.log_height(epsilon)
        for factor in _LESS_TILT:
            other = self.saddle(factor * saddle.c)
            other_step = step_of(self, other, epsilon)
            if other.log_height(epsilon) > top + _LARGEST_RISE:
                break
            if other_step > _LONGER * step:
                saddle, step = other, other_step
        return saddle, step

    def _log_sum(self, log_ratios: list[float]) -> float:
        """``log sum n_i log(1 + r_i)``."""
        counts = self.below.counts
        if max(log_ratios) < _LINEAR:
            return float(np.logaddexp.reduce(np.log(counts) + np.array(log_ratios)))
        terms = zip(counts, log_ratios, strict=True)
        return math.log(math.fsum(n * float(np.logaddexp(0.0, x)) for n, x in terms))

    def _resolved(self, saddle: Saddle, frequency: float) -> SizeClass | None:
        below = self.below.resolved(saddle, frequency)
        own = Composition(self.own, self.below.counts)
        parts = tuple(measure.tilted_moments(saddle.c) for measure in self.own)
        finer = own.resolved(dataclasses.replace(saddle, parts=parts), frequency)
        if below is None or finer is None:
            return None
        return SizeClass(below, finer.measures, self.cut)

    def _evaluate(self, saddle: Saddle, step: float, steps: int) -> Line:
        """``prod psi_k^n ((psi_{k+1}/psi_k)^n - 1)`` on ``c + iR`` relative to ``t = 0``."""
        c = saddle.c
        smaller = self.below.saddle(c)
        log_ratios = _log_ratios([measure.tilted_moments(c) for measure in self.own], smaller)
        log_sum = self._log_sum(log_ratios)
        linear = max(log_ratios) < _LINEAR
        exponent = np.zeros(steps, dtype=np.complex128)
        sums = np.zeros(steps, dtype=np.complex128)
        for measure, log_ratio, part, (ratio, count) in zip(
            self.own,
            log_ratios,
            smaller.parts,
            ratios(self.below, smaller, step, steps),
            strict=True,
        ):
            exponent += log_power(ratio, count)
            if log_ratio == -math.inf:
                continue
            tilted = Cumulants(log_ratio + part.value, part.mean, 0.0)
            turned = (1.0 + tilted_sums(measure, c, tilted, count, step, steps)[0]) / (1.0 + ratio)
            if linear:
                sums += math.exp(math.log(count) + log_ratio - log_sum) * turned
            elif log_ratio <= 0.0:
                sums += log_power(math.exp(log_ratio) * turned, count)
            else:
                sums += count * log_ratio + log_power(math.exp(-log_ratio) + turned - 1.0, count)
        if linear:
            values: Complex = np.exp(exponent) * sums
        else:
            at_zero = math.exp(log_sum)
            remaining: Complex = np.asarray(np.expm1(-sums), dtype=np.complex128)
            values = np.exp(exponent + (sums - at_zero)) * (remaining / math.expm1(-at_zero))
        # The line measures losses from the mean of the smaller ones.
        whole = dataclasses.replace(
            saddle, value=smaller.value + _log_expm1(log_sum), mean=smaller.mean
        )
        frequencies = step * np.arange(steps, dtype=np.float64)
        integrand: Complex = values * damping(whole, frequencies)
        # Beyond the end the integrand falls at least as fast as 1/(z (z + 1)).
        left = float(np.abs(integrand[-8:]).max()) * step * steps / math.pi
        return Line(whole, step, integrand, Atoms.none(), left)


@dataclass(frozen=True, eq=False)
class DividedProfile:
    """The sum of several lines."""

    lines: tuple[Line, ...]

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Log delta and its derivative in epsilon."""
        values = [line.log_delta(epsilon) for line in self.lines]
        total = float(np.logaddexp.reduce([value for value, _ in values], initial=-np.inf))
        if total == -math.inf:
            return total, -1.0
        return total, math.fsum(math.exp(value - total) * slope for value, slope in values)

    def error(self, epsilon: float) -> float:
        """Estimated relative error of delta; ``inf`` if it cannot be told."""
        total = self.log_delta(epsilon)[0]
        error = 0.0
        for line in self.lines:
            value = line.log_delta(epsilon)[0]
            if value == -math.inf:
                # Nothing is left of it: its modulus bounds what it might have been.
                error += math.exp(min(line.log_modulus(epsilon) - total, 700.0))
            else:
                error += line.error(epsilon) * math.exp(value - total)
        return error if math.isfinite(total) else math.inf


@dataclass(frozen=True, eq=False)
class Division:
    """A composition, divided by the size of its largest loss.

    Attributes
    ----------
    bulk : the composition of the smallest losses alone
    classes : those whose largest loss is of some size, in rising order
    """

    bulk: Composition
    classes: tuple[SizeClass, ...]

    @classmethod
    def of(cls, composition: Composition) -> Division | None:
        """The division of a composition; None if no loss of it is large."""
        cuts = _cuts(composition)
        if not cuts:
            return None
        windows = [Window(*ends) for ends in itertools.pairwise([*cuts, None])]
        fine = [measure.resolving(cuts) for measure in composition.measures]
        below = [
            Composition(tuple(m.within(Window(None, cut)) for m in fine), composition.counts)
            for cut in cuts
        ]
        own = [tuple(measure.within(window) for measure in fine) for window in windows]
        classes = tuple(
            SizeClass(*parts) for parts in zip(below, own, cuts, strict=True) if _any(parts[1])
        )
        return cls(below[0], classes)

    def _saddles(self, epsilon: float) -> list[tuple[float, Transform, Saddle]]:
        """The terms with their Chernoff bounds, largest first, and their saddle points."""
        terms: list[Transform] = [*self.classes]
        if epsilon < self.bulk.largest_loss:
            terms.append(self.bulk)
        found = []
        for term in terms:
            saddle = term.saddle_at_epsilon(epsilon)
            found.append((saddle.log_chernoff(epsilon), term, saddle))
        return sorted(found, key=lambda entry: -entry[0])

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Log delta by saddle points alone, about right, and its derivative."""
        saddles = [saddle for _, _, saddle in self._saddles(epsilon)]
        values = np.array([saddle.log_delta_at(epsilon) for saddle in saddles])
        total = float(np.logaddexp.reduce(values, initial=-np.inf))
        if total == -math.inf:
            return total, -1.0
        slopes = zip(np.exp(values - total).tolist(), saddles, strict=True)
        return total, -math.fsum(share * saddle.c for share, saddle in slopes)

    def profile(self, epsilon: float) -> DividedProfile:
        """The lines of all terms that matter, through their saddle points for ``epsilon``."""
        total = -math.inf
        lines: list[Line] = []
        for bound, term, saddle in self._saddles(epsilon):
            if bound < total + _NEGLIGIBLE:
                break
            share = math.exp(min(bound - total, 0.0))
            if isinstance(term, SizeClass):
                line = term.line(saddle, epsilon, _SMALL_ERROR / share)
            else:
                line = trace(self.bulk, saddle, epsilon)
            if line.relative_doubt * share > LARGEST_ERROR:
                # Losses that are atoms, or crowd at an end.
                return DividedProfile(())
            lines.append(line)
            total = float(np.logaddexp(total, line.log_delta(epsilon)[0]))
        return DividedProfile(tuple(lines))


def _any(measures: tuple[LossMeasure, ...]) -> bool:
    return any(measure.loss.size for measure in measures)


def _cuts(composition: Composition) -> list[Cut]:
    """Cuts side by side, from where losses begin to be large up to the largest loss of a step."""
    parts = list(zip(composition.measures, composition.counts, strict=True))
    loss = np.concatenate([measure.loss for measure, _ in parts])
    numbers = np.concatenate([measure.log_mass + math.log(count) for measure, count in parts])
    order: NDArray[np.intp] = np.argsort(loss)[::-1]
    loss, numbers = loss[order], np.logaddexp.accumulate(numbers[order])

    def place(number: float) -> float:
        """The loss that is exceeded so often, as a logarithm."""
        return float(loss[min(int(np.searchsorted(numbers, number)), loss.size - 1)])

    expected = math.log(min(_EXPECTED, _SHARE * math.fsum(composition.counts)))
    begin = place(expected)
    while begin <= 0.0 < loss[0]:
        # Most losses are negative: those that are not are large.
        begin, expected = place(expected - 2.0), expected - 1.0
    cuts: list[Cut] = []
    while 0.0 < begin < loss[0] and len(cuts) < _MOST_CUTS:
        rarer = numbers[min(int(np.searchsorted(-loss, -begin)), loss.size - 1)] - _STEEPEST
        end = min(max(place(float(rarer)), _LEAST_SPREAD * begin), _SPREAD * begin)
        cuts.append(Cut(begin, end))
        begin = end
    return cuts


def _log_ratios(own: list[Cumulants], smaller: Saddle) -> list[float]:
    return [part.value - before.value for part, before in zip(own, smaller.parts, strict=True)]


def _log_expm1(log_x: float) -> float:
    """``log(e^x - 1)`` from ``log x``."""
    if log_x < _LINEAR:
        return log_x
    x = math.exp(log_x)
    return x + math.log(-math.expm1(-x))
