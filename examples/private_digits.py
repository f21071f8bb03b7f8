"""Private stochastic gradient descent on scikit-learn's digits: accuracy against epsilon.

Figure 2d of Alghamdi et al., "Cactus mechanisms" (ISIT 2022), on data that need no network: 1,797
images of 8 by 8 pixels, a multinomial logistic regression, and noise of four laws with the same
variance. Equal variance is very nearly equal accuracy after as many steps; the laws differ in what
the steps cost. The cactus law costs least where the noise is small against one record, which
sampling makes affordable, and so allows more steps for an epsilon. Laplace noise, which the paper
does not show, is next, and ahead of it for noise of half a clipping bound: the cactus law is the
best without sampling only. For one epsilon the best variance differs from law to law;
`pn.compare` has the least variances at a target.

**What is accounted.** The noise is not Gaussian, so that clipping in the Euclidean norm would be
wrong: the worst direction of a vector is not known for other laws. Instead

* each coordinate of the gradient of one image is clipped to ``[-clip, clip]`` by itself, and
* each coordinate of each step has a *batch of its own*, drawn by a coin for each image.

Each coordinate of a step is then one scalar query of sensitivity ``clip`` under Poisson sampling
with coins of its own, and a training run of ``steps`` with ``m`` parameters is a composition of
``steps * m`` of them (adaptive, which the accountant allows). One batch for a whole vector is *not*
covered by that: an image would be in or out of all coordinates together.

The features are averages of 2 by 2 pixels, a map that does not look at the data. The accuracy is
measured on images that are not trained on, and is not accounted. Learning rate, clipping bound and
sampling rate were tuned on the same data without being accounted either, the same for all laws.

**Not a release.** Noise in floating point is for simulation, and it is never seeded in earnest.

    python examples/private_digits.py --plot digits.png
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import psinoise as pn

Float = NDArray[np.float64]

CLASSES = 10
TRAINED = 1437  # of 1,797 images
DEVIATION = 0.1**0.5
"""Standard deviation of the noise, in clipping bounds: that of the paper."""
BATCH = 3.0
"""Images in the batch of a coordinate, on average."""
CLIP = 0.4
LEARNING_RATE = 1.0

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
class Curve:
    """What one law reaches: entries belong to the numbers of steps."""

    law: str
    steps: tuple[int, ...]
    epsilons: tuple[float, ...]
    """Certified upper bounds."""
    accuracies: Float
    """Shape (seeds, len(steps))."""


def load_digits(seed: int = 0) -> Digits:
    """Scikit-learn's digits, averaged over 2 by 2 pixels, in a random order."""
    from sklearn.datasets import load_digits as load  # an extra, and slow to import

    bunch = load()
    images = bunch.images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16) / 16.0
    features = np.hstack([np.ones((images.shape[0], 1)), 2.0 * images - 1.0])
    order = np.random.default_rng(seed).permutation(features.shape[0])
    labels = bunch.target.astype(np.int64)[order]
    features = features[order]
    return Digits(features[:TRAINED], labels[:TRAINED], features[TRAINED:], labels[TRAINED:])


def clipped_gradients(weights: Float, features: Float, labels: NDArray[np.int64]) -> Float:
    """One row for each image: the gradient of its log loss, each coordinate within the bound."""
    scores = features @ weights
    scores -= scores.max(axis=1, keepdims=True)
    probabilities = np.exp(scores)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    probabilities[np.arange(labels.size), labels] -= 1.0
    gradients = features[:, :, None] * probabilities[:, None, :]
    return np.clip(gradients.reshape(labels.size, -1), -CLIP, CLIP)


def private_sum(gradients: Float, rate: float, noise: Float, coins: np.random.Generator) -> Float:
    """The sum of each coordinate over a batch of its own, with noise in clipping bounds."""
    drawn = coins.random(gradients.shape, dtype=np.float32) < rate
    return np.einsum("ij,ij->j", gradients, drawn) + CLIP * noise


def train(data: Digits, law: pn.NoiseLaw | None, steps: Sequence[int], seed: int) -> list[float]:
    """Test accuracies after so many steps; without a law, without noise and batches.

    What is judged is the average of the later half of the weights, which costs no privacy.
    """
    size, features = data.train.shape
    coins = np.random.default_rng(seed)
    weights = np.zeros((features, CLASSES))
    sums = [np.zeros_like(weights)]
    found = []
    rate = BATCH / size
    for step in range(1, max(steps) + 1):
        gradients = clipped_gradients(weights, data.train, data.labels)
        if law is None:
            mean = gradients.mean(axis=0)
        else:
            noise = law.sample(gradients.shape[1], rng=[seed, step])
            mean = private_sum(gradients, rate, noise, coins) / BATCH
        weights = weights - LEARNING_RATE * mean.reshape(weights.shape)
        sums.append(sums[-1] + weights)
        if step in steps:
            late = sums[step] - sums[step // 2]
            guesses = (data.test @ late).argmax(axis=1)
            found.append(float((guesses == data.answers).mean()))
    return found


def epsilon(law: pn.NoiseLaw, steps: int, parameters: int, delta: float) -> float:
    """The certified upper bound for so many steps."""
    mechanism = pn.Mechanism(law)
    rate = BATCH / TRAINED
    return float(mechanism.epsilon(delta, steps * parameters, rate))


def curve(name: str, data: Digits, steps: Sequence[int], seeds: int, delta: float) -> Curve:
    """Train with one law from several seeds, and account for it."""
    law = LAWS[name](DEVIATION)
    parameters = data.train.shape[1] * CLASSES
    epsilons = tuple(epsilon(law, count, parameters, delta) for count in steps)
    accuracies = np.array([train(data, law, steps, seed) for seed in range(seeds)])
    return Curve(name, tuple(steps), epsilons, accuracies)


def table(curves: Sequence[Curve], delta: float, bare: float) -> str:
    """Epsilon, and accuracy with its standard error, for each number of steps."""
    lines = [
        f"Digits: epsilon at delta {delta:g} (certified) and test accuracy, noise of variance "
        f"{DEVIATION**2:g} clip^2",
        f"one batch of {BATCH:g} images on average for each of {17 * CLASSES} coordinates a step; "
        f"without privacy {bare:.1%}",
        "",
        "steps" + "".join(f"{c.law:>11} eps   accuracy    " for c in curves),
    ]
    for k, steps in enumerate(curves[0].steps):
        cells = []
        for found in curves:
            accuracy = found.accuracies[:, k]
            error = accuracy.std(ddof=1) / np.sqrt(accuracy.size) if accuracy.size > 1 else 0.0
            cells.append(f"{found.epsilons[k]:15.3f}   {accuracy.mean():.1%} ±{error:.1%}  ")
        lines.append(f"{steps:5d}" + "".join(cells))
    return "\n".join(line.rstrip() for line in lines)


def plot(curves: Sequence[Curve], delta: float, path: str) -> None:
    """Accuracy against epsilon with standard errors over the seeds."""
    from psinoise import plotting  # optional

    figure = plotting.new_figure(6.8, 4.2)
    ax = figure.subplots()
    for found in curves:
        mean = 100.0 * found.accuracies.mean(axis=0)
        spread = 100.0 * found.accuracies.std(axis=0, ddof=1) / np.sqrt(len(found.accuracies))
        ax.errorbar(
            found.epsilons,
            mean,
            spread,
            label=found.law,
            color=plotting.color_of(found.law),
            marker="o",
            markersize=4.0,
            linewidth=1.8,
            capsize=2.5,
        )
    ax.set(xscale="log", xlabel="Epsilon", ylabel="Test accuracy, percent")
    ax.set_xticks(ticks := [2, 3, 5, 10, 20, 40], [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.legend(frameon=False, labelcolor="linecolor", loc="lower right")
    plotting.dress(ax)
    plotting.set_title(
        ax,
        "The same noise, a smaller epsilon",
        f"digits, variance {DEVIATION**2:.3g} clip², δ = {delta:g}, "
        f"{len(curves[0].accuracies)} seeds",
    )
    figure.savefig(path, dpi=200)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example and print a table."""
    parser = argparse.ArgumentParser(description="Private training on digits: three noise laws.")
    parser.add_argument("--steps", type=int, nargs="+", default=[5, 10, 20, 40, 80, 160])
    parser.add_argument("--seeds", type=int, default=8, help="training runs for each law")
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--plot", metavar="FILE", help="draw accuracy against epsilon")
    arguments = parser.parse_args(argv)
    if arguments.seeds < 2:
        parser.error("argument --seeds: needs two runs at least, for the error bars")
    if min(arguments.steps) < 1:
        parser.error("argument --steps: at least 1")
    steps = sorted(set(arguments.steps))
    data = load_digits()
    curves = [curve(name, data, steps, arguments.seeds, arguments.delta) for name in LAWS]
    bare = train(data, None, [max(steps)], 0)[0]
    print(table(curves, arguments.delta, bare))
    if arguments.plot is not None:
        plot(curves, arguments.delta, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
