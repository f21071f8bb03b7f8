"""Errors that users may want to catch by name."""

from __future__ import annotations

from typing import Any

__all__ = ["BudgetError", "CalibrationError", "CertificationError", "DomainError"]


class DomainError(ValueError):
    """An argument of the right kind has a value outside its domain."""


class CertificationError(RuntimeError):
    """A bound was asked for that cannot be certified.

    Attributes
    ----------
    bracket : Bracket or None
        The tightest sound bracket that was found, where there is one.
    """

    def __init__(self, message: str, bracket: Any = None) -> None:
        super().__init__(message)
        self.bracket = bracket


class CalibrationError(RuntimeError):
    """No parameter of the law meets the target."""


class BudgetError(RuntimeError):
    """A ledger refuses a release that would exceed its budget."""
