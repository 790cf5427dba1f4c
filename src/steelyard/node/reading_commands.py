"""Commands that only read (`status`, `report`, `serve`, ...): while a study is measured they run at idle priority, and
the study knows their processor time and counts it as the laboratory's own, not as background load.

A study in progress has a file in the folder `sessions` of the state folder, `PID.TICKS`, where TICKS is the start time
of its process; it is empty, or says that the study waits for a quiet machine, and nothing is measured. Each reading
command that runs then has one in `readers`, `PID.TICKS.COMMAND`; when it ends, the milliseconds that it took are added
to that name. Only commands that are at idle priority by then are recorded, as they use only idle time, and
those that began while a study waited. Commands with another state folder, and those begun before the study (but
`serve`, which follows), are background load.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from steelyard.node.processor import RunningProgram, census, process_time_s, start_ticks

FOLDER, SESSIONS = "readers", "sessions"
LASTING = frozenset({"serve"})
"""Commands that run until they are stopped."""
FOLLOWING_S = 0.5
"""Interval at which such a command checks whether a study has begun or ended."""
KEPT_S = 3600.0
"""A record is kept for this long after its command began or ended, which is longer than almost all trials."""
MS_PER_S = 1000
WAITS = "waits"
"""Content of the record of a study that waits for a quiet machine."""


class AnnouncedSession:
    """A study in progress, as other commands of this machine see it."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._waits = False

    def waits(self, now: bool) -> None:
        """Say whether the study waits for a quiet machine: until it continues nothing is measured."""
        if now != self._waits:
            self._waits = now
            with contextlib.suppress(OSError):
                self._record.write_text(WAITS if now else "", encoding="ascii")


@contextlib.contextmanager
def session(state: Path) -> Iterator[AnnouncedSession]:
    """Announce that this process measures a study. Where it cannot, reading commands keep their priority."""
    record = state / SESSIONS / f"{os.getpid()}.{start_ticks(os.getpid())}"
    with contextlib.suppress(OSError):
        record.parent.mkdir(parents=True, exist_ok=True)
        _forget(record.parent, kept_s=0.0)
        record.touch()
    try:
        yield AnnouncedSession(record)
    finally:
        with contextlib.suppress(OSError):
            record.unlink()


def in_progress(state: Path) -> dict[int, bool]:
    """Process of each study in progress on this machine, to whether it measures and does not wait. What a killed one
    left does not count."""
    studies = {}
    for name in _names(state / SESSIONS):
        words = name.split(".")
        if len(words) == 2 and _is_alive(*words):
            with contextlib.suppress(OSError):
                studies[int(words[0])] = (state / SESSIONS / name).read_text(encoding="ascii") != WAITS
    return studies


def measured_now(state: Path) -> bool:
    """Whether a study is measured on this machine."""
    return any(in_progress(state).values())


@contextlib.contextmanager
def recorded(command: str, state: Path, become_idle: Callable[[], bool] | None = None) -> Iterator[None]:
    """While a study is measured: run at idle priority, with a record in the state folder. A command of LASTING has its
    record from the beginning, and changes its priority whenever a study begins or ends. Where either is impossible, the
    command runs anyway, and its time is background load."""
    lasting = command in LASTING
    studies = {} if lasting else in_progress(state)
    become_idle = become_idle or at_idle_priority
    wanted = lasting or (become_idle() if any(studies.values()) else bool(studies))
    record = _begin(command, state) if wanted else None
    try:
        with _following(state, record, become_idle) if lasting and record is not None else contextlib.nullcontext():
            yield
    finally:
        if record is not None:
            _end(record)


@contextlib.contextmanager
def _following(state: Path, record: Path, become_idle: Callable[[], bool]) -> Iterator[None]:
    """Idle priority while a study is measured, normal priority else, for this process and all that it starts."""
    over = threading.Event()

    def follow() -> None:
        idle = begun_idle
        while not over.wait(FOLLOWING_S):
            if measured_now(state) != idle:
                idle = not idle
                for pid in _living(state, census()).get(record.name, []):
                    _set_policy(pid, os.SCHED_IDLE if idle else os.SCHED_OTHER)

    begun_idle = measured_now(state) and become_idle()
    thread = threading.Thread(target=follow, name="priority", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _set_policy(pid: int, policy: int) -> None:
    """Scheduling of every thread of a process; of those that are gone, or where it is forbidden, nothing changes."""
    for thread in _names(Path(f"/proc/{pid}/task")):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(int(thread), policy, os.sched_param(0))


def at_idle_priority() -> bool:
    """Give this process, and all that it starts, only the time that no other process wants. Its input and output get
    the idle class with it (ioprio_set(2)). Returns whether the kernel permits it."""
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except OSError:
        return False
    return True


def times_s(state: Path, programs: Mapping[tuple[int, int], RunningProgram]) -> dict[str, float]:
    """Processor seconds of each recorded command so far, of processes that it started too, by `PID.TICKS.COMMAND`.
    `programs`: a census of now."""
    living = _living(state, programs)
    seconds: dict[str, float] = {}
    for name in _names(state / FOLDER):
        identity, _, milliseconds = name.rpartition(".")
        if milliseconds.isdigit():
            seconds[identity] = int(milliseconds) / MS_PER_S
        elif name in living:
            seconds[name] = sum(process_time_s(pid) for pid in living[name])
    return seconds


def process_ids(state: Path, programs: Mapping[tuple[int, int], RunningProgram]) -> frozenset[int]:
    """Recorded commands that are running, with all processes that they started."""
    return frozenset(pid for family in _living(state, programs).values() for pid in family)


def taken_s(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    """Processor seconds that recorded commands took between two readings of `times_s`."""
    return sum(max(0.0, seconds - before.get(identity, 0.0)) for identity, seconds in after.items())


def _begin(command: str, state: Path) -> Path | None:
    """The record; None if there can be none, or where the parent has one: the time of its children is its own."""
    folder, ticks = state / FOLDER, start_ticks(os.getpid())
    if any(name.startswith(f"{os.getppid()}.") and name.count(".") == 2 for name in _names(state / FOLDER)):
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _forget(folder)
        record = folder / f"{os.getpid()}.{ticks}.{command}"
        record.touch()
    except OSError:
        return None
    return record


def _end(record: Path) -> None:
    own = os.times()
    milliseconds = int(MS_PER_S * (own.user + own.system + own.children_user + own.children_system))
    with contextlib.suppress(OSError):
        os.utime(record)
        record.rename(record.with_name(f"{record.name}.{milliseconds}"))


def _forget(folder: Path, kept_s: float = KEPT_S) -> None:
    """Remove old records of commands and studies that have ended, or were killed."""
    for entry in os.scandir(folder):
        pid, ticks, *_ = (*entry.name.split("."), "", "")
        # Another command may have removed it.
        with contextlib.suppress(OSError):
            if time.time() - entry.stat().st_mtime > kept_s and not _is_alive(pid, ticks):
                Path(entry).unlink()


def _is_alive(pid: str, ticks: str) -> bool:
    return pid.isdigit() and ticks.isdigit() and start_ticks(int(pid)) == int(ticks)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _living(state: Path, programs: Mapping[tuple[int, int], RunningProgram]) -> dict[str, list[int]]:
    """Record to the process and all its descendants."""
    roots = {}
    for name in _names(state / FOLDER):
        words = name.split(".")
        if len(words) == 3 and words[0].isdigit() and words[1].isdigit():
            who = int(words[0]), int(words[1])
            if who in programs:
                roots[who[0]] = name
    families: dict[str, list[int]] = {}
    if roots:
        parents = {pid: program.parent for (pid, _), program in programs.items()}
        for pid in parents:
            ancestor = pid
            while ancestor in parents and ancestor not in roots:
                ancestor = parents[ancestor]
            if ancestor in roots:
                families.setdefault(roots[ancestor], []).append(pid)
    return families
