"""Site `ssh`: machines of an inventory, reached by the user's own ssh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steelyard.site.ssh.site import Settings, SshSite

__all__ = ["FILES", "Settings", "SshSite", "create"]

FILES = {"inventory": "inventory"}
"""Settings that name a file in the study's folder, and what the file is."""


def create(settings: Any, state_folder: Path) -> SshSite:
    """Make the site; no side effects. `settings` is a `Settings`."""
    return SshSite(Settings.model_validate(settings), state_folder)
