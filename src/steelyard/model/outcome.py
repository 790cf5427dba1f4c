"""How an operation ended, as the load engine names it."""

from __future__ import annotations

from typing import Final

ANSWERED: Final = ("ok", "not-found", "not-applied")
"""Outcomes that are no errors; the last is of a light-weight transaction whose condition did not hold."""
TIMEOUT: Final = "timeout"
