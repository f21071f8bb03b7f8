"""Errors that users may want to catch by name."""

from __future__ import annotations

__all__ = ["BudgetError", "CalibrationError", "CertificationError", "DomainError"]


class DomainError(ValueError):
    """An argument of the right kind has a value outside its domain."""


class CertificationError(RuntimeError):
    """A bound was asked for that cannot be certified."""


class CalibrationError(RuntimeError):
    """No parameter of the law meets the target."""


class BudgetError(RuntimeError):
    """A ledger refuses a release that its budget is not known to cover."""
