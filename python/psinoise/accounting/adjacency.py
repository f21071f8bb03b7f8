"""Which pair dominates one use under each neighboring relation.

*add-remove*: one of the data sets lacks a record of the other. `Pair` has both directions.

*replace*, no sampling: neighbors move the query by any ``|a| <= s``, so that the pair is
``(T_s p, p)`` of `Pair` for every unimodal law, with the *replace* sensitivity ``s``.

*replace*, Poisson sampling: a sampled record moves the query by ``v``, and the one that replaces it
by ``v'``; both depend on the data and are at most the *contribution* ``c``, which must be given.
The sensitivity ``s``, at least ``|v - v'|``, does not tell it: it is ``C`` for records in
``[0, C]`` as in ``[-C/2, C/2]``, and the first case is far worse. With
``P_v = (1 - q) p + q T_v p`` a data set gives ``P_v`` and its neighbor ``P_v'``, each in the same
mixture over the other records that are sampled, whose worst part bounds it (joint convexity of
``H_gamma``).

*Lemma.* Let ``p`` be symmetric and log-concave. For every ``gamma >= 0``

    ``H_gamma(P_v, P_v') = sup over events E of P_v(E) - gamma P_v'(E)``,   ``|v|, |v'| <= c``,

is largest at ``(v, v') = (c, -c)``, and by reflection at ``(-c, c)``: this pair dominates.

*Proof.* Take an event ``E`` and the half-line ``B = (t, inf)`` with ``p(B) = p(E)``. For ``v >= 0``
the ratio ``T_v p / p`` does not fall (log-concavity), so that by Neyman and Pearson
``T_v p(E) <= T_v p(B) = p((t - v, inf)) <= p((t - c, inf)) = T_c p(B)``. For ``v < 0`` the same
holds for the mirror images of ``E`` and ``-v``; hence ``T_v p(E) <= T_c p(B)`` if ``|v| <= c``. For
the complement of ``E``, whose half-line is the mirror image of the complement of ``B``, this says
``T_v' p(E) >= T_{-c} p(B)``. Therefore

    ``P_v(E) - gamma P_v'(E) = (1 - q)(1 - gamma) p(E) + q (T_v p(E) - gamma T_v' p(E))``
    ``<= (1 - q)(1 - gamma) p(B) + q (T_c p(B) - gamma T_{-c} p(B)) = P_c(B) - gamma P_{-c}(B)``,

which is at most ``H_gamma(P_c, P_{-c})``. QED

A pair that dominates each step dominates the composition (Zhu, Dong and Wang 2022, theorem 10).
Of one dimension the proof takes only ``T_v p(E) <= T_c p(B)``: the trade-off function of
``(T_v p, p)`` is nowhere below that of the one-dimensional pair with shift ``c``. This is what
domination without sampling means, so that the lemma holds for all vectors that ``vectors`` reduces
to one dimension. For ``q = 1`` the pair is ``(T_{2c} p, p)``, moved by ``-c``.

Records that move the query to opposite sides attain the bound for ``s >= 2c``. For ``s < 2c`` it
would be a bound still, but what is called a lower bound would be none: refused; who wants it gives
``s = 2c``. So are laws that are not log-concave, for which no half-line is the best event.

Sampling *without replacement* is neither of these (``compose.schemes.batches``): the numbers for
Poisson sampling do not cover it (Lebeda, Regehr, Kamath and Steinke, "Avoiding pitfalls for privacy
accounting of subsampled mechanisms under composition", 2024: an example has ten times the epsilon).
"""

from __future__ import annotations

from psinoise.errors import DomainError


def worst_shift(
    sensitivity: float, contribution: float | None, sampling_rate: float, adjacency: str
) -> tuple[float, bool]:
    """The fields ``sensitivity`` and ``replaced`` of the dominating `Pair`.

    Raises `DomainError` for "replace" with sampling, if the contribution is not given or more than
    half the sensitivity; for "add-remove", if it is more than the sensitivity.
    """
    if adjacency != "replace":
        if contribution is not None and contribution > sensitivity:
            raise DomainError(
                "contribution must be at most the sensitivity for adjacency 'add-remove', where "
                f"both say how far one record moves the query, got {contribution!r} and "
                f"sensitivity {sensitivity!r}"
            )
        return sensitivity, False
    if sampling_rate in (0.0, 1.0):
        return sensitivity, False
    if contribution is None:
        raise DomainError(
            "contribution must be given for adjacency 'replace' with sampling: the worst case is "
            "proven if it is known how far adding one record moves the query, which the "
            f"sensitivity does not tell, got sampling_rate={sampling_rate!r}"
        )
    if sensitivity < 2.0 * contribution:
        raise DomainError(
            "contribution must be at most half the sensitivity for adjacency 'replace' with "
            "sampling (the worst case of other queries is not known; sensitivity=2 * contribution "
            f"gives a bound for them), got {contribution!r} and sensitivity {sensitivity!r}"
        )
    return contribution, True
