"""Scalars to 45 decimal digits: where a last bit decides, and the same everywhere."""

from __future__ import annotations

from decimal import Context, Decimal

_CONTEXT = Context(prec=45)


def log_of_half_inverse(hi: float, lo: float) -> tuple[float, float]:
    """``-log(2 (hi + lo))`` as a pair."""
    doubled = _CONTEXT.multiply(Decimal(2), _CONTEXT.add(Decimal(hi), Decimal(lo)))
    return split(-_CONTEXT.ln(doubled))


def power(base: Decimal, exponent: Decimal) -> Decimal:
    """``base ** exponent``."""
    return _CONTEXT.power(base, exponent)


def ratio(numerator: Decimal, denominator: Decimal) -> Decimal:
    """``numerator / denominator``."""
    return _CONTEXT.divide(numerator, denominator)


def join(pair: tuple[float, float]) -> Decimal:
    """``hi + lo``."""
    return _CONTEXT.add(Decimal(pair[0]), Decimal(pair[1]))


def split(value: Decimal) -> tuple[float, float]:
    """A decimal number as the sum of two doubles."""
    hi = float(value)
    return hi, float(_CONTEXT.subtract(value, Decimal(hi)))
