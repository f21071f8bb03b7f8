"""Private training on scikit-learn's digits: what a practitioner does, and what a paper compares.

1,797 images of 8 by 8 pixels, 64 features of each that do not look at the data (how strong the
edges of four directions are in sixteen places), a multinomial logistic regression.

**What a practitioner does.** Every image is drawn for a batch by a coin of its own (Poisson
sampling), the gradient of each image is clipped to an l2 norm, and Gaussian noise is added to their
sum: ``pn.noise_multiplier`` says how much for an epsilon. The gradients are made by JAX where it is
installed, and by NumPy; coins and noise are the same, and so are the weights but for rounding.

**What a paper compares.** Figure 2d of Alghamdi et al., "Cactus mechanisms" (ISIT 2022): noise of
several laws of one variance, each *coordinate* of a gradient clipped by itself and summed over a
batch of its own, so that a step with ``m`` parameters is ``m`` scalar queries with coins of their
own. There the laws differ, the cactus law costs least, and all of them need more than ten times
the epsilon of the first setting.

**Which one to take.** For long vectors that are clipped in the l2 norm: Gaussian noise.

* It is the same in all directions, so that a step costs what one number of sensitivity ``clip``
  costs, however many parameters there are. Of no other law is the worst direction of an l2 ball
  known; ``Mechanism`` refuses them there. They can be accounted coordinate by coordinate alone,
  where every coordinate may move by as much as the whole gradient: ``m`` uses, not one.
* It could not be much better either. A gradient spreads over its coordinates, and what is
  told by a small move of each is the Fisher information of the noise, which for a given variance
  is least for Gaussian noise. Other laws gain where one record moves a number by more than the
  noise, as in the second setting.

Epsilons are certified. Neighbors differ in one image that one of them lacks. The accuracy is
measured on images that are not trained on, and is not accounted; learning rates, clipping bounds
and sampling rates were chosen on the same data without being accounted either.

**Not a release.** Noise in floating point is for simulation, and it is never seeded in earnest.

    pip install "psinoise[jax,plot]" scikit-learn
    python examples/private_digits.py --plot digits.png
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import psinoise as pn

Float = NDArray[np.float64]
#: The sum of the clipped gradients of a batch: weights, features, labels, and who is in it.
Gradients = Callable[[Float, Float, NDArray[np.int64], NDArray[np.bool_]], Float]

CLASSES = 10
TRAINED = 1437  # of 1,797 images
DELTA = 1e-5
# The first setting.
EPSILONS = (0.5, 1.0, 2.0, 8.0)
STEPS, RATE, CLIP, LEARNING_RATE = 30, 0.5, 1.0, 6.0
# The second: the standard deviation is that of the paper, in clipping bounds.
COORDINATE_STD, COORDINATE_BATCH = 0.1**0.5, 3.0
COORDINATE_CLIP, COORDINATE_LEARNING_RATE = 0.1, 10.0

LAWS: dict[str, Callable[[float], pn.NoiseLaw]] = {
    "Gaussian": lambda std: pn.Gaussian(std=std),
    "Airy": lambda std: pn.Airy(std=std),
    "Laplace": lambda std: pn.Laplace(std=std),
    "Cactus": lambda std: pn.Cactus(
        mean_cost=std**2, cells_per_sensitivity=50, cells=400, tail_ratio=0.65
    ),
}


@dataclass(frozen=True)
class Digits:
    """Features with a constant one in front, and labels, of training and test images."""

    train: Float
    labels: NDArray[np.int64]
    test: Float
    answers: NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """What the first setting reaches with one epsilon, or without privacy (inf)."""

    epsilon: float
    multiplier: float
    accuracies: dict[str, Float]
    """Of each backend, one for each seed."""


@dataclass(frozen=True)
class Curve:
    """What one law reaches in the second setting: entries belong to the numbers of steps."""

    law: str
    steps: tuple[int, ...]
    epsilons: tuple[float, ...]
    accuracies: Float
    """Shape (seeds, len(steps))."""


def load_digits(seed: int = 0) -> Digits:
    """Edges of scikit-learn's digits, of unit length, and a constant, in a random order."""
    from sklearn.datasets import load_digits as load  # an extra, and slow to import

    bunch = load()
    images = np.pad(bunch.images / 16.0, ((0, 0), (1, 1), (1, 1)))
    across = images[:, 1:-1, 2:] - images[:, 1:-1, :-2]
    down = images[:, 2:, 1:-1] - images[:, :-2, 1:-1]
    strength = np.sqrt(np.hypot(across, down))
    angle = np.arctan2(down, across) % np.pi
    # Shares of two neighboring directions of four, averaged over 2 by 2 pixels.
    away = np.abs(angle[:, None] - np.pi / 4.0 * np.arange(4)[:, None, None])
    share = np.maximum(1.0 - np.minimum(away, np.pi - away) / (np.pi / 4.0), 0.0)
    edges = (strength[:, None] * share).reshape(-1, 4, 4, 2, 4, 2).mean(axis=(3, 5))
    edges -= edges.mean(axis=(2, 3), keepdims=True)
    features = edges.reshape(len(edges), -1)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    features = np.hstack([np.full((len(features), 1), 0.5), features])
    order = np.random.default_rng(seed).permutation(len(features))
    labels = bunch.target.astype(np.int64)[order]
    features = features[order]
    return Digits(features[:TRAINED], labels[:TRAINED], features[TRAINED:], labels[TRAINED:])


def accuracy(data: Digits, weights: Float) -> float:
    """The share of the test images whose class has the largest score."""
    return float(((data.test @ weights).argmax(axis=1) == data.answers).mean())


def errors(weights: Float, features: Float, labels: NDArray[np.int64]) -> Float:
    """Gradients of the log loss in the scores: probabilities of the classes, less what is true."""
    scores = features @ weights
    scores -= scores.max(axis=1, keepdims=True)
    probabilities = np.exp(scores)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    probabilities[np.arange(labels.size), labels] -= 1.0
    return probabilities


# -- the first setting: gradients clipped in the l2 norm ------------------------------------------


def numpy_gradients(clip: float) -> Gradients:
    """By hand: the gradient of an image is an outer product, whose norm is that of its factors."""

    def clipped_sum(
        weights: Float, features: Float, labels: NDArray[np.int64], drawn: NDArray[np.bool_]
    ) -> Float:
        wrong = errors(weights, features[drawn], labels[drawn])
        norms = np.linalg.norm(features[drawn], axis=1) * np.linalg.norm(wrong, axis=1)
        wrong *= (1.0 / np.maximum(norms / clip, 1.0))[:, None]
        return features[drawn].T @ wrong

    return clipped_sum


def jax_gradients(clip: float) -> Gradients:
    """By JAX, for any model: one gradient for each image, clipped, and added if it was drawn."""
    import jax  # an extra
    from jax import numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def loss(weights: Any, features: Any, label: Any) -> Any:
        return -jax.nn.log_softmax(features @ weights)[label]

    each = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))

    # Batches of one shape, with a mask: a shape of its own would be compiled for each.
    @jax.jit
    def clipped_sum(weights: Any, features: Any, labels: Any, drawn: Any) -> Any:
        gradients = each(weights, features, labels)
        norms = jnp.sqrt((gradients**2).sum(axis=(1, 2)))
        return jnp.einsum("i,ijk->jk", drawn / jnp.maximum(norms / clip, 1.0), gradients)

    def summed(
        weights: Float, features: Float, labels: NDArray[np.int64], drawn: NDArray[np.bool_]
    ) -> Float:
        return np.asarray(clipped_sum(weights, features, labels, drawn))

    return summed


BACKENDS = {"NumPy": numpy_gradients, "JAX": jax_gradients}


def train(data: Digits, gradients: Gradients, multiplier: float, seed: int) -> Float:
    """Weights after all steps: the average of the later half, which costs no privacy."""
    coins = np.random.default_rng(seed)
    weights = np.zeros((data.train.shape[1], CLASSES))
    late = np.zeros_like(weights)
    for step in range(STEPS):
        drawn = coins.random(TRAINED) < RATE
        total = gradients(weights, data.train, data.labels, drawn)
        if multiplier > 0.0:
            noise = pn.Gaussian(std=multiplier * CLIP)
            total = total + noise.sample(weights.shape, rng=[seed, step])
        weights = weights - LEARNING_RATE / (RATE * TRAINED) * total
        if step >= STEPS // 2:
            late += weights
    return late / (STEPS - STEPS // 2)


def rows(data: Digits, backends: Sequence[str], seeds: int) -> list[Row]:
    """The first setting for each epsilon, and without clipping and noise."""
    found = []
    for epsilon in (*EPSILONS, np.inf):
        private = epsilon < np.inf
        multiplier = pn.noise_multiplier(epsilon, DELTA, RATE, STEPS) if private else 0.0
        accuracies = {}
        for name in backends:
            gradients = BACKENDS[name](CLIP if private else np.inf)
            runs = [train(data, gradients, multiplier, seed) for seed in range(seeds)]
            accuracies[name] = np.array([accuracy(data, weights) for weights in runs])
        found.append(Row(epsilon, multiplier, accuracies))
    return found


# -- the second setting: coordinates clipped by themselves ----------------------------------------


def coordinate_gradients(weights: Float, features: Float, labels: NDArray[np.int64]) -> Float:
    """One row for each image: the gradient of its log loss, each coordinate within the bound."""
    gradients = features[:, :, None] * errors(weights, features, labels)[:, None, :]
    return np.clip(gradients.reshape(labels.size, -1), -COORDINATE_CLIP, COORDINATE_CLIP)


def coordinate_sum(
    gradients: Float, rate: float, noise: Float, coins: np.random.Generator
) -> Float:
    """The sum of each coordinate over a batch of its own, with noise in clipping bounds."""
    drawn = coins.random(gradients.shape, dtype=np.float32) < rate
    return np.einsum("ij,ij->j", gradients, drawn) + COORDINATE_CLIP * noise


def train_coordinates(
    data: Digits, law: pn.NoiseLaw, steps: Sequence[int], seed: int
) -> list[float]:
    """Test accuracies after so many steps, of the average of the later half of the weights."""
    coins = np.random.default_rng(seed)
    weights = np.zeros((data.train.shape[1], CLASSES))
    sums = [np.zeros_like(weights)]
    found = []
    for step in range(1, max(steps) + 1):
        gradients = coordinate_gradients(weights, data.train, data.labels)
        noise = law.sample(gradients.shape[1], rng=[seed, step])
        mean = coordinate_sum(gradients, COORDINATE_BATCH / TRAINED, noise, coins)
        mean = mean.reshape(weights.shape) / COORDINATE_BATCH
        weights = weights - COORDINATE_LEARNING_RATE * mean
        sums.append(sums[-1] + weights)
        if step in steps:
            found.append(accuracy(data, sums[step] - sums[step // 2]))
    return found


def coordinate_epsilon(law: pn.NoiseLaw, steps: int, parameters: int) -> float:
    """The certified upper bound for so many steps."""
    rate = COORDINATE_BATCH / TRAINED
    return float(pn.Mechanism(law).epsilon(DELTA, steps * parameters, rate))


def curve(name: str, data: Digits, steps: Sequence[int], seeds: int) -> Curve:
    """Train with one law from several seeds, and account for it."""
    law = LAWS[name](COORDINATE_STD)
    parameters = data.train.shape[1] * CLASSES
    epsilons = tuple(coordinate_epsilon(law, count, parameters) for count in steps)
    accuracies = np.array([train_coordinates(data, law, steps, seed) for seed in range(seeds)])
    return Curve(name, tuple(steps), epsilons, accuracies)


# -- what is shown -------------------------------------------------------------------------------


def with_error(accuracies: Float) -> str:
    """Mean and standard error."""
    error = accuracies.std(ddof=1) / np.sqrt(accuracies.size)
    return f"{accuracies.mean():6.1%} ±{error:.1%}"


def table(found: Sequence[Row], curves: Sequence[Curve], converged: float, parameters: int) -> str:
    """Accuracies of both settings, with standard errors over the seeds."""
    backends = list(found[0].accuracies)
    lines = [
        f"Digits: {TRAINED} images, {parameters} parameters, certified epsilons at delta {DELTA:g}",
        "",
        f"Gradients clipped to an l2 norm, Gaussian noise, {STEPS} batches at rate {RATE:g}:",
        "epsilon  noise multiplier" + "".join(f"{name:>16}" for name in backends),
    ]
    for row in found:
        accuracies = "".join(f"{with_error(row.accuracies[name]):>16}" for name in backends)
        lines.append(f"{row.epsilon:7g}{row.multiplier:18.2f}{accuracies}")
    lines += [
        f"The same model trained to the end without privacy: {converged:.1%}",
        "",
        "Coordinates clipped by themselves, a batch for each, noise of variance "
        f"{COORDINATE_STD**2:g} clip^2:",
        "steps" + "".join(f"{c.law:>11} eps   accuracy    " for c in curves),
    ]
    for k, steps in enumerate(curves[0].steps):
        cells = [f"{c.epsilons[k]:15.2f}  {with_error(c.accuracies[:, k])} " for c in curves]
        lines.append(f"{steps:5d}" + "".join(cells))
    return "\n".join(line.rstrip() for line in lines)


def plot(found: Sequence[Row], curves: Sequence[Curve], path: str) -> None:
    """Accuracy against epsilon in both settings, with standard errors over the seeds."""
    from psinoise import plotting  # optional

    figure = plotting.new_figure(7.2, 4.4)
    ax = figure.subplots()

    def draw(epsilons: Sequence[float], accuracies: Float, **style: Any) -> None:
        spread = 100.0 * accuracies.std(axis=0, ddof=1) / np.sqrt(len(accuracies))
        mean = 100.0 * accuracies.mean(axis=0)
        ax.errorbar(epsilons, mean, spread, markersize=4.0, linewidth=1.8, capsize=2.5, **style)

    private = [row for row in found if row.epsilon < np.inf]
    values = np.array([next(iter(row.accuracies.values())) for row in private]).T
    color = plotting.color_of("Gaussian")
    draw(EPSILONS, values, label="Gaussian, clipped in l2", color=color, marker="s", linestyle="--")
    for one in curves:
        color = plotting.color_of(one.law)
        draw(
            one.epsilons, one.accuracies, label=f"{one.law}, by coordinate", color=color, marker="o"
        )
    ax.set(xscale="log", xlabel="Epsilon", ylabel="Test accuracy, percent")
    ax.set_xticks(ticks := [0.5, 1, 2, 5, 10, 20, 50, 100], [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.legend(frameon=False, labelcolor="linecolor", loc="lower left")
    plotting.dress(ax)
    seeds = len(curves[0].accuracies)
    plotting.set_title(
        ax, "One vector, or its coordinates one by one", f"digits, δ = {DELTA:g}, {seeds} seeds"
    )
    figure.savefig(path, dpi=200)


def main(argv: Sequence[str] | None = None) -> int:
    """Run both settings and print a table."""
    parser = argparse.ArgumentParser(description="Private training on digits, in two settings.")
    parser.add_argument("--steps", type=int, nargs="+", default=[5, 20, 80], help="by coordinates")
    parser.add_argument("--seeds", type=int, default=4, help="training runs of each kind")
    parser.add_argument("--plot", metavar="FILE", help="draw accuracy against epsilon")
    arguments = parser.parse_args(argv)
    if arguments.seeds < 2:
        parser.error("argument --seeds: needs two runs at least, for the error bars")
    if min(arguments.steps) < 1:
        parser.error("argument --steps: at least 1")
    from sklearn.linear_model import LogisticRegression  # an extra, and slow to import

    steps, data = sorted(set(arguments.steps)), load_digits()
    backends = [name for name in BACKENDS if name != "JAX" or importlib.util.find_spec("jax")]
    found = rows(data, backends, arguments.seeds)
    curves = [curve(name, data, steps, arguments.seeds) for name in LAWS]
    best = LogisticRegression(C=10.0, max_iter=1000).fit(data.train, data.labels)
    converged = float(best.score(data.test, data.answers))
    print(table(found, curves, converged, data.train.shape[1] * CLASSES))
    if arguments.plot is not None:
        plot(found, curves, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
