"""Series of the symmetric stable densities at 0 and at infinity, with bounds of the rest.

Coefficients are computed in decimal arithmetic, whose logarithm and exponential are correctly
rounded, and rounded once to float64: the same bits on every machine.

With ``Y`` of characteristic function ``exp(-abs(u)**alpha)``, for ``y > 0``,

* at 0: ``p(y) = sum of (-1)**k c_k y**(2 k)``,
  ``c_k = Gamma((2 k + 1) / alpha) / (pi alpha (2 k)!)``. The partial sums are those of the cosine
  inside ``(1 / pi) integral of cos(u y) exp(-u**alpha) du``, which lie on both sides of it: what
  is left out is at most the first term left out, for every ``alpha``, whether the series converges
  (``alpha > 1``) or not.
* at infinity: ``p(y) = sum over k >= 1 of a_k y**(-alpha k - 1)``,
  ``a_k = (-1)**(k + 1) Gamma(alpha k + 1) sin(pi alpha k / 2) / (pi k!)`` (Bergstrom, Arkiv for
  Matematik 2, 1952). Turning the path of integration to ``u = v exp(i phi)`` with
  ``phi = min(pi / 2, pi / (2 alpha))`` keeps ``z = u**alpha`` in the right half plane, where the
  Taylor sum of ``exp(-z)`` up to degree ``n`` is off by at most ``abs(z)**(n + 1) / (n + 1)!``:
  what is left out is at most
  ``Gamma(alpha (n + 1) + 1) / (pi (n + 1)!) * (y sin(phi))**(-alpha (n + 1) - 1)``. The bound
  holds for the survival function too, relative to its first term.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from itertools import accumulate, pairwise

import numpy as np

from psinoise._backend import core
from psinoise.noise._base import Float
from psinoise.noise._elementary import constant, logarithm, logarithm_pair, minus
from psinoise.numerics import double_double as dd

__all__ = ["Series", "series"]

# 30 digits of everything beside a 2 - alpha of 1e-16.
_CONTEXT = decimal.Context(prec=48, Emax=99999, Emin=-99999)
_TERMS_AT_ZERO = 24  # 12 where the series does not converge
_TERMS_AT_INFINITY = 60
# What a series leaves out, and by how much its terms may cancel.
_NEGLIGIBLE = 2.0**-58
_MOST_CANCELLATION = 1.0
# Places where a series may begin to serve: four to an octave.
_GRID = np.arange(-4 * 80, 4 * 12) / 4.0
# Largest share of degrees above 10 of x**(2 k) on [0, 1], k = 6, ..., 11: sums of binomial(4 k, j)
# over j < 2 k - 10, times 2**(1 - 4 k).
_BEYOND_DEGREE = (3e-6, 2.8e-5, 1.2e-4, 3e-4, 7e-4, 1.3e-3)


@cache
def _pi() -> Decimal:
    # Machin's formula.
    with decimal.localcontext(_CONTEXT) as context:
        context.prec += 6

        def arctangent_of_inverse(n: int) -> Decimal:
            power, total, k = Decimal(1) / n, Decimal(0), 0
            while abs(power) > Decimal(10) ** (-context.prec - 2):
                total += power / (2 * k + 1)
                power, k = -power / (n * n), k + 1
            return total

        return 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))


@cache
def _stirling() -> tuple[Decimal, ...]:
    """``B_2n / (2 n (2 n - 1))`` for n = 1, 2, ..., 14."""
    bernoulli = [Decimal(1)]
    with decimal.localcontext(_CONTEXT):
        binomials = [Decimal(1), Decimal(1)]
        for m in range(1, 29):
            binomials = [Decimal(1), *(a + b for a, b in pairwise(binomials)), Decimal(1)]
            weighted = (w * b for w, b in zip(binomials, bernoulli, strict=False))
            bernoulli.append(-sum(weighted, Decimal(0)) / (m + 1))
        return tuple(bernoulli[2 * n] / (2 * n * (2 * n - 1)) for n in range(1, 15))


def _gamma(z: Decimal) -> Decimal:
    """Gamma function for ``z > 0``, to 30 digits: Stirling's series from 32 on."""
    factor = Decimal(1)
    while z < 32:
        factor *= z
        z += 1
    square = z * z
    power, correction = z, Decimal(0)
    for coefficient in _stirling():
        correction += coefficient / power
        power *= square
    half_log = (2 * _pi()).ln() / 2
    return ((z - Decimal("0.5")) * z.ln() - z + half_log + correction).exp() / factor


def _sine(quarters: Decimal) -> Decimal:
    """``sin(pi quarters / 2)``, relative to its zeros."""
    turns = quarters.to_integral_value(decimal.ROUND_HALF_EVEN)
    x = _pi() * (quarters - turns) / 2
    which = int(turns) % 4
    term = x if which % 2 == 0 else Decimal(1)
    k = 1 if which % 2 == 0 else 0
    total = Decimal(0)
    while abs(term) > abs(total) * Decimal("1e-40"):
        total += term
        term = -term * x * x / ((k + 1) * (k + 2))
        k += 2
    return -total if which >= 2 else total


def _pair(value: Decimal) -> dd.Pair:
    hi = float(value)
    return constant(hi, float(value - Decimal(hi)))


def _horner(coefficients: Float, x: Float) -> Float:
    total = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


@dataclass(frozen=True)
class Series:
    """Both series of one index, each with the range where it is right to 2**-58."""

    alpha: dd.Pair
    unit: float  # a power of two, in which the series at 0 measures y
    log_peak: dd.Pair  # log p(0)
    central: Float  # (-1)**k c_k / c_0 * unit**(2 k)
    near: float  # up to where the series at 0 serves
    log_leading: dd.Pair  # log a_1
    tail: Float  # a_k / a_1 for k = 1, 2, ...
    far: float  # from where the series at infinity serves
    first_exponent: int  # log p is a polynomial of degree 10 on [0, 2**first_exponent]

    def central_values(self, y: Float) -> tuple[dd.Pair, dd.Pair, Float]:
        """``log p``, ``log P(Y > y)`` and ``-(log p)'`` for ``y <= near``."""
        u = y / self.unit
        square = u * u
        k = np.arange(self.central.size)
        ratio = _horner(self.central, square)
        log_density = dd.add(self.log_peak, logarithm_pair(ratio))
        mass = core.exponential(*self.log_peak) * (y * _horner(self.central / (2 * k + 1), square))
        slope = _horner((self.central * (-2 * k))[1:], square) * u / self.unit
        return log_density, logarithm_pair(0.5 - mass), slope / ratio

    def tail_values(self, y: Float) -> tuple[dd.Pair, dd.Pair, Float]:
        """``log p``, ``log P(Y > y)`` and ``-(log p)'`` for ``y >= far``."""
        log_y = logarithm_pair(y)
        w = self._power(log_y)
        k = np.arange(1, self.tail.size + 1)
        density, slope = _horner(self.tail, w), _horner(self.tail * (self.alpha[0] * k + 1.0), w)
        power = dd.multiply(dd.add(self.alpha, constant(1.0, 0.0)), log_y)
        log_density = dd.add(dd.add(self.log_leading, minus(power)), logarithm_pair(density))
        return log_density, self.log_survival(log_y), (slope / density) / y

    def log_survival(self, log_y: dd.Pair) -> dd.Pair:
        """``log P(Y > y)`` from ``log y``, which may lie beyond the logarithm of any float64."""
        w = self._power(log_y)
        k = np.arange(1, self.tail.size + 1)
        power = dd.multiply(self.alpha, log_y)
        rest = logarithm_pair(_horner(self.tail / k, w))
        return dd.add(dd.add(self._log_leading_survival, minus(power)), rest)

    def log_quantile(self, log_survival: dd.Pair) -> dd.Pair:
        """``log y`` from ``log P(Y > y)``, for points from ``far`` on."""
        target = dd.add(self._log_leading_survival, minus(log_survival))
        k = np.arange(1, self.tail.size + 1)
        log_y = _divide(target, self.alpha)
        # Newton's method from the leading term, whose error is a third at most.
        for _ in range(5):
            w = self._power(log_y)
            survival, density = _horner(self.tail / k, w), _horner(self.tail, w)
            power = dd.multiply(self.alpha, log_y)
            excess = dd.add(dd.add(target, logarithm_pair(survival)), minus(power))
            step = (excess[0] + excess[1]) * (survival / density) / self.alpha[0]
            log_y = dd.add(log_y, (step, 0.0 * step))
        return log_y

    @property
    def _log_leading_survival(self) -> dd.Pair:
        """``log(a_1 / alpha)``."""
        hi, lo = logarithm_pair(self.alpha[0])
        return dd.add(self.log_leading, (-hi, -(lo + self.alpha[1] / self.alpha[0])))

    def _power(self, log_y: dd.Pair) -> Float:
        """``y**-alpha``."""
        return core.exponential(*minus(dd.multiply(self.alpha, log_y)))


def _divide(a: dd.Pair, b: dd.Pair) -> dd.Pair:
    hi = a[0] / b[0]
    rest = dd.add(a, minus(dd.multiply(b, (hi, 0.0 * hi))))
    return dd.quick_two_sum(hi, rest[0] / b[0])


@lru_cache(maxsize=64)
def series(alpha_hi: float, alpha_lo: float) -> Series:
    """The series of index ``alpha_hi + alpha_lo``, which is neither 1 nor 2."""
    with decimal.localcontext(_CONTEXT):
        return _series(Decimal(alpha_hi) + Decimal(alpha_lo), constant(alpha_hi, alpha_lo))


def _series(alpha: Decimal, pair: dd.Pair) -> Series:
    count = _TERMS_AT_ZERO if alpha > 1 else _TERMS_AT_ZERO // 2
    factorial = list(accumulate(range(1, 2 * count + 1), lambda a, b: a * b, initial=1))
    first = _gamma(1 / alpha)
    sizes = [_gamma((2 * k + 1) / alpha) / (first * factorial[2 * k]) for k in range(count + 1)]
    unit = Decimal(2) ** (-(_exponent(sizes[1]) // 2))
    central = np.array([float(size * unit ** (2 * k)) for k, size in enumerate(sizes)])
    near, kept = _largest_near(central, float(unit))
    first_exponent = _smooth_exponent(central, float(unit))

    k_factorial = list(accumulate(range(1, _TERMS_AT_INFINITY + 2), lambda a, b: a * b, initial=1))
    envelope = [
        _gamma(alpha * k + 1) / k_factorial[k] / _pi() for k in range(1, _TERMS_AT_INFINITY + 2)
    ]
    signed = [(-1) ** (k + 1) * size * _sine(alpha * k) for k, size in enumerate(envelope, start=1)]
    leading = signed[0]
    tail = np.array([float(value / leading) for value in signed])
    bounds = np.array([float(value / leading) for value in envelope])
    turn = _sine(1 / alpha) if alpha > 1 else Decimal(1)
    far, terms = _smallest_far(float(pair[0][0]), tail, bounds, float(turn.ln()))
    return Series(
        alpha=pair,
        unit=float(unit),
        log_peak=_pair((first / (_pi() * alpha)).ln()),
        central=np.where(np.arange(kept) % 2 == 0, 1.0, -1.0) * central[:kept],
        near=near,
        log_leading=_pair(leading.ln()),
        tail=tail[:terms],
        far=far,
        first_exponent=first_exponent,
    )


def _exponent(value: Decimal) -> int:
    """The whole part of the binary logarithm, off by one at most."""
    return int((value.ln() / Decimal(2).ln()).to_integral_value(decimal.ROUND_FLOOR))


def _powers(x: float, count: int) -> Float:
    """``x**0, ..., x**(count - 1)`` by multiplication."""
    return np.multiply.accumulate(np.concatenate([[1.0], np.full(count - 1, x)]))


def _largest_near(central: Float, unit: float) -> tuple[float, int]:
    """How far the series at 0 serves, and its number of terms."""
    for exponent in _GRID[_GRID <= 4.0][::-1]:
        y = _grid_point(exponent)
        if (y / unit) ** 2 > 4.0:
            continue
        terms = central * _powers((y / unit) ** 2, central.size)
        good = np.flatnonzero(terms[1:] <= _NEGLIGIBLE) + 1
        if good.size and terms[1 : good[0]].sum() <= 0.5 * _MOST_CANCELLATION:
            return y, int(good[0])
    raise AssertionError("the series at 0 serves near 0")


def _smooth_exponent(central: Float, unit: float) -> int:
    """The largest exponent, at most -4, of a panel at 0 that degree 10 is enough for."""
    exponent = -4
    shares = np.array(_BEYOND_DEGREE)
    while True:
        powers = _powers((2.0**exponent / unit) ** 2, 6 + shares.size)
        with np.errstate(over="ignore"):
            rest = (central[6 : powers.size] * powers[6:] * shares).sum()
        if rest <= 1e-16:
            return exponent
        exponent -= 1


def _smallest_far(alpha: float, tail: Float, bounds: Float, log_turn: float) -> tuple[float, int]:
    """Where the series at infinity begins to serve, and its number of terms."""
    k = np.arange(1.0, tail.size + 1.0)
    for exponent in _GRID:
        y = _grid_point(exponent)
        log_y = logarithm(y)
        size = core.exponential(np.asarray(-alpha * log_y * (k - 1.0)), np.zeros(k.size))
        turned = core.exponential(np.asarray(-(alpha * k + 1.0) * log_turn), np.zeros(k.size))
        with np.errstate(over="ignore"):
            left_out = bounds * size * turned
        good = np.flatnonzero(left_out[1:] <= _NEGLIGIBLE)
        if not good.size:
            continue
        terms = int(good[0]) + 1
        if np.abs(tail[1:terms] * size[1:terms]).sum() <= _MOST_CANCELLATION:
            return y, terms
    raise AssertionError("the series at infinity serves far out")


def _grid_point(exponent: float) -> float:
    """About ``2**exponent``: the grid need not be exact, only the same everywhere."""
    whole = int(np.floor(exponent))
    return float(2.0**whole * (1.0, 1.1875, 1.4140625, 1.6875)[int(4 * (exponent - whole))])
