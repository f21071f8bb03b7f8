"""Vector queries: independent noise of one law on each of ``m`` coordinates.

Neighbors move the query by a vector ``a`` in a ball of radius ``s``; ``P_a`` is the law of the
output moved by ``a``. Each case below is reduced to one-dimensional pairs, or refused.

*Gaussian noise, any norm.* The noise is invariant under rotations, so that ``(P_a, P_0)`` is the
one-dimensional pair with shift ``|a|_2``, and the worst shift is the largest (lemma of ``pairs``):
``s`` in the l2 ball; ``s`` in the l1 ball, at its corners; ``s sqrt(m)`` in the l-infinity ball, at
its corners. Sampling acts on the whole output: its profile is an increasing function of the
unsampled one (``pairs``), and the lemma of ``adjacency`` holds for vectors.

*Any unimodal noise, l-infinity, no sampling.* ``P_a`` and ``P_0`` are products over the
coordinates. Each factor is dominated by ``(T_s p, p)``, and products of dominating pairs dominate
(Zhu, Dong and Wang 2022, theorem 10): ``m`` uses of the one-dimensional pair, attained at
``a = (s, ..., s)``.
With sampling one coin decides about all coordinates at once, and these are not independent uses
with a coin each: refused.

*Laplace noise, l1.* The worst ``a`` moves a single coordinate by ``s``.

*Proof.* Let the scale be 1. By induction over the coordinates (products of dominating pairs
dominate) and by the lemma of ``pairs`` it is enough that a shift by ``(a_1, a_2)``, both positive,
is dominated by the one-dimensional shift ``a = a_1 + a_2``. The likelihood ratio ``T_b p/p`` at
``x`` is ``exp(2 w - b)`` with ``w = min(max(x, 0), b)``. Hence the ratio of the two coordinates is
``exp(2 w - a)`` with ``w = w_1 + w_2`` in ``[0, a]``: the same function of ``w`` as for a single
coordinate with shift ``a``, and only the laws of ``w`` under ``p`` differ. The law of ``w`` for a
shift ``b`` is ``e^{-w}/2`` times the measure ``D(0) + D(b) + dw`` on ``[0, b]``, ``D`` unit atoms.
Since ``e^{-w_1} e^{-w_2} = e^{-w}``, the law for ``(a_1, a_2)`` is ``e^{-w}/4`` times the
convolution of two such measures:

    ``D(0) + D(a_1) + D(a_2) + D(a) + 2 dw + (the convolution of the two intervals)``.

It exceeds twice the measure of the single coordinate by ``D(a_1) + D(a_2)`` and that convolution,
all inside ``(0, a)``, and falls short of it by ``D(0) + D(a)``, at the ends. Let ``h`` be convex
and ``l`` the chord of ``h`` between the extreme likelihood ratios ``e^{-a}`` and ``e^a``. Both laws
have mass 1 and mean likelihood ratio 1, so that the expectations of ``h`` differ by those of
``h - l``, which is 0 at the ends and at most 0 inside: the law of ``(a_1, a_2)`` has the smaller
expectation. With ``h(y) = (y - gamma)^+``: the smaller profile. QED

Sampling is covered: the sampled profile increases with the unsampled one, and the lemma of
``adjacency`` holds for vectors.

*Anything else* (other laws with an l1 or l2 bound) has no known worst direction: refused.
"""

from __future__ import annotations

import math
from typing import Literal

from psinoise import _validate
from psinoise.accounting.loss.cells import CellLaw
from psinoise.accounting.loss.pairs import Law
from psinoise.errors import DomainError
from psinoise.noise import Gaussian, Laplace

Norm = Literal["linf", "l1", "l2"]
_NORMS = ("linf", "l1", "l2")


def check_dimension(dimension: int) -> int:
    """A positive number of coordinates."""
    dimension = _validate.count("dimension", dimension)
    if dimension == 0:
        raise DomainError("dimension must be at least 1, got 0")
    return dimension


def check_norm(norm: str) -> str:
    """One of "linf", "l1", "l2"."""
    return _validate.choice("norm", norm, _NORMS)


def one_dimensional(
    noise: Law | CellLaw, sensitivity: float, dimension: int, norm: str, sampling_rate: float
) -> tuple[float, int]:
    """Sensitivity and number of one-dimensional uses that dominate one use on a vector.

    Raises
    ------
    DomainError
        where the worst direction is not known, or the uses would share a coin
    """
    if dimension == 1:
        return sensitivity, 1
    if isinstance(noise, Gaussian):
        return sensitivity * (math.sqrt(dimension) if norm == "linf" else 1.0), 1
    if norm == "l1" and isinstance(noise, Laplace):
        return sensitivity, 1
    if norm != "linf":
        proven = "Gaussian" if norm == "l2" else "Gaussian and Laplace"
        raise DomainError(
            f"norm must be 'linf' for this noise (for {norm!r} the worst direction is proven for "
            f"{proven} noise only), got {noise!r} in {dimension} dimensions"
        )
    if 0.0 < sampling_rate < 1.0:
        raise DomainError(
            "sampling_rate must be 1 for this noise on a vector with norm 'linf' (one coin decides "
            "about all coordinates; proven for Gaussian noise only), "
            f"got {sampling_rate!r} with {noise!r} in {dimension} dimensions"
        )
    return sensitivity, dimension
