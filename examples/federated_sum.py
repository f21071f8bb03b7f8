"""A thousand clients add up private numbers: secure aggregation, dropouts, five kinds of noise.

Each client holds a real number in [0, 1]; wanted is the sum. A client rounds its number to a grid,
adds whole-number noise, exact and with bits from the operating system, masks the result with
numbers that cancel in the sum, and sends it modulo ``2**32``. Some clients drop out. The server
sees the sum of the others modulo ``2**32``, and nothing else.

**Local.** Nobody is trusted: each message has the epsilon by itself, and the sum has a smaller one.

* Discrete stable noise adds up to discrete stable noise: the server knows the law of the noise of
  the sum, and both epsilons are certified for the integers that were drawn. A message is purely
  private. The best index grows with the crowd.
* Skellam noise is its index 2: it needs a delta.
* Gaussian noise on the grid: ``sqrt(n)`` draws add up to nearly one of the larger deviation
  (Kairouz, Liu and Steinke, The distributed discrete Gaussian mechanism, 2021). Here the sum is
  accounted as one draw of that, on the same grid; the ideal law in real numbers is beside it.
* Laplace noise has the least error of a *pure* epsilon below 5.46, but that of the sum stays what
  it was: the density of the sum falls like ``x**(n - 1) exp(-x / scale)``, so the loss tends to
  ``sensitivity / scale`` far out; and it is never larger, since the sum is a function of one
  message and of numbers that are independent of it.

**Distributed.** Only the sum must be private, with those that are left after dropouts: each client
adds a share of the noise. Laplace noise is split into differences of two Gamma variables of shape
``1 / n`` (Kotz, Kozubowski and Podgorski, The Laplace distribution and generalizations, 2001,
section 2.4); what is left of it after dropouts is another law, see `laplace_part_epsilon`.

    python examples/federated_sum.py --clients 1000 --epsilon 1 --dropout 0.1 --plot sums.png
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

import psinoise as pn
from psinoise.noise import Family
from psinoise.release import residues, sum_of_residues

GRID = 1.0 / 32.0
CELLS = 32  # of the sensitivity, 1
BITS = 32


@dataclass(frozen=True)
class Row:
    """One law in one setting."""

    law: str
    error: float
    """E|error| of the sum with all clients."""
    message: float
    """Epsilon of a message."""
    epsilon: float
    """Of the sum with all clients."""
    fewer: float
    """The same without the clients that have dropped out."""
    privacy: str
    """Whether these are pure."""


# -- closed forms of Laplace noise -----------------------------------------------------------------


def laplace_sum_error(scale: float, shape: float) -> float:
    """``E|G - G'|`` of two Gamma variables of this shape: the sum of ``shape`` Laplace draws.

    Gini's mean difference of the Gamma law.
    """
    return 2.0 * scale / float(special.beta(shape, 0.5))


def laplace_part_epsilon(scale: float, part: float) -> float:
    """The largest loss of Laplace noise of which only a part of the shares is there.

    With ``v = part - 1/2`` and ``y = |x| / scale`` its density is ``y**v K(v, y)`` up to a
    constant, K the modified Bessel function. For ``v <= 0`` it has a pole at 0: no pure privacy.
    For ``0 < v < 1/2`` its logarithm has the slope ``-K(1 - v, y) / K(v, y)``, which rises with
    ``y`` since ``1 - v > v``, so that ``log p`` is convex on ``x > 0`` and ``p(u) / p(u + s)``
    falls with ``u >= 0``. Between the modes ``p(x) <= p(0)`` and ``p(s - x) >= p(s)``: the largest
    loss is ``log p(0) / p(s)``.
    """
    if part == 1.0:
        return 1.0 / scale
    order, x = part - 0.5, 1.0 / scale
    if order <= 0.0:
        return math.inf
    # x^v K(v, x) is Gamma(v) 2^(v - 1) at 0; kve is exp(x) K.
    log_peak = special.gammaln(order) + (order - 1.0) * math.log(2.0)
    return float(log_peak - order * math.log(x) - math.log(special.kve(order, x)) + x)


# -- what each law costs ---------------------------------------------------------------------------


def summed(noise: pn.DiscreteStable, count: int, delta: float) -> float:
    """The certified epsilon of a sum of releases; without a delta that of draws of the law."""
    if delta > 0.0:
        return float(pn.Mechanism(noise, CELLS).for_sum(count).epsilon(delta))
    return pn.Mechanism(noise.aggregate(count), CELLS).pure_epsilon()


def stable_row(
    noise: pn.DiscreteStable, clients: int, present: int, delta: float, pure: bool
) -> Row:
    """Discrete stable noise, or Skellam noise; epsilons of sums at ``delta``."""
    name = "Skellam" if noise.alpha == 2.0 else f"stable, alpha = {noise.alpha:.2f}"
    message = pn.Mechanism(noise, CELLS).on_lattice()
    return Row(
        name,
        GRID * noise.aggregate(clients).mean_abs,
        message.pure_epsilon() if pure else float(message.epsilon(delta)),
        summed(noise, clients, 0.0 if pure else delta),
        summed(noise, present, 0.0 if pure else delta),
        "pure" if pure else f"at delta {delta:g}",
    )


def gaussian_rows(std: float, clients: int, present: int, delta: float) -> list[Row]:
    """Gaussian noise of this deviation a message, on the grid and in real numbers."""
    rows = []
    for name, grid in (("discrete Gaussian", GRID), ("Gaussian", None)):
        found = []
        for count in (1, clients, present):
            mechanism = pn.Mechanism(pn.Gaussian(std=std * math.sqrt(count)))
            asked = mechanism if grid is None else mechanism.on_lattice(grid)
            found.append(float(asked.epsilon(delta)))
        error = pn.Gaussian(std=std * math.sqrt(clients)).mean_abs
        rows.append(Row(name, error, found[0], found[1], found[2], f"at delta {delta:g}"))
    return rows


def local(clients: int, present: int, epsilon: float, delta: float) -> list[Row]:
    """Each message private by itself."""
    stable = pn.calibrate_stable(epsilon=epsilon, clients=clients, grid=GRID)
    skellam = pn.calibrate_stable(epsilon=epsilon, delta=delta, alpha=2.0, grid=GRID)
    std = pn.calibrate(pn.Gaussian, epsilon=epsilon, delta=delta).std
    return [
        stable_row(stable, clients, present, delta, pure=True),
        Row("Laplace", laplace_sum_error(1.0 / epsilon, clients), *[epsilon] * 3, "pure"),
        *gaussian_rows(std, clients, present, delta),
        stable_row(skellam, clients, present, delta, pure=False),
    ]


def distributed(clients: int, present: int, epsilon: float, delta: float) -> list[Row]:
    """The sum of those that are present private, by shares."""
    absent = (clients - present) / clients
    stable = pn.calibrate_stable(
        epsilon=epsilon, clients=clients, setting="distributed", dropout=absent, grid=GRID
    )
    # Of the law, which shares add up to: a release of it is a little wider, and may be less.
    skellam = Family(pn.DiscreteStable, alpha=2.0)
    whole = pn.calibrate(skellam, epsilon=epsilon, delta=delta, sensitivity=CELLS)
    share = pn.DiscreteStable(alpha=2.0, scale=whole.scale / math.sqrt(present))
    std = pn.calibrate(pn.Gaussian, epsilon=epsilon, delta=delta).std / math.sqrt(present)
    return [
        stable_row(stable, clients, present, delta, pure=True),
        Row(
            "Laplace, in Gamma shares",
            1.0 / epsilon,
            math.inf,
            epsilon,
            laplace_part_epsilon(1.0 / epsilon, present / clients),
            "pure",
        ),
        *gaussian_rows(std, clients, present, delta),
        stable_row(share, clients, present, delta, pure=False),
    ]


# -- the protocol ----------------------------------------------------------------------------------


def cancelling_masks(count: int) -> np.ndarray:
    """Uniform numbers modulo ``2**BITS`` that add up to 0: what clients agree on in pairs.

    Who drops out after that has its masks taken back, with help of the others (Bonawitz and others,
    Practical secure aggregation, 2017); here only those that are present have masks.
    """
    between = np.random.default_rng().integers(0, 1 << BITS, count, dtype=np.uint64)
    return between - np.roll(between, 1)


def secure_sum(values: np.ndarray, noise: pn.DiscreteStable) -> float:
    """What the server learns of one round, from the clients that are present."""
    cells = np.floor(values / GRID + 0.5).astype(np.int64)
    messages = pn.Mechanism(noise, CELLS).on_lattice().release(cells)
    sent = residues(residues(messages, 64) + cancelling_masks(values.size), BITS)
    return GRID * float(sum_of_residues(sent, BITS))


def simulate(values: np.ndarray, noise: pn.DiscreteStable, rounds: int) -> float:
    """Share of the sums that are no farther off than the median that `aggregate` predicts.

    The mean error converges slowly where the variance is infinite; this share is 1/2, give or take
    ``0.5 / sqrt(rounds)`` and what rounding adds, or the law of the sum is another one.
    """
    rounded = GRID * np.floor(values / GRID + 0.5).sum()
    total = noise.aggregate(values.size)
    median = GRID * (float(total.iccdf(0.25)) + 0.5)
    errors = np.array([secure_sum(values, noise) - rounded for _ in range(rounds)])
    return float(np.mean(np.abs(errors) < median))


# -- what is shown ---------------------------------------------------------------------------------


def table(rows: Sequence[Row], absent: int) -> str:
    """The rows, aligned."""
    heads = f"{'E|error|':>10}{'message':>11}{'sum':>11}{f'without {absent}':>14}"
    lines = [f"{'noise':26}{heads}"]
    for row in rows:
        numbers = f"{row.error:10.2f}{row.message:11.4f}{row.epsilon:11.4f}{row.fewer:14.4f}"
        lines.append(f"{row.law:26}{numbers}  {row.privacy}")
    return "\n".join(lines)


def draw(path: str, crowds: Sequence[int], epsilon: float, delta: float) -> None:
    """E|error| of the sum against the clients, in units of the Gaussian's, each message private."""
    from psinoise import plotting

    std = pn.calibrate(pn.Gaussian, epsilon=epsilon, delta=delta).std
    normal = [pn.Gaussian(std=std * math.sqrt(n)).mean_abs for n in crowds]
    stable = [pn.calibrate_stable(epsilon=epsilon, clients=n).aggregate(n).mean_abs for n in crowds]
    laplace = [laplace_sum_error(1.0 / epsilon, n) for n in crowds]
    lines = {
        "Gaussian": np.ones(len(crowds)),
        "stable": np.array(stable) / normal,
        "Laplace": np.array(laplace) / normal,
    }
    figure = plotting.new_figure(6.8, 4.2)
    ax = figure.subplots()
    ax.set(
        xlabel="Clients", ylabel="E|error| of the sum, in units of the Gaussian's", ylim=(0, 1.1)
    )
    known = [plotting.color_of(name) for name in ("Gaussian", "Laplace")]
    other = next(c for c in (plotting.color_of("", i) for i in range(4)) if c not in known)
    colors = [known[0], other, known[1]]
    x = np.array(crowds, dtype=float)
    plotting.plot_lines(x, lines, ax=ax, colors=colors, log_x=True, name=False)
    conditions = f"each message: epsilon {epsilon:g}, Gaussian at delta {delta:g}, others pure"
    plotting.set_title(ax, "Stable noise stays ahead of the Gaussian", conditions)
    ax.legend(frameon=False, labelcolor="linecolor", handlelength=1.2, loc="lower right")
    figure.savefig(path, dpi=200)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example; returns the exit status."""
    parser = argparse.ArgumentParser(description="A private sum over many clients.")
    parser.add_argument("--clients", type=int, default=1000, help="number of clients (1000)")
    parser.add_argument("--epsilon", type=float, default=1.0, help="of a message, or the sum (1)")
    parser.add_argument("--delta", type=float, default=1e-6, help="for other laws (1e-6)")
    parser.add_argument(
        "--dropout", type=float, default=0.1, help="share of clients that drop out (0.1)"
    )
    parser.add_argument("--rounds", type=int, default=1000, help="sums to simulate (1000)")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw errors against the crowd (needs matplotlib)"
    )
    arguments = parser.parse_args(argv)
    clients, epsilon, delta = arguments.clients, arguments.epsilon, arguments.delta
    if clients < 1 or arguments.rounds < 1:
        parser.error("clients and rounds must be at least 1")
    if not (0.0 < epsilon < math.inf and 0.0 < delta < 1.0):
        parser.error("epsilon must be positive and finite, and delta in (0, 1)")
    if not 0.0 <= arguments.dropout < 1.0:
        parser.error("dropout must be in [0, 1)")
    absent = min(round(arguments.dropout * clients), clients - 1)
    present = clients - absent

    print(f"Local: {clients:,} messages, each with epsilon {epsilon:g}\n")
    print(table(local(clients, present, epsilon, delta), absent))
    print(f"\nDistributed: the sum of {present:,} has epsilon {epsilon:g}\n")
    print(table(distributed(clients, present, epsilon, delta), absent))

    noise = pn.calibrate_stable(epsilon=epsilon, clients=clients, grid=GRID)
    values = np.random.default_rng(1).beta(2.0, 5.0, clients)[:present]
    seen = secure_sum(values, noise)
    print(f"\nOne round: true sum of {present:,} numbers {values.sum():.2f}, seen {seen:.2f}")
    inside = simulate(values, noise, arguments.rounds)
    print(
        f"Simulated: {inside:.3f} of {arguments.rounds:,} sums are within the median error "
        f"(1/2 ± {0.5 / math.sqrt(arguments.rounds):.3f})."
    )
    if arguments.plot:
        draw(arguments.plot, (1, 10, 100, 1000, 10**5, 10**7), epsilon, delta)
    return 0


if __name__ == "__main__":
    sys.exit(main())
