"""What bounds on lattices are asked for, and compositions of their measures by NumPy alone."""

from __future__ import annotations

import math

import numpy as np
from profile_oracles import even_edges

import psinoise as pn
from psinoise.accounting.compose.frequencies.target import Target
from psinoise.accounting.compose.measures.bins import loss_bins
from psinoise.accounting.compose.measures.dense import dense
from psinoise.accounting.estimate.estimate import start_at_epsilon
from psinoise.accounting.loss.pairs import Pair


def target_of(steps, delta, epsilon, width):
    """To be sharp where a composition has a delta."""
    uses = sum(count for _, count in steps)
    found, saddle = start_at_epsilon(steps, "remove", epsilon, uses)
    return Target(steps, "remove", math.log(delta), epsilon, saddle.c, width, found)


def plain_log_deltas(parts, epsilons, size=2**17):
    """Logs of delta of measures on a lattice, by plain transforms: about 13 digits."""
    spectrum, step, tilt = 1.0, parts[0][0].step, parts[0][0].tilt
    for measure, count in parts:
        spectrum = (
            spectrum * np.fft.rfft(np.bincount(measure.index % size, measure.mass, size)) ** count
        )
    mean = sum(count * (m.moments[0] - m.offset) for m, count in parts) / step
    first = round(mean) - size // 2
    masses = np.roll(np.fft.irfft(spectrum, size), -(first % size))
    losses = math.fsum(n * m.offset for m, n in parts) + (first + np.arange(size)) * step
    log_norm = math.fsum(n * m.log_norm for m, n in parts)
    found = []
    for epsilon in epsilons:
        y = np.maximum(losses - epsilon, 0.0)
        value = float(masses @ (np.exp(-tilt * y) * -np.expm1(-y)))
        found.append(math.log(value) + log_norm - tilt * epsilon)
    return found


def coarse_bins():
    """Of a sampled Gaussian loss, on nodes that are far apart."""
    pair = Pair(pn.Gaussian(std=1.0), 1.0, 0.3)
    source = dense(pair, "remove", 80.0)
    chosen = np.ones(source.log_mass.size, bool)
    edges = even_edges(source, 0.05)
    return loss_bins(source, chosen, ~chosen, (0.05, 0.0), edges, 0.0, 0.0)
