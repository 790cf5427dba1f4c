"""State folder (leases, node folders) and cache folder (downloads, snapshots) of Steelyard.

Both are read from the environment at call time, so that a test or a second installation can have its own folders.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

STATE_VARIABLE = "STEELYARD_STATE"
CACHE_VARIABLE = "STEELYARD_CACHE"


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """`$STEELYARD_STATE`, else `$XDG_STATE_HOME/steelyard`, else `~/.local/state/steelyard`; absolute, not created."""
    return _folder(environment, STATE_VARIABLE, "XDG_STATE_HOME", Path(".local") / "state")


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """`$STEELYARD_CACHE`, else `$XDG_CACHE_HOME/steelyard`, else `~/.cache/steelyard`; absolute, not created."""
    return _folder(environment, CACHE_VARIABLE, "XDG_CACHE_HOME", Path(".cache"))


def _folder(environment: Mapping[str, str], own: str, base: str, in_home: Path) -> Path:
    if named := environment.get(own):
        return Path(named).expanduser().absolute()
    # By the XDG base directory specification a relative path is ignored.
    if (shared := environment.get(base)) and Path(shared).is_absolute():
        return Path(shared) / "steelyard"
    return Path.home() / in_home / "steelyard"
