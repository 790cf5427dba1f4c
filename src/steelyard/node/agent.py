"""Search for the agent program, next to the interpreter first, so that a virtual environment need not be active."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from steelyard.model.errors import EngineError
from steelyard.node.base import Node

PROGRAM = "steelyard-agent"
OVERRIDE = "STEELYARD_AGENT"


def candidates() -> tuple[Path, ...]:
    """Possible paths of the agent, in search order."""
    places = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent, Path.home() / ".local" / "bin"]
    override = os.environ.get(OVERRIDE)
    path = shutil.which(PROGRAM)
    listed = [Path(override)] if override else []
    listed += [place / PROGRAM for place in places]
    listed += [Path(path)] if path else []
    return tuple(dict.fromkeys(listed))


def find() -> Path:
    """Path of the agent. Raises EngineError that lists the searched paths."""
    looked = candidates()
    for path in looked:
        if path.is_file() and os.access(path, os.X_OK):
            return path
    raise EngineError(
        f"no {PROGRAM} found; looked at {', '.join(str(path) for path in looked)}",
        f"pip install {PROGRAM}, or `make setup` in a checkout, or set {OVERRIDE} to its path",
    )


def on(node: Node) -> str:
    """Path of the agent as a node sees it. Raises EngineError where it is this machine's and there is none."""
    return node.agent or str(find())
