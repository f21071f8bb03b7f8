"""Lower bounds on delta from outputs alone: events on low bits, and a classifier that is trained.

For every event ``E`` and neighbors ``x``, ``y``, an (epsilon, delta)-private mechanism has
``delta >= P_x(E) - e^epsilon P_y(E)``. The probabilities are bounded by Clopper and Pearson's
method, so that a private mechanism is accused with at most the probability that is asked for, and
a mechanism that leaks is convicted whatever its accountant says.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

#: Chance that a private mechanism is accused by one event.
FALSE_ALARM = 1e-9


def delta_bound(hits, trials, other_hits, other_trials, epsilon):
    """What delta must be at least, but for a chance of FALSE_ALARM."""
    likely = stats.beta.ppf(0.5 * FALSE_ALARM, hits, trials - hits + 1) if hits else 0.0
    unlikely = stats.beta.isf(0.5 * FALSE_ALARM, other_hits + 1, other_trials - other_hits)
    unlikely = 1.0 if other_hits == other_trials else unlikely
    return float(likely - math.exp(epsilon) * unlikely)


# -- events on low bits ----------------------------------------------------------------------------


def last_bit(outputs):
    """Exponent of the lowest bit that is set; a large one for 0."""
    mantissas, exponents = np.frexp(outputs)
    whole = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
    # A power of two is exact in float64.
    lowest = np.log2((whole & -whole).astype(np.float64) + (whole == 0))
    return np.where(whole == 0, 2000, lowest.astype(np.int64) + exponents - 53)


def low_bit_events(outputs):
    """For each event, which outputs are in it: "has bits below 2^-k", and its complement."""
    last = last_bit(outputs)
    for place in range(-70, -40):
        yield last < place
        yield last >= place


def low_bit_attack(outputs, others, epsilon):
    """The largest bound on delta over the events and both directions."""
    events = zip(low_bit_events(outputs), low_bit_events(others), strict=True)
    return max(
        delta_bound(*pair, epsilon)
        for hits, other in events
        for pair in (
            (hits.sum(), hits.size, other.sum(), other.size),
            (other.sum(), other.size, hits.sum(), hits.size),
        )
    )


# -- a black box -----------------------------------------------------------------------------------


class BitClassifier:
    """Naive Bayes on the 64 bits of an output: the lower 52 are taken to be independent given the
    upper twelve, which are sign and exponent."""

    def __init__(self, outputs, others):
        both = [self._features(outputs), self._features(others)]
        self._groups = np.unique(np.concatenate([groups for groups, _ in both]))
        self._log_odds = self._trained(*both[0]) - self._trained(*both[1])

    def scores(self, outputs):
        """Log odds that an output is of the first kind."""
        groups, bits = self._features(outputs)
        where = np.minimum(np.searchsorted(self._groups, groups), self._groups.size - 1)
        odds = self._log_odds[where]
        score = odds[:, 0] + (bits * odds[:, 1:53]).sum(axis=1) + ((1 - bits) * odds[:, 53:]).sum(1)
        return np.where(self._groups[where] == groups, score, 0.0)

    def _trained(self, groups, bits):
        where = np.searchsorted(self._groups, groups)
        number = np.bincount(where, minlength=self._groups.size).astype(np.float64)
        ones = np.zeros((self._groups.size, 52))
        for bit in range(52):
            ones[:, bit] = np.bincount(where, bits[:, bit], minlength=self._groups.size)
        # One observation more of each kind, as Laplace counted.
        share = (ones + 1.0) / (number[:, None] + 2.0)
        prior = (number + 1.0) / (number.sum() + self._groups.size)
        return np.column_stack([np.log(prior), np.log(share), np.log1p(-share)])

    @staticmethod
    def _features(outputs):
        words = np.ascontiguousarray(outputs, dtype=np.float64).view(np.uint64)
        places = np.arange(52, dtype=np.uint64)
        bits = ((words[:, None] >> places) & np.uint64(1)).astype(np.uint8)
        return (words >> np.uint64(52)).astype(np.int64), bits


def black_box_audit(outputs, others, epsilon):
    """Train on one half; the other half says what delta must be at least."""
    half = outputs.size // 2
    classifier = BitClassifier(outputs[:half], others[:half])
    training = [classifier.scores(values[:half]) for values in (outputs, others)]
    # The threshold that pays most on the training half: of epsilon, or above what is certain.
    grid = np.quantile(np.concatenate(training), np.linspace(0.0, 1.0, 201))
    best = -math.inf
    found = 0.0
    for threshold in grid:
        gain = (training[0] > threshold).mean() - math.exp(epsilon) * (
            training[1] > threshold
        ).mean()
        if gain > best:
            best, found = gain, threshold
    hits, other = (classifier.scores(values[half:]) > found for values in (outputs, others))
    return delta_bound(hits.sum(), hits.size, other.sum(), other.size, epsilon)
