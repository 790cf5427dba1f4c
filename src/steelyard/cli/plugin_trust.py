"""Permission to execute the Python files that a study names: `--trust`, or a yes at a terminal.

A yes is kept in the state folder for that path and content; another content is asked about again. Which code is trusted
when, and why: docs/decisions/0017-whose-code-runs.md.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from steelyard.cli.terminal.output import message_console, say
from steelyard.model.errors import StudyError
from steelyard.node.folders import state_folder
from steelyard.plugins.find import PluginFile, Trust, any_file

KEPT = "trusted-plugins.jsonl"
"""File in the state folder, with a line for each yes."""
MODE = 0o600
MOST_BYTES = 4_000_000
"""Maximum bytes of the kept answers that are read."""


def trust_of(given: bool) -> Trust:
    """The trust of a command: every file with `--trust`, otherwise those that the user approves or has approved."""
    return any_file if given else asking(_at_a_terminal, _answer)


def asking(can_ask: Callable[[], bool], says_yes: Callable[[PluginFile], bool]) -> Trust:
    """The trust of a user who is asked where that is possible, and whose yes is kept."""

    def asked(file: PluginFile) -> None:
        if _line(file) in _kept():
            return
        if can_ask() and says_yes(file):
            _keep(file)
            return
        raise StudyError(
            f"{file.path} (sha256 {file.sha256}) would be executed for the {file.seam}: look at it, then add --trust, "
            "or run the command at a terminal and say yes",
            key=f"{file.seam}.name",
            read=str(file.path),
        )

    return asked


def _at_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _answer(file: PluginFile) -> bool:
    """Ask at the terminal; no is the default."""
    console = message_console()
    # As repr: a name may hold what moves the cursor of a terminal.
    say(console, f"the study names code as its {file.seam}: {str(file.path)!r}")
    say(console, f"  sha256 {file.sha256}; it can do whatever you can do")
    console.print("execute it, now and later while it stays the same? [y/N] ", end="", markup=False, highlight=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _line(file: PluginFile) -> str:
    return json.dumps({"sha256": file.sha256, "path": str(file.path)})


def _kept() -> frozenset[str]:
    """The lines of former answers; none of a file that another user owns or may write."""
    try:
        handle = os.open(state_folder() / KEPT, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return frozenset()
    with os.fdopen(handle, encoding="utf-8", errors="replace") as file:
        if not _is_private(os.fstat(handle)):
            return frozenset()
        return frozenset(file.read(MOST_BYTES).splitlines())


def _keep(file: PluginFile) -> None:
    folder = state_folder()
    folder.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with os.fdopen(os.open(Path(folder, KEPT), flags, MODE), "a", encoding="utf-8") as kept:
        if os.fstat(kept.fileno()).st_uid == os.geteuid() and not _is_private(os.fstat(kept.fileno())):
            # Any user who can write to it may have approved anything.
            os.ftruncate(kept.fileno(), 0)
            os.fchmod(kept.fileno(), MODE)
        kept.write(_line(file) + "\n")


def _is_private(about: os.stat_result) -> bool:
    return about.st_uid == os.geteuid() and stat.S_IMODE(about.st_mode) == MODE and stat.S_ISREG(about.st_mode)
