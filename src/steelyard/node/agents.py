"""Search for the agent of a processor architecture: programs for nodes that are not this machine.

`make agents` puts static ones next to the agent of this machine: `steelyard-agent-x86_64`, `-aarch64`, `-armv7`.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

from steelyard.model.errors import EngineError
from steelyard.node import agent

ARCHITECTURES = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "armv7l": "armv7",
    "armv8l": "armv7",
}
"""Output of `uname -m`, and suffix of the agent's name."""
HINT = "run `make agents` in a checkout"


def candidates(architecture: str) -> tuple[Path, ...]:
    """Possible paths of the agent for the output of `uname -m`, in search order: a static one wherever the agent of
    this machine is looked for, and that one itself where it is of the same architecture."""
    name = ARCHITECTURES.get(architecture)
    if name is None:
        return ()
    own = ARCHITECTURES.get(platform.machine()) == name
    listed: list[Path] = []
    for path in agent.candidates():
        listed += [path.with_name(f"{agent.PROGRAM}-{name}"), *([path] if own else [])]
    return tuple(dict.fromkeys(listed))


def find(architecture: str) -> Path:
    """Path of the agent for an architecture, the output of `uname -m`. Raises EngineError with the hint."""
    if architecture not in ARCHITECTURES:
        known = ", ".join(dict.fromkeys(ARCHITECTURES.values()))
        raise EngineError(f"no agent supports processors of type {architecture}", f"use one of {known}")
    for path in candidates(architecture):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    folders = ", ".join(dict.fromkeys(str(path.parent) for path in candidates(architecture)))
    name = f"{agent.PROGRAM}-{ARCHITECTURES[architecture]}"
    raise EngineError(f"agent for {architecture} not found: no {name} in {folders}", HINT)
