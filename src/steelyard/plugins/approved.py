"""Approvals of Python files that studies name: each yes of the user, kept in the state folder for a path and content.

Which code is trusted when, and why: docs/decisions/0017-whose-code-runs.md.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from steelyard.node.folders import state_folder
from steelyard.plugins.find import PluginFile

KEPT = "trusted-plugins.jsonl"
"""File in the state folder, with a line for each yes."""
MODE = 0o600
MOST_BYTES = 4_000_000
"""Maximum bytes of the kept approvals that are read."""


def is_approved(file: PluginFile) -> bool:
    """Whether the user said yes to this content at this path; no if another user owns the approvals or may write
    them."""
    try:
        handle = os.open(state_folder() / KEPT, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with os.fdopen(handle, encoding="utf-8", errors="replace") as kept:
        return _is_private(os.fstat(handle)) and _line(file) in kept.read(MOST_BYTES).splitlines()


def approve(file: PluginFile) -> None:
    """Keep a yes."""
    folder = state_folder()
    folder.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with os.fdopen(os.open(Path(folder, KEPT), flags, MODE), "a", encoding="utf-8") as kept:
        if os.fstat(kept.fileno()).st_uid == os.geteuid() and not _is_private(os.fstat(kept.fileno())):
            # Any user who can write to it may have approved anything.
            os.ftruncate(kept.fileno(), 0)
            os.fchmod(kept.fileno(), MODE)
        kept.write(_line(file) + "\n")


def _line(file: PluginFile) -> str:
    return json.dumps({"sha256": file.sha256, "path": str(file.path)})


def _is_private(about: os.stat_result) -> bool:
    return about.st_uid == os.geteuid() and stat.S_IMODE(about.st_mode) == MODE and stat.S_ISREG(about.st_mode)
