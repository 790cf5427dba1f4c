"""PostgreSQL from Debian's packages: a primary on the first node, and a streaming replica on each of the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steelyard.system.postgresql._settings import Settings
from steelyard.system.postgresql._system import PostgreSQL, packaged

__all__ = ["PostgreSQL", "Settings", "create", "missing_packages"]


async def missing_packages(settings: Settings | None = None) -> Sequence[str]:
    """Debian packages that this machine lacks."""
    return await packaged(settings.version if settings else None).missing()


def create(settings: Settings, cache_folder: Path) -> PostgreSQL:
    """Make the system; no side effects."""
    return PostgreSQL(settings, cache_folder)
