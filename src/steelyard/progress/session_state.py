"""State of a study as its store has it: in progress, finished, interrupted or failed, and why; words of its last event.

Pure but for `writer_of`, which asks this machine's kernel who holds the store's lock.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from steelyard.events.base import Kept, Unknown
from steelyard.events.kept import (
    ActivityBegan,
    ActivityEnded,
    LevelDerived,
    SessionBegan,
    SessionEnded,
    SessionFailed,
    SessionInterrupted,
)
from steelyard.format import count, duration, listed, number, treatment_label
from steelyard.model.responses import unit_of
from steelyard.store import layout
from steelyard.store.journal import Entry

IN_PROGRESS, FINISHED, INTERRUPTED, FAILED = "in progress", "finished", "interrupted", "failed"

SILENT_S: Final = 8.0
"""A study in progress speaks about once a second; after so long its silence is mentioned."""
LOST_S: Final = 60.0
"""After so long it counts as interrupted: its process was killed, or its machine sleeps."""
ENDS: Final = (SessionBegan, SessionEnded, SessionFailed, SessionInterrupted)
"""Events that say whether the study is in progress: the last of them holds."""
RESUME: Final = "run the same command to resume"
LOCKS: Final = Path("/proc/locks")


def session_state(  # noqa: PLR0911 - one a way to end
    journal: Sequence[Entry], *, planned: int, missing: int, silent_s: float | None
) -> tuple[str, str]:
    """State, and a sentence about it; empty if the state says it all.

    `planned`, `missing`: trials of the plan, and those still to do. `silent_s`: seconds since the study last spoke in
    its live file; None without one.
    """
    if silent_s is not None and silent_s < LOST_S:
        return IN_PROGRESS, f"no sign of life for {duration(silent_s)}" if silent_s >= SILENT_S else ""
    match next((entry.event for entry in reversed(journal) if isinstance(entry.event, ENDS)), None):
        case SessionFailed(message=message, hint=hint):
            return FAILED, "; ".join(filter(None, (message, hint)))
        case SessionEnded(missing=0) if not planned:
            return FINISHED, ""
        case _ if planned and not missing:
            return FINISHED, ""
        case SessionEnded(missing=0):
            return INTERRUPTED, f"{count(missing, 'trial is', 'trials are')} no longer there; {RESUME}"
        case SessionEnded():
            return INTERRUPTED, f"it was asked to stop after a trial; {RESUME}"
        case SessionInterrupted():
            return INTERRUPTED, f"it was stopped; {RESUME}"
        case SessionBegan():
            return INTERRUPTED, _without_a_word(silent_s)
    return INTERRUPTED, "the journal does not say how it ended"


def _without_a_word(silent_s: float | None) -> str:
    if silent_s is None:
        return f"it ended without a word (killed, or a power cut); {RESUME}"
    return f"no sign of life for {duration(silent_s)}: killed, or a power cut ({RESUME}), or its machine sleeps"


def command_of(journal: Sequence[Entry]) -> tuple[str, ...]:
    """Command of the newest session; empty if the journal does not say."""
    began = (entry.event for entry in reversed(journal) if isinstance(entry.event, SessionBegan))
    return next((event.command for event in began), ())


def began_of(journal: Sequence[Entry]) -> float:
    """When the newest session began, seconds since the epoch; 0 if the journal does not say."""
    began = (entry.t_s for entry in reversed(journal) if isinstance(entry.event, SessionBegan))
    return next(began, None) or 0.0


def writer_of(folder: Path, locks: Path = LOCKS) -> int | None:
    """Process of this machine that holds the lock of a store; None if there is none, or the kernel does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        lock = (folder / layout.LOCK).lstat()
        device = f"{os.major(lock.st_dev):02x}:{os.minor(lock.st_dev):02x}"
        for line in locks.read_text(encoding="ascii").splitlines():
            # 1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF
            words = line.split()
            if words[1] != "FLOCK":  # another kind of lock; of one that is waited for the second word is ->
                continue
            held, _, inode = words[5].rpartition(":")
            process = int(words[4])
            if int(inode) == lock.st_ino and (held == device or _opened(process, folder)):
                return process
    return None


def _opened(process: int, folder: Path) -> bool:
    """Whether a process has the lock open: a layered file system shows another device."""
    path = str((folder / layout.LOCK).resolve())
    with contextlib.suppress(OSError):
        return any(os.readlink(entry.path) == path for entry in os.scandir(f"/proc/{process}/fd"))
    return False


def journal_words(event: Kept | Unknown | None) -> str:
    """An event of the journal on its own: the words of an activity or a threshold, otherwise its name."""
    if isinstance(event, ActivityBegan | ActivityEnded):
        return activity_words(event)
    if isinstance(event, LevelDerived):
        return level_words(event)
    return "a line that cannot be read" if event is None else event.name


def level_words(event: LevelDerived) -> str:
    """A derived threshold: where it comes from, and in how many of its own trials the policy would have acted."""
    level, share = event.derived, event.share
    unit, trials = unit_of(level.response), count(len(level.trials), "trial")
    added = f" {'+' if level.add > 0 else '-'} {number(abs(level.add))}" if level.add else ""
    low, high = (100 * (end or 0.0) for end in (share.low, share.high))
    where = treatment_label(event.treatment)
    return (
        f"{level.level}{f', {where}' if where else ''}: threshold {number(level.value, digits=4)} {unit} (mean "
        f"{number(level.mean, digits=4)}{added}, {trials} without a policy); at it the policy would have acted in "
        f"{event.fired} of these {trials}, {100 * share.value:.0f}% [{low:.0f}, {high:.0f}]"
    )


def activity_words(event: ActivityBegan | ActivityEnded) -> str:
    """An activity that begins, with its cause, or that has ended, with its outcome."""
    what = f"{event.kind} of {listed(event.nodes)}"
    if isinstance(event, ActivityBegan):
        return f"{what} begins ({event.cause})"
    match event.outcome:
        case "done" if event.kind == "disruption":
            return f"{listed(event.nodes)} recovered"
        case "done":
            return f"{listed(event.nodes)} {'left' if event.kind == 'scale-in' else 'joined'}"
        case "unfinished":
            return f"{what} is unfinished: the load ended first"
    return f"{what} {event.outcome}{f': {event.error}' if event.error else ''}"
