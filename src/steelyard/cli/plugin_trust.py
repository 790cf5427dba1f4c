"""Permission to execute the Python files that a study names: `--trust`, or a yes at a terminal.

A yes is kept for that path and content; another content is asked about again. Which code is trusted when, and why:
docs/decisions/0017-whose-code-runs.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from steelyard.cli.terminal.output import message_console
from steelyard.model.errors import StudyError
from steelyard.plugins.approved import approve, is_approved
from steelyard.plugins.find import PluginFile, Trust, any_file


def trust_of(given: bool) -> Trust:
    """The trust of a command: every file with `--trust`, otherwise those that the user approves or has approved."""
    return any_file if given else asking(lambda: True, _answer)


def asking(can_ask: Callable[[], bool], says_yes: Callable[[PluginFile], bool]) -> Trust:
    """The trust of a user who is asked where that is possible, and whose yes is kept."""

    def asked(file: PluginFile) -> None:
        if is_approved(file):
            return
        if can_ask() and says_yes(file):
            approve(file)
            return
        raise StudyError(
            f"{file.path} (sha256 {file.sha256}) would be executed for the {file.seam}: look at it, then add --trust, "
            "or run the command at a terminal and say yes",
            key=f"{file.seam}.name",
            read=str(file.path),
        )

    return asked


def _answer(file: PluginFile) -> bool:
    """Ask at the terminal, if there is one."""
    # As repr: a name may hold what moves the cursor of a terminal.
    named = f"the study names code as its {file.seam}: {str(file.path)!r}\n  sha256 {file.sha256}"
    return says_yes(f"{named}; it can do whatever you can do\nexecute it, now and later while it stays the same?")


def says_yes(question: str) -> bool:
    """Whether the user says yes at a terminal; no is the default."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    message_console().print(f"{question} [y/N] ", end="", markup=False, highlight=False, soft_wrap=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
