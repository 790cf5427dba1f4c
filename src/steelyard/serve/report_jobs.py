"""Report jobs: reports made on demand by `steelyard report`, in their own process.

A process, because a big store takes seconds and hundreds of megabytes: the other requests continue, what it took is
given back, and the end of the server ends it. One at a time and with low priority, because a study may be measuring on
this machine. What is made lies in a scratch folder, never in the store.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from steelyard.model.secret import redacted_text

Kind = Literal["report", "figures", "answer"]
State = Literal["waiting", "making", "ready", "failed"]

PAGE, TABLES, FIGURES, ANSWER = "report.html", "tables", "figures", "answer.json"
LEFT: Final[dict[Kind, str]] = {"report": PAGE, "figures": PAGE, "answer": ANSWER}
"""File that a job must leave."""
LIMIT_S: Final = 900.0
"""Time limit of one job."""
GRACE_S: Final = 5.0
KEPT: Final = 8
"""Finished jobs whose files stay in the scratch folder; the oldest are removed."""
WAITING: Final = 16
"""Jobs that may wait for their turn."""
NICE: Final = 10
SAID_CHARS: Final = 2000
ENDS_WITH_US: Final = """\
import os, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(3)), daemon=True).start()
"""
"""Python that a command begins with: its standard input ends when this process does, however that happens, and then it
ends too."""

Argv = Callable[[Kind, Path, Path], Sequence[str]]
"""The command that makes `kind` of the store at the first path, into the folder at the second; it ends with 0 or 1, and
when its standard input does."""


@dataclass(frozen=True)
class Job:
    """A report, a set of figures or an answer that was asked for."""

    number: int
    name: str
    """Name of the store."""
    kind: Kind
    changed: str
    """State of the store when it was asked for."""
    store: Path
    folder: Path
    state: State
    asked_s: float
    """By the monotonic clock."""
    failure: str = ""
    """Why it failed."""


class Crowded(Exception):
    """Too much waits for its turn."""


class Maker:
    """Runs the report jobs one after the other."""

    def __init__(self, argv: Argv, scratch: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._argv = argv
        self._scratch = scratch
        self._clock = clock
        self._guard = threading.Lock()
        self._numbers = itertools.count(1)
        self._things: dict[int, Job] = {}
        self._queue: queue.Queue[int | None] = queue.Queue()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._worker = threading.Thread(target=self._work, name="steelyard-make", daemon=True)
        self._worker.start()

    def ask(self, name: str, kind: Kind, store: Path, changed: str) -> Job:
        """The job of this state of the store: done, in progress, or begun now. A failed one is tried again. Raises
        Crowded if too much waits."""
        with self._guard:
            for earlier in self._things.values():
                if (earlier.name, earlier.kind, earlier.changed, earlier.store) == (name, kind, changed, store) and (
                    earlier.state != "failed"
                ):
                    return earlier
            if sum(one.state == "waiting" for one in self._things.values()) >= WAITING:
                raise Crowded
            number = next(self._numbers)
            job = Job(number, name, kind, changed, store, self._scratch / str(number), "waiting", self._clock())
            self._things[number] = job
            self._forget()
        self._queue.put(number)
        return job

    def find(self, number: int, name: str) -> Job | None:
        """Something of this store that was asked for, by its number; None if it is not kept any more."""
        with self._guard:
            job = self._things.get(number)
            return job if job is not None and job.name == name else None

    def gone_s(self, job: Job) -> float:
        """Seconds since it was asked for."""
        return self._clock() - job.asked_s

    def close(self) -> None:
        """End what is being made. Idempotent."""
        with self._guard:
            self._closed = True
            process = self._process
        self._queue.put(None)
        if process is not None:
            _end(process)
        self._worker.join(GRACE_S)

    def _forget(self) -> None:
        over = [one for one in self._things.values() if one.state in ("ready", "failed")]
        for job in over[: max(0, len(over) - KEPT)]:
            del self._things[job.number]
            shutil.rmtree(job.folder, ignore_errors=True)

    def _work(self) -> None:
        while (number := self._queue.get()) is not None:
            with self._guard:
                if self._closed:
                    return
                job = self._things[number] = replace(self._things[number], state="making")
            failure = self._run(job)
            with self._guard:
                self._things[number] = replace(job, state="failed" if failure else "ready", failure=failure)

    def _run(self, job: Job) -> str:
        """Run a job. Returns why it failed, or an empty string."""
        try:
            job.folder.mkdir(parents=True)
            with (job.folder / "said.txt").open("wb") as errors_file:
                process = subprocess.Popen(
                    list(self._argv(job.kind, job.store, job.folder)),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors_file,
                    cwd=job.folder,
                    start_new_session=True,
                )
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
            with self._guard:
                self._process, closed = process, self._closed
            try:
                if closed:
                    return "the server ends"
                code = process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                return f"it took longer than its limit of {LIMIT_S:g} s"
            finally:
                _end(process)
                if process.stdin is not None:
                    process.stdin.close()
                with self._guard:
                    self._process = None
            if code in (0, 1) and (job.folder / LEFT[job.kind]).is_file():
                return ""
            text = (job.folder / "said.txt").read_text(encoding="utf-8", errors="replace").strip()
            return redacted_text(text)[-SAID_CHARS:] or f"it exited with code {code} and printed nothing"
        except OSError as error:
            return f"it could not be made: {error}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and wait for it. Idempotent."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
