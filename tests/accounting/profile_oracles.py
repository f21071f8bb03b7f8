"""Independent values of the privacy profile, in arbitrary precision and by other formulas."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
from scipy.integrate import trapezoid


def gaussian_delta(epsilon, mu, digits: int = 60):
    """Balle and Wang 2018, theorem 8, for one use with ``mu = sensitivity / std``."""
    with mp.workdps(digits):
        epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
        upper = mp.ncdf(-epsilon / mu + mu / 2)
        return upper - mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mu / 2)


def gaussian_epsilon(mu, delta):
    """Epsilon of Gaussian noise with ``mu = sensitivity / std``, by bisection at 60 digits."""
    with mp.workdps(60):
        mu, delta = mp.mpf(mu), mp.mpf(delta)
        low, high = mp.mpf(0), mu * mu / 2 + mu * (3 + mp.sqrt(-2 * mp.log(delta)))
        if gaussian_delta(low, mu) <= delta:
            return low
        for _ in range(220):
            middle = (low + high) / 2
            low, high = (middle, high) if gaussian_delta(middle, mu) > delta else (low, middle)
        return (low + high) / 2


def gaussian_epsilon_error(epsilon: float, delta: float, mu) -> float:
    """How far epsilon is from the one that has delta: a Newton step with the exact profile."""
    with mp.workdps(60):
        exact = gaussian_delta(epsilon, mu)
        slope = -mp.exp(mp.mpf(epsilon)) * mp.ncdf(-mp.mpf(epsilon) / mu - mp.mpf(mu) / 2)
        return float((exact - mp.mpf(delta)) / slope)


def subsampled_delta(unsampled: Callable, epsilon, rate, direction: str):
    """Profile of a Poisson-sampled pair from that of the unsampled one (any symmetric noise)."""
    epsilon, rate = mp.mpf(epsilon), mp.mpf(rate)
    gamma = mp.exp(epsilon)
    if direction == "remove":
        if gamma <= 1 - rate:
            return 1 - gamma
        return rate * unsampled(mp.log1p((gamma - 1) / rate))
    rest = 1 - (1 - rate) * gamma
    if rest <= 0:
        return mp.mpf(0)
    return rest * unsampled(mp.log(rate * gamma / rest))


def laplace_delta_once(epsilon, scale):
    """One use, sensitivity 1."""
    epsilon, top = mp.mpf(epsilon), 1 / mp.mpf(scale)
    if epsilon >= top:
        return mp.mpf(0)
    return 1 - mp.exp(epsilon) if epsilon <= -top else 1 - mp.exp((epsilon - top) / 2)


def airy_delta_once(epsilon, mean_abs):
    """One use, sensitivity 1: where the log ratio is epsilon, by bisection; then both tails."""
    first = -mp.airyaizero(1, derivative=1)
    unit = 2 * first / (3 * mp.mpf(mean_abs))

    def log_density(x):
        return 2 * mp.log(mp.airyai(unit * abs(x) - first))

    def tail(x):
        t = unit * abs(x) - first
        mass = mp.airyai(t, derivative=1) ** 2 - t * mp.airyai(t) ** 2
        mass /= 2 * first * mp.airyai(-first) ** 2
        return mass if x >= 0 else 1 - mass

    sign = 1 if epsilon >= 0 else -1
    near, far = mp.mpf(1) / 2, mp.mpf(1) / 2 + sign * mp.mpf(mean_abs)

    def passed(x):
        return sign * (log_density(x - 1) - log_density(x) - epsilon) >= 0

    while not passed(far):
        near, far = far, 2 * far - mp.mpf(1) / 2
    for _ in range(240):
        middle = (near + far) / 2
        near, far = (near, middle) if passed(middle) else (middle, far)
    return tail(far - 1) - mp.exp(epsilon) * tail(far)


def laplace_delta(epsilon, scale, count: int):
    """``count`` uses of Laplace noise at sensitivity 1, by an exact finite sum.

    Tilted by ``e^{-l/2}`` a single loss has two equal atoms at ``+-a`` (``a = 1/scale``) and a
    uniform part between them, so the composed density is a sum of truncated powers at the knots
    ``(2 l - n) a``, whose integer coefficients are those of ``(x + 1/x)^{n-m} (1/x - x)^m``.
    """
    with mp.workdps(40 + 3 * count):
        epsilon, a = mp.mpf(epsilon), 1 / mp.mpf(scale)
        top = count * a
        if epsilon >= top:
            return mp.mpf(0)
        knots = [(2 * k - count) * a for k in range(count + 1)]
        powers = [_power_integrals(knot, epsilon, top, count) for knot in knots]
        total = mp.mpf(0)
        for m in range(count + 1):
            coefficients = [1]
            for factor in [(1, 1)] * (count - m) + [(1, -1)] * m:
                coefficients = [
                    factor[0] * (coefficients[k] if k < len(coefficients) else 0)
                    + factor[1] * (coefficients[k - 1] if k else 0)
                    for k in range(len(coefficients) + 1)
                ]
            inner = sum(c * powers[k][m] for k, c in enumerate(coefficients))
            total += mp.binomial(count, m) * inner / (mp.mpf(2) ** (count - m) * mp.mpf(4) ** m)
        return mp.exp(-top / 2) * total


def _power_integrals(knot, epsilon, top, count: int) -> list:
    """``1/(m-1)! int_{max(eps, knot)}^{top} (y - knot)^{m-1} (e^{y/2} - e^{eps - y/2}) dy``.

    The case ``m = 0`` is the integrand's last factor at the knot. By parts from ``m`` to ``m + 1``.
    """
    value = mp.exp(knot / 2) - mp.exp(epsilon - knot / 2)
    result = [value if knot > epsilon else mp.mpf(0)]
    low, high = max(epsilon, knot) - knot, top - knot
    up = down = None
    for m in range(1, count + 1):
        ends = []
        for sign in (1, -1):
            edge = [2 * sign * u ** (m - 1) * mp.exp(sign * (u + knot) / 2) for u in (low, high)]
            if m > 1 and low == 0:
                edge[0] = mp.mpf(0)
            ends.append((edge[1] - edge[0]) / mp.factorial(m - 1))
        up = ends[0] - 2 * up if up is not None else ends[0]
        down = ends[1] + 2 * down if down is not None else ends[1]
        result.append(up - mp.exp(epsilon) * down)
    return result


def sampled_laplace_losses(scale: float, rate: float, direction: str):
    """Atoms ``[(loss, mass)]`` and the continuous part ``l -> (loss, mass density)`` on (-a, a)."""
    a, q = 1 / mp.mpf(scale), mp.mpf(rate)

    def loss(ratio):
        return mp.log1p(q * mp.expm1(ratio))

    base = [(a, mp.exp(-a) / 2), (-a, mp.mpf(1) / 2)]

    def density(ratio):
        return mp.exp(-(ratio + a) / 2) / 4

    if direction == "remove":
        atoms = [(loss(r), w * mp.exp(loss(r))) for r, w in base]
        return atoms, lambda r: (loss(r), density(r) * mp.exp(loss(r))), a
    atoms = [(-loss(r), w) for r, w in base]
    return atoms, lambda r: (-loss(r), density(r)), a


def sampled_laplace_delta_twice(epsilon: float, scale: float, rate: float, direction: str):
    """Two uses: the profile of one, averaged over the loss of the other."""
    with mp.workdps(30):
        atoms, continuous, a = sampled_laplace_losses(scale, rate, direction)

        def once(e):
            return subsampled_delta(lambda x: laplace_delta_once(x, scale), e, rate, direction)

        total = sum(mass * once(epsilon - loss) for loss, mass in atoms)
        # The profile of one use has kinks where epsilon - loss is an atom.
        kinks = []
        for atom, _ in atoms:
            level = mp.exp(epsilon - atom if direction == "remove" else atom - epsilon)
            inside = (level - 1) / mp.mpf(rate) + 1
            if inside > 0 and -a < mp.log(inside) < a:
                kinks.append(mp.log(inside))

        def integrand(ratio):
            loss, mass = continuous(ratio)
            return mass * once(epsilon - loss)

        return total + mp.quad(integrand, sorted([-a, a, *kinks]))


def sampled_gaussian_delta_twice(epsilon: float, std: float, rate: float, direction: str):
    """Two uses of sampled Gaussian noise at sensitivity 1, in the same way."""
    with mp.workdps(30):
        sigma, q = mp.mpf(std), mp.mpf(rate)

        def once(e):
            return subsampled_delta(lambda x: gaussian_delta(x, 1 / sigma, 30), e, q, direction)

        def integrand(x):
            loss = mp.log1p(q * mp.expm1((2 * x - 1) / (2 * sigma**2)))
            base = mp.npdf(x, 0, sigma)
            if direction == "remove":
                return base * mp.exp(loss) * once(epsilon - loss)
            return base * once(epsilon + loss)

        cuts = sorted({-14 * sigma, *(k * sigma for k in range(-8, 13, 2)), 16 * sigma})
        # Where the other use is sure to be above epsilon its profile changes formula.
        level = mp.exp(epsilon) / (1 - q) if direction == "remove" else (1 - q) * mp.exp(epsilon)
        inside = (level - 1) / q + 1
        if inside > 0:
            cuts.append(sigma**2 * mp.log(inside) + mp.mpf(1) / 2)
        return mp.quad(integrand, sorted(cuts))


def brute_force_delta(logpdf: Callable, epsilon: float, reach: float, points: int) -> float:
    """One unsampled use at sensitivity 1: the trapezoidal rule on ``x = sinh(u)``."""
    u = np.linspace(-math.asinh(reach), math.asinh(reach), points)
    x = np.sinh(u)
    excess = np.exp(logpdf(x - 1.0)) - math.exp(epsilon) * np.exp(logpdf(x))
    return float(trapezoid(np.maximum(excess, 0.0) * np.cosh(u), u))


def response_delta(loss, count: int, epsilon, rate=1, direction: str = "remove"):
    """Composed randomized response of odds ``e^loss``, sampled: a binomial sum at 60 digits.

    Discrete Laplace noise of that epsilon, at sensitivity 1, has these two losses.
    """
    with mp.workdps(60):
        atoms = response_atoms(loss, rate, direction)
        (high, p), (low, q) = sorted(atoms, reverse=True)
        total, weight = mp.mpf(0), q**count
        for ups in range(count + 1):
            value = ups * high + (count - ups) * low
            if value > epsilon:
                total += weight * -mp.expm1(epsilon - value)
            weight *= mp.mpf(count - ups) / (ups + 1) * (p / q)
        return total


def response_atoms(loss, rate=1, direction: str = "remove"):
    """Both losses of sampled randomized response, with their probabilities under ``P``."""
    keep = 1 / (1 + mp.exp(-mp.mpf(loss)))
    atoms = []
    for shifted, base in ((keep, 1 - keep), (1 - keep, keep)):
        mixed = (1 - mp.mpf(rate)) * base + mp.mpf(rate) * shifted
        p, q = (mixed, base) if direction == "remove" else (base, mixed)
        atoms.append((mp.log(p / q), p))
    return atoms


def two_responses_delta(first, second, epsilon):
    """Two different responses, ``(loss, count)`` each: the double sum."""
    (loss, count), atoms = first, []
    with mp.workdps(60):
        keep = 1 / (1 + mp.exp(-mp.mpf(loss)))
        for ups in range(count + 1):
            weight = mp.binomial(count, ups) * keep**ups * (1 - keep) ** (count - ups)
            atoms.append(((2 * ups - count) * mp.mpf(loss), weight))
        return sum(w * response_delta(*second, mp.mpf(epsilon) - x) for x, w in atoms)


def atoms_delta(index, mass, step, count: int, epsilon):
    """Losses on a lattice, masses as they stand: plain convolution at 50 digits."""
    with mp.workdps(50):
        total = {0: mp.mpf(1)}
        for _ in range(count):
            after: dict[int, mp.mpf] = {}
            for k, weight in total.items():
                for j, m in zip(index, mass, strict=True):
                    after[k + j] = after.get(k + j, mp.mpf(0)) + weight * mp.mpf(m)
            total = after
        step = mp.mpf(step)
        return sum(
            m * -mp.expm1(epsilon - k * step) for k, m in total.items() if k * step > epsilon
        )


def cauchy_delta(scale, epsilon, rate=1):
    """One use at sensitivity 1, direction "remove", in 60 digits: a quadratic bounds the set."""
    with mp.workdps(60):
        # p(x - 1) / p(x) is above gamma between the roots of a quadratic, or outside of them.
        gamma = mp.expm1(mp.mpf(epsilon)) / mp.mpf(rate) + 1
        square = mp.mpf(scale) ** 2
        a, b, c = 1 - gamma, 2 * gamma, square * (1 - gamma) - gamma
        root = b * b - 4 * a * c
        if root <= 0:
            return mp.mpf(0)
        low, high = sorted((-b + sign * mp.sqrt(root)) / (2 * a) for sign in (1, -1))

        def mass(x, center):
            return mp.atan((x - center) / mp.mpf(scale)) / mp.pi

        p = mass(high, 1) - mass(low, 1)
        q = mass(high, 0) - mass(low, 0)
        return mp.mpf(rate) * (p - gamma * q)


def cauchy_delta_twice(scale, rate, epsilon):
    """Two sampled uses next to the largest loss, direction "remove", by an integral."""
    with mp.workdps(30):
        g, q = mp.mpf(scale), mp.mpf(rate)
        center = (1 + mp.sqrt(1 + 4 * g * g)) / 2

        def loss(x):
            return mp.log1p(q * ((g * g + x * x) / (g * g + (x - 1) ** 2) - 1))

        def excess(x):
            return loss(x) - (mp.mpf(epsilon) - loss(center))

        ends = [_bisected(excess, center, center + side) for side in (-2, 2)]

        def density(x):
            one = loss(x)
            mass = g / mp.pi / (g * g + x * x) * mp.exp(one)
            return mass * cauchy_delta(scale, mp.mpf(epsilon) - one, rate)

        return mp.quad(density, [ends[0], center, ends[1]])


def _bisected(function, inside, outside):
    """Where a function changes its sign."""
    for _ in range(110):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if function(middle) > 0 else (inside, middle)
    return (inside + outside) / 2


def even_edges(source, step):
    """Every node of a lattice from below the smallest to above the largest loss."""
    first = math.floor((source.lowest.min() + source.rounding) / step)
    last = math.floor((source.highest.max() + source.rounding) / step) + 1
    return np.arange(first, max(last, first + 2) + 1)
