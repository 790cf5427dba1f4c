"""Provenance of a measurement: the command that began it, and the commit of a program that runs from a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from steelyard.events.kept import SessionBegan
from steelyard.leases.records import boot_id
from steelyard.node.machine_facts import MACHINE_VARIABLE

CHECKOUT = Path(__file__).resolve().parents[3]
GIT_TIMEOUT_S = 10.0


def commit(checkout: Path = CHECKOUT) -> str:
    """The commit of the checkout that the program runs from, `-changed` behind it where files differ; empty for an
    installed one, and without git."""
    if not (checkout / ".git").exists():
        return ""
    head = _git(checkout, "rev-parse", "HEAD")
    changed = head and _git(checkout, "status", "--porcelain", "--untracked-files=no", "--", "src", "crates")
    return f"{head}-changed" if changed else head


def _git(checkout: Path, *words: str) -> str:
    # Without locks: whoever commits meanwhile is not in the way. Without GIT_DIR: a hook's variables name its own.
    argv = ["git", "--no-optional-locks", "-C", str(checkout), *words]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False, env=variables)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def boot() -> str:
    """Id of the kernel's boot here; of a machine that was given a name, that: it is as if it were one of its own."""
    return os.environ.get(MACHINE_VARIABLE) or boot_id()


def session_began(todo: int, total: int, argv: Sequence[str] | None = None) -> SessionBegan:
    """The beginning of a session for the journal: its trials, the command, the working directory, the commit, the
    machine's boot."""
    command = tuple(sys.argv if argv is None else argv)
    folder = str(Path.cwd())
    return SessionBegan(todo=todo, total=total, command=command, folder=folder, commit=commit(), boot=boot())
