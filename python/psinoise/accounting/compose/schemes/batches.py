"""Batches of fixed size, drawn without replacement, under "replace": a bound from above.

A batch of ``m`` of ``n`` records is drawn uniformly, ``q = m/n``, and neighbors differ in the value
of one record. With probability ``q`` it is in the batch, and the outputs are those of ``P_1``, or
``Q_1`` for the neighbor; otherwise both give the same outputs ``C``. This is no Poisson sampling:
where the record is not in the batch another one is in its place.

*Theorem* (B. Balle, G. Barthe and M. Gaboardi, "Privacy amplification by subsampling", 2018, for
sampling without replacement under substitution). Let ``H_gamma`` be the largest profile of batches
in which one record is replaced. Then for ``gamma >= 1`` and ``gamma' = 1 + q (gamma - 1)`` the
sampled profile at ``gamma'`` is at most ``q H_gamma``, for both orders of the neighbors.

*Proof.* With ``beta = gamma'/gamma``, which is at most 1,

    ``H_gamma'((1 - q) C + q P_1, (1 - q) C + q Q_1) = q H_gamma(P_1, (1 - beta) C + beta Q_1)``
    ``<= q ((1 - beta) H_gamma(P_1, C) + beta H_gamma(P_1, Q_1))``

since ``(1 - q) - gamma' (1 - q) = -q gamma (1 - beta)`` and ``q gamma' = q gamma beta``, and by
convexity. Batches with the record and batches without it are coupled: the record is replaced by
one drawn from those outside. So coupled, batches of ``P_1`` and ``C``, and those of ``P_1`` and
``Q_1``, differ in one record, and joint convexity bounds both terms. QED

*A pair with this profile.* Let ``H`` be the profile of ``(P, Q)``, the same in both orders. For
``gamma' >= 1`` the bound ``h(gamma') = q H_gamma`` is that of the pair
``((1 - q) Q + q P, Q)`` of `Pair`. For ``gamma' < 1`` it is
``h(gamma') = 1 - gamma' + gamma' h(1/gamma')``, as for every pair that is the same in both orders.
So losses above 0 are those of that pair, losses below 0 mirror them (a loss ``-l`` has the mass
``e^-l`` times that of ``l``), and what is left of the mass is at 0. Something is: at 1 the slope of
``H`` is ``-Q(P > Q)``, and ``P(P > Q) = Q(P < Q) <= 1 - Q(P > Q)``, so that the masses on both
sides of 0 add up to at most 1. Losses above 0 that are raised raise ``h``, so that an upper bound
on them is one on the whole. A pair whose profile is nowhere below that of a step dominates it, in
every composition (Zhu, Dong and Wang 2022, theorem 10).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from psinoise._kept import kept
from psinoise.accounting.compose.direct.plan import first_edges
from psinoise.accounting.compose.measures.dense import Dense, Measured, atoms_source, dense
from psinoise.accounting.compose.measures.measure import apart, covering, measure_of
from psinoise.accounting.loss.cells import CellPair
from psinoise.accounting.loss.pairs import Direction, Pair
from psinoise.accounting.loss.quadrature import REACHES
from psinoise.numerics.distinct import distinct

_NODES = 8192
_LEAST_BIN = 4.0


@dataclass(frozen=True)
class Batches(Measured):
    """One batch: the pair of its release if a record is replaced, with ``q`` as sampling rate."""

    pair: Pair | CellPair

    @property
    def attained(self) -> None:
        """Nothing is known from below."""
        return None

    @property
    def symmetric(self) -> bool:
        return True

    def infinite(self, direction: Direction) -> float:
        return self.pair.infinite("remove")

    def largest_loss(self, direction: Direction) -> float:
        return max(self.pair.largest_loss("remove"), 0.0)

    @property
    def total_variation_bound(self) -> float:
        return self.pair.total_variation_bound

    def sources(self, direction: Direction) -> tuple[Dense, Dense]:
        """The bound, twice."""
        found = _source(self.pair)
        return found, found


@kept()
def _source(pair: Pair | CellPair) -> Dense:
    source = dense(pair, "remove", REACHES[-1])
    every = np.ones(source.log_mass.size, dtype=bool)
    source = source.rounded_within(every)
    low, high = covering(source, every)
    if not high > 0.0:  # noise that is smaller than the sensitivity has such pairs
        return atoms_source(np.zeros(1), np.zeros(1))
    # Small losses are close to 0 in proportion to their size.
    positive = first_edges(0.0, high, 0.0, 1e-3 * high, _NODES)
    edges = distinct(np.concatenate([[min(low, -1e-300), 0.0], positive]))
    edges = apart(edges, _LEAST_BIN * source.rounding)
    atoms = source.atom_loss
    if 0 < atoms.size <= _NODES:
        edges = distinct(np.concatenate([edges, atoms]))
    made, _ = measure_of(source, every, ~every, edges, "upper")
    above = made.loss > 0.0
    loss, mass = made.loss[above] + made.slack, made.mass[above] * (1.0 + made.rounding)
    mirrored = mass * np.exp(-loss)
    rest = max(1.0 - float(mass.sum() + mirrored.sum()) - pair.infinite("remove"), 0.0) + 1e-12
    # What lies at 0 may lie above it by the slack. It adds less to the bound, on both sides of 1,
    # than what is left there adds if that is raised by more in proportion.
    raised = 2.0 * made.slack * float(made.mass[~above].sum()) / rest
    log_mass = np.log(np.concatenate([mirrored[::-1], [rest], mass]) + 5e-324)
    found = atoms_source(log_mass, np.concatenate([-loss[::-1], [raised], loss]))
    return dataclasses.replace(found, beyond=made.infinite)
