"""Errors that users may want to catch by name."""

from __future__ import annotations

from typing import Any

__all__ = ["BudgetError", "CalibrationError", "CertificationError", "DomainError"]


class DomainError(ValueError):
    """An argument of the right kind has a value outside its domain.

    Examples
    --------
    >>> import psinoise as pn
    >>> pn.Gaussian(std=-1.0)
    Traceback (most recent call last):
    psinoise.errors.DomainError: std must be positive and finite, got -1.0
    """


class CertificationError(RuntimeError):
    """A bound was asked for that cannot be certified.

    Attributes
    ----------
    bracket : Bracket or None
        The tightest sound bracket that was found, where there is one.

    Examples
    --------
    >>> import psinoise as pn
    >>> try:
    ...     pn.Mechanism(pn.Airy(mean_abs=2.0)).epsilon(1e-6, count=100, tolerance=1e-13)
    ... except pn.CertificationError as error:
    ...     print(error.bracket.width > 1e-13)
    True
    """

    def __init__(self, message: str, bracket: Any = None) -> None:
        super().__init__(message)
        self.bracket = bracket


class CalibrationError(RuntimeError):
    """No parameter of the law meets the target.

    Examples
    --------
    >>> import psinoise as pn
    >>> try:
    ...     pn.calibrate(pn.Gaussian, epsilon=1.0, delta=0.0)
    ... except pn.CalibrationError as error:
    ...     print(error)
    Gaussian noise has no largest privacy loss: no scale meets delta = 0
    """


class BudgetError(RuntimeError):
    """A ledger refuses a release that would exceed its budget.

    Examples
    --------
    >>> import psinoise as pn
    >>> ledger = pn.Ledger(epsilon=1.0, delta=1e-6)
    >>> ledger.release(pn.Mechanism(pn.Gaussian(std=1.0)), 41.0)
    Traceback (most recent call last):
    psinoise.errors.BudgetError: this would exceed the budget of epsilon 1.0 at delta 1e-06
    """
