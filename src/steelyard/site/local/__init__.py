"""Site `local`: many nodes on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steelyard.site.local.site import LocalSite, Settings

__all__ = ["LocalSite", "Settings", "create"]


def create(settings: Any, state_folder: Path) -> LocalSite:
    """Make the site; no side effects. `settings` is a `Settings`."""
    return LocalSite(Settings.model_validate(settings), state_folder)
