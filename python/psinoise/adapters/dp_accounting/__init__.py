"""Exchange with Google's ``dp_accounting``: its events, and its privacy loss distributions."""

from __future__ import annotations

from psinoise.adapters.dp_accounting.distributions import from_pld, to_pld
from psinoise.adapters.dp_accounting.events import from_event

__all__ = ["from_event", "from_pld", "to_pld"]
