"""Adaptive ledgers: the bounds that they add up, the filter, and the odometer.

The oracles are mpmath, brute force over everything that an adversary can choose, and simulation.
"""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import trapezoid

import psinoise as pn
from psinoise.accounting import Accountant
from psinoise.ledger._charge import Charge
from psinoise.ledger._filter import Filter, orders_of
from psinoise.ledger._gaussian import gaussian_parameter, largest_parameter
from psinoise.ledger._moments import log_conversion, log_moments
from psinoise.ledger._spending import Sums, best_order

GAUSSIAN = pn.Mechanism(pn.Gaussian(std=12.0)).on_lattice()
LAPLACE = pn.Mechanism(pn.Laplace(scale=10.0)).on_lattice()
# More charges than any budget here allows: a ledger that never refuses fails a test, and ends.
MANY = 500


def pair_of(mechanism, rate=1.0):
    return mechanism.dominating(rate, "add-remove")[0]


# -- the bounds that are added up ------------------------------------------------------------------


@pytest.mark.parametrize("order", [2, 3, 17])
@pytest.mark.parametrize("rate", [1.0, 0.3, 1e-3])
def test_moments_of_gaussian_noise(order, rate):
    """Against quadratures at 20 digits, in both directions. Kills: a binomial that is off by one.

    What is called the larger direction is at least the other one.
    """
    std = 1.5
    with mpmath.workdps(20):

        def density(x, shift):
            return mpmath.npdf(x, shift, std)

        def mixture(x):
            return (1 - mpmath.mpf(rate)) * density(x, 0) + mpmath.mpf(rate) * density(x, 1)

        places = [-40, 0, 1, order / 2, order, order + 40]
        remove = mpmath.log(
            mpmath.quad(lambda x: mixture(x) ** order * density(x, 0) ** (1 - order), places)
        )
        places = [-order - 40, -order, -order / 2, 0, 1, 40]
        add = mpmath.log(
            mpmath.quad(lambda x: density(x, 0) ** order * mixture(x) ** (1 - order), places)
        )
    found = log_moments(pair_of(pn.Mechanism(pn.Gaussian(std=std)), rate), (order,))
    assert found[0, 0] >= remove
    assert found[0, 0] == pytest.approx(float(remove), rel=1e-10, abs=1e-11)
    assert found[1, 0] >= add


@pytest.mark.parametrize("rate", [1.0, 0.05])
@pytest.mark.parametrize(
    "law", [pn.Laplace(scale=2.0), pn.Gaussian(std=2.0), pn.Cauchy(scale=2.0)], ids=repr
)
def test_moments_on_a_lattice(law, rate):
    """Of the law of the integers, close to the continuous one. Kills: a wrong sign."""
    mechanism = pn.Mechanism(law)
    orders = (2, 5, 8)
    found = log_moments(pair_of(mechanism.on_lattice(), rate), orders)
    sums = Sums.none(orders).plus(Charge.of(mechanism.on_lattice(), 3, rate), "add-remove")
    # Of both directions the worse one.
    assert (sums.worst()[0] >= 3.0 * found.max(axis=0)).all()
    for row, direction in enumerate(("remove", "add")):
        for column, order in enumerate(orders):
            expected = _quadrature(law, rate, order, direction)
            assert found[row, column] == pytest.approx(expected, rel=2e-3, abs=1e-9)


def _quadrature(law, rate, order, direction):
    x = np.concatenate([-np.geomspace(1e7, 1e-7, 50_000), np.geomspace(1e-7, 1e7, 50_000)])
    x = np.unique(np.concatenate([x, x + 1.0]))
    base = law.logpdf(x)
    mixed = np.logaddexp(
        math.log1p(-rate) + base if rate < 1.0 else np.full(x.size, -np.inf),
        math.log(rate) + law.logpdf(x - 1.0),
    )
    p, q = (mixed, base) if direction == "remove" else (base, mixed)
    return math.log(trapezoid(np.exp(order * p + (1 - order) * q), x))


def test_what_has_no_bound_is_infinite():
    """Kills: a quadrature where a bound is promised; moments of a law with infinite losses."""
    for mechanism, rate in [
        (pn.Mechanism(pn.Airy(mean_abs=3.0)), 1.0),
        (pn.Mechanism(pn.UniformAtom(delta=1e-3)).on_lattice(), 1.0),
    ]:
        assert np.isinf(log_moments(pair_of(mechanism, rate), (2, 8))).all()
        assert math.isinf(gaussian_parameter(pair_of(mechanism, rate)))
    assert math.isinf(gaussian_parameter(pair_of(GAUSSIAN, 0.5)))


@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_a_largest_loss_bounds_all_moments(rate):
    """Kills: noise that is refused though epsilon of it is known; a bound that is below."""
    laplace = pn.Mechanism(pn.Laplace(scale=3.0))
    found = log_moments(pair_of(laplace, rate), (2, 8))
    for row, way in zip(found, ("remove", "add"), strict=True):
        divergences = laplace.renyi_divergence([2.0, 8.0], 1, rate, way)
        assert (row >= np.array([1.0, 7.0]) * divergences).all()
        assert (row <= np.array([1.0, 7.0]) * laplace.pure_epsilon() * (1.0 + 1e-9)).all()


@pytest.mark.parametrize(
    ("law", "sensitivity"),
    [
        (pn.Gaussian(std=12.0), 1.0),
        (pn.Gaussian(std=12.0), 0.3),
        (pn.Gaussian(std=0.5), 1.0),
        (pn.Laplace(scale=5.0), 1.0),
        (pn.Airy(mean_abs=5.0), 1.0),
        (pn.Cauchy(scale=5.0), 1.0),
        (pn.DiscreteLaplace(epsilon=1.0), 1.0),
    ],
    ids=repr,
)
def test_gaussian_parameters_dominate(law, sensitivity):
    """One use has no more delta than the Gaussian pair, at every epsilon; and touches it.

    Kills: a quantile of the wrong law, a sum from the wrong end.
    """
    mechanism = pn.Mechanism(law, sensitivity).on_lattice()
    mu = gaussian_parameter(pair_of(mechanism))
    ideal = pn.Mechanism(pn.Gaussian(std=1.0), mu)
    smaller = pn.Mechanism(pn.Gaussian(std=1.0), 0.99 * mu)
    epsilons = np.linspace(0.0, 8.0 * mu, 801)
    found = mechanism.profile(epsilons)
    assert (found.lower <= ideal.profile(epsilons).upper * (1.0 + 1e-9) + 1e-17).all()
    assert (found.upper > smaller.profile(epsilons).lower).any()
    if law == pn.Gaussian(std=12.0):
        assert mu == pytest.approx(mechanism.cells * mechanism.grid / 12.0, rel=1e-5)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (1.0, 1e-6),
        (1e-2, 1e-9),
        (100.0, 1e-5),
        (1.0, 0.5),
        (1.0, 1e-300),
        (1e4, 1e-9),
        (1e-9, 1e-20),
    ],
)
def test_gaussian_parameters_of_budgets(epsilon, delta):
    """Below the truth, and not by much. Kills: a difference that cancels."""

    def exact(mu):
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
            -mu / 2 - epsilon / mu
        )

    with mpmath.workdps(60):
        mu = mpmath.mpf(largest_parameter(epsilon, delta))
        assert exact(mu) <= delta
        # A small mu is a small difference of large ratios.
        assert exact(mu * (1 + mpmath.mpf(10) ** (-6 if mu > 1e-6 else -4))) > delta
    assert largest_parameter(epsilon, 0.0) == 0.0


# -- the filter ------------------------------------------------------------------------------------


@pytest.mark.deep
def test_the_filter_is_kept_by_an_adversary():
    """Brute force: two steps of all choices, the second by the result of the first.

    Randomized response with few outcomes has losses that can be added up exactly. For every first
    mechanism, and every way to choose the second one by its result among those that pass, the delta
    of both together is within the budget. Kills: conditions without shares of delta (by their sum,
    below), and limits that are too large by a factor.
    """
    epsilon, delta = 0.6, 0.05
    kinds = [
        pn.Mechanism(pn.DiscreteLaplace(epsilon=e)).on_lattice() for e in (0.05, 0.2, 0.35, 0.5)
    ]
    choices = [(kind, count) for kind in kinds for count in (1, 2, 4)]
    checked = 0
    for first, n in choices:
        made = Filter(epsilon, delta, "add-remove", orders_of(epsilon, delta))
        one = Charge.of(first, n, 1.0)
        try:
            made.check(one)
        except pn.BudgetError:
            continue
        made.enter(one)
        passing = []
        for kind, count in choices:
            try:
                made.check(Charge.of(kind, count, 1.0))
            except pn.BudgetError:
                continue
            passing.append((kind, count))
        # The worst choice for each result: delta is the mean of the largest delta beyond the loss.
        log_q, loss = _composed(first, n)
        worst = np.zeros(loss.size)
        for kind, count in passing:
            log_q2, loss2 = _composed(kind, count)
            gains = np.exp(log_q2) * np.maximum(
                np.exp(loss[:, None] + loss2) - math.exp(epsilon), 0.0
            )
            worst = np.maximum(worst, gains.sum(axis=1))
        alone = np.maximum(np.exp(loss) - math.exp(epsilon), 0.0)
        worst = np.maximum(worst, alone)
        assert float((np.exp(log_q) * worst).sum()) <= delta * (1.0 + 1e-9)
        checked += len(passing)
    assert checked > 20


def _composed(mechanism, count):
    """Log of probabilities under Q, and losses, of a few uses: merged by rounding the losses."""
    log_q, loss = pair_of(mechanism).atoms
    total_q, total = np.zeros(1), np.zeros(1)
    for _ in range(count):
        total = np.add.outer(total, loss).ravel()
        total_q = np.add.outer(total_q, log_q).ravel()
        keys = np.round(total, 9)
        total, where = np.unique(keys, return_inverse=True)
        total_q = np.log(np.bincount(where, np.exp(total_q)))
    return total_q, total


def test_shares_of_delta_add_up():
    """Kills: shares of more than all."""
    for epsilon, delta in itertools.product((0.01, 1.0, 30.0), (1e-9, 0.3)):
        orders = orders_of(epsilon, delta)
        made = Filter(epsilon, delta, "add-remove", orders)
        mu = math.sqrt(made._limits.square)
        gaussian = pn.Mechanism(pn.Gaussian(std=1.0), mu).delta(epsilon).lower
        shares = [
            math.exp(most - (order - 1.0) * epsilon + log_conversion(order))
            for order, most in zip(orders, made._limits.most, strict=True)
        ]
        assert gaussian + math.fsum(shares) + made._limits.leak <= delta
        assert gaussian + math.fsum(shares) > 0.99 * delta
        assert math.fsum(made._odometer) + made._limits.leak <= delta


def test_noise_in_digits():
    """Charged for its Gaussian law, and for its leaks by themselves.

    Kills: leaks that are not added up; a plan that takes them from nowhere.
    """
    vector = pn.Mechanism(pn.Gaussian(std=30.0), dimension=100, norm="l2").on_lattice()
    (_, (coin, uses)) = vector.sampled(1.0, None, "add-remove")
    probability = coin.infinite("remove")
    assert uses == 1
    assert 0.0 < probability < 1e-11
    made = pn.Ledger(1.0, 1e-6, adaptive=True)
    while made.affords(vector) and len(made.charges) < MANY:
        made.charge(vector)
    assert len(made.charges) > 30
    assert 0.8 < made.spent_as_plan <= 1.0
    assert made._state.book._sums.leak == pytest.approx(len(made.charges) * probability)
    # A thousandth of delta is for leaks.
    few = pn.Ledger(1.0, 900.0 * probability, adaptive=True)
    with pytest.raises(pn.BudgetError):
        few.charge(vector)
    pn.Ledger(1.0, 1100.0 * probability, adaptive=True).charge(vector)
    pure = pn.Ledger(100.0, 0.0, adaptive=True)
    with pytest.raises(pn.BudgetError):
        pure.charge(vector)
    # No plan has a share for them.
    plan = pn.Ledger(1.0, probability / 2.0)
    with pytest.raises((pn.BudgetError, pn.CertificationError)):
        plan.charge(vector)


def test_the_price_of_being_adaptive():
    """Less than a plan lets pass, but not much less; and it says what it costs."""
    passed = {}
    for adaptive in (False, True):
        made = pn.Ledger(1.0, 1e-6, adaptive=adaptive)
        assert made.adaptive is adaptive
        with pytest.raises(pn.BudgetError):
            for _ in range(MANY):
                made.charge(GAUSSIAN)
        passed[adaptive] = len(made.charges)
    assert passed == {False: 8, True: 7}
    plan = Accountant().compose(GAUSSIAN, 7).epsilon(1e-6).upper
    assert made.spent_as_plan == plan <= 1.0
    assert plan < made.spent < 1.3
    for kind, least in ((LAPLACE, 0.88), (pn.Mechanism(pn.Gaussian(std=2.0)), 0.85)):
        rate = 1.0 if kind is LAPLACE else 0.01
        made = pn.Ledger(2.0, 1e-6, adaptive=True)
        with pytest.raises(pn.BudgetError):
            for size in (256, 64, 16, 4, 1):
                while made.affords(kind, size, rate):
                    made.charge(kind, size, rate)
            made.charge(kind, 1, rate)
        assert least * 2.0 < made.spent_as_plan <= 2.0


def test_pure_budgets_are_sums():
    made = pn.Ledger(0.5, 0.0, adaptive=True)
    for _ in range(4):
        made.charge(LAPLACE)
    assert made.spent == pytest.approx(0.4, rel=1e-5)
    assert made.remaining == pytest.approx(0.1, rel=1e-5)
    with pytest.raises(pn.BudgetError):
        made.charge(pn.Mechanism(pn.Laplace(scale=9.0)).on_lattice())
    with pytest.raises(pn.BudgetError, match="adaptive"):
        made.charge(LAPLACE, 2)
    with pytest.raises(pn.CertificationError, match="on_lattice"):
        pn.Ledger(1.0, 0.0, adaptive=True).charge(pn.Mechanism(pn.Airy(mean_abs=3.0)))


def test_what_remains_fits():
    """Kills: room that is counted from the wrong side."""
    made = pn.Ledger(1.0, 1e-6, adaptive=True)
    for _ in range(3):
        made.charge(GAUSSIAN)
    room = made.remaining
    assert 0.0 < room < 1.0
    fits = pn.Mechanism(pn.DiscreteLaplace(epsilon=room * (1.0 - 1e-6)))
    assert made.affords(fits)
    assert made.affords(pn.Mechanism(pn.Laplace(scale=1.0 / (room * (1.0 - 1e-6)))))
    made.charge(fits)
    assert not made.affords(pn.Mechanism(pn.DiscreteLaplace(epsilon=room)))


def test_a_file_keeps_the_orders(tmp_path, monkeypatch):
    """Kills: orders that a later version chooses anew in the middle of a budget."""
    made = pn.Ledger.create(tmp_path / "a.ledger", 1.0, 1e-6, adaptive=True)
    made.charge(GAUSSIAN, 3)
    monkeypatch.setattr("psinoise.ledger._filter.best_order", lambda *_: 1000)
    again = pn.Ledger.open(tmp_path / "a.ledger")
    assert again.adaptive
    assert again.spent == made.spent


# -- the odometer ----------------------------------------------------------------------------------


def test_the_odometer_holds_at_all_times():
    """Simulated: an adversary who spends more while the loss is large, and stops at the worst time.

    With delta 0.2 the loss may exceed the odometer at some time in a fifth of the runs; for
    Gaussian noise it does in about a twentieth. Kills: an odometer without ``log(1 / delta)``, or
    with half of the sums.
    """
    generator = np.random.default_rng(7)
    delta, runs = 0.2, 4000
    orders = orders_of(1.0, delta)
    small, large = (pn.Mechanism(pn.Gaussian(std=s)) for s in (20.0, 6.0))
    mus = np.array([1.0 / 20.0, 1.0 / 6.0])
    one = [Sums.none(orders).plus(Charge.of(m, 1, 1.0), "add-remove") for m in (small, large)]
    moments = np.stack([sums.worst()[0] for sums in one])
    shares = np.array(Filter(1.0, delta, "add-remove", orders)._odometer)
    c = np.array(orders) - 1.0
    loss, sums, broken = np.zeros(runs), np.zeros((runs, c.size)), np.zeros(runs, dtype=bool)
    for _ in range(60):
        choice = (loss > 0.0).astype(int)
        mu = mus[choice]
        loss += generator.normal(0.5 * mu**2, mu)
        sums += moments[choice]
        broken |= loss > ((sums - np.log(shares)) / c).min(axis=1)
    assert broken.mean() <= delta
    assert broken.mean() > 0.002, "the test can see something"
    made = Filter(1.0, delta, "add-remove", orders)
    made.enter(Charge.of(large, 3, 1.0))
    assert made.spent == pytest.approx(((3 * moments[1] - np.log(shares)) / c).min())


@pytest.mark.parametrize("delta", [5e-324, 4.2e-322, 2.0**-1014])
def test_the_least_deltas_have_shares(delta):
    """Kills: shares that are rounded to 0, of which there is no logarithm, or to more than all."""
    made = pn.Ledger(1.0, delta, adaptive=True)
    assert made.affords(pn.Mechanism(pn.Gaussian(std=100.0)))
    made.charge(pn.Mechanism(pn.Laplace(scale=2.0)))
    assert 0.5 <= made.spent < 0.5001
    book = made._state.book
    shares = [
        math.exp(most - (order - 1.0) + log_conversion(order) - math.log(delta))
        for order, most in zip(book._limits.orders, book._limits.most.tolist(), strict=True)
    ]
    assert sum(shares) <= 0.4


def test_the_best_order():
    """Against a search. Kills: the order of another budget."""
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-9), (20.0, 1e-5)):
        found = best_order(epsilon, delta)

        def most(order, epsilon=epsilon, delta=delta):
            c = order - 1.0
            return (c * epsilon + math.log(delta) - log_conversion(order)) / (order * c)

        assert most(found) >= 0.999 * max(most(order) for order in range(2, 5000))


@pytest.mark.parametrize("adaptive", [False, True])
def test_more_uses_than_an_accountant_counts(adaptive):
    """Kills: an OverflowError from what is spent, for charges that were accepted."""
    ledger = pn.Ledger(1.0, 1e-6, adaptive=adaptive)
    for _ in range(2):
        ledger.charge(pn.Mechanism(pn.Gaussian(std=1e15)), 2**62)
    assert ledger.spent_as_plan == math.inf
    assert ledger.remaining <= 1.0
    assert ledger.spent > 0.0
