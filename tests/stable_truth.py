"""Symmetric stable densities and tails in mpmath, by methods that the package does not use."""

from __future__ import annotations

import functools

import mpmath
from mpmath import mpf


def density(alpha, y, digits=20):
    """Fourier's integral on a ray of the complex plane, by the trapezoidal rule."""
    ray = _ray(alpha, y, digits, lambda t, power, wave: t * mpmath.exp(-power + wave), True)
    return ray.real


def survival(alpha, y, digits=20):
    """``Im of integral (1 - exp(-t**alpha)) exp(i t y) dt / (pi t)``: positive down to any tail."""
    ray = _ray(
        alpha, y, digits, lambda t, power, wave: -mpmath.expm1(-power) * mpmath.exp(wave), False
    )
    return ray.imag


def _ray(alpha, y, digits, integrand, ends_early):
    """``integral of integrand(t) dv / pi`` over ``t = exp(v + i phi)``.

    What the integral of the other part, real or imaginary, cancels is unknown beforehand: the
    digits are those of the smallest probability in sight.
    """
    y = mpf(y)
    depth = int(max(0, mpmath.log10(1 + y)) * (1 + alpha)) + 20
    with mpmath.workdps(digits + depth):
        alpha = mpf(alpha)
        phi = min(mpmath.pi / 3, mpmath.pi / (3 * alpha))
        turn = mpmath.expjpi(phi / mpmath.pi)
        power_turn = mpmath.expjpi(alpha * phi / mpmath.pi)
        # Analytic for |Im v| below about pi / 6 around phi.
        reach = (digits + depth) * mpmath.log(10)
        step = 2 * mpmath.pi * min(mpmath.pi / 6, mpmath.pi / (6 * alpha)) / reach
        low = min(-mpmath.log(1 + y), mpf(0)) - reach / min(alpha, mpf(1))
        high = mpmath.log(reach / (y * mpmath.sin(phi)))
        if ends_early:
            high = min(high, mpmath.log(reach / mpmath.cos(alpha * phi)) / alpha)
        total = mpmath.mpc(0)
        grow, power_grow = mpmath.exp(step), mpmath.exp(alpha * step)
        t, power = mpmath.exp(low) * turn, mpmath.exp(alpha * low) * power_turn
        for _ in range(int((high - low) / step) + 2):
            total += integrand(t, power, 1j * t * y)
            t, power = t * grow, power * power_grow
        return total * step / mpmath.pi


@functools.cache
def _terms(alpha, count):
    with mpmath.workdps(150):
        alpha = mpf(alpha)
        near = [
            (-1) ** k
            * mpmath.gamma((2 * k + 1) / alpha)
            / (mpmath.pi * alpha * mpmath.factorial(2 * k))
            for k in range(count)
        ]
        far = [
            (-1) ** (k + 1)
            * mpmath.gamma(alpha * k + 1)
            * mpmath.sinpi(alpha * k / 2)
            / (mpmath.pi * mpmath.factorial(k))
            for k in range(1, count)
        ]
        return near, far


def holtsmark(t):
    """Density and survival function of index 3/2 by its two series, to 18 digits or more."""
    near, far = _terms(1.5, 420)
    t = mpf(t)
    if t <= 8:
        # The largest terms are about exp(4 t^3 / 27), and 45 t of them are not negligible.
        with mpmath.workdps(30 + int(t**3 / 7)):
            square = t * t
            density = mass = mpf(0)
            for k in reversed(range(40 + int(45 * t))):
                density, mass = density * square + near[k], mass * square + near[k] / (2 * k + 1)
            return density, mpf(1) / 2 - t * mass
    w = t ** mpf(-1.5)
    density = survival = mpf(0)
    previous = mpmath.inf
    for k, a in enumerate(far, start=1):
        term = a * w**k
        if abs(term) > previous > 0:
            break
        density, survival = density + term / t, survival + term / (mpf(1.5) * k)
        previous = abs(term) if term else previous
    return density, survival
