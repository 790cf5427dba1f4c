"""One command line inside of this process: what it printed, its exit code, its time; bounded."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from steelyard.cli.main import main
from steelyard.node.folders import STATE_VARIABLE

STEELYARD = (sys.executable, "-m", "steelyard")
"""The command line of a process of its own."""
UNFORESEEN = "this was not foreseen"
"""What the command line says of an exception that nobody turned into an error for people."""


class OverLimit(BaseException):
    """A command took longer than its limit. No `Exception`, so that nothing takes it for an error of its own."""


@dataclass(frozen=True)
class Call:
    """How a command ended."""

    words: tuple[str, ...]
    code: int | None
    """Exit code; None if it was ended at its limit."""
    out: str
    err: str
    seconds: float

    @property
    def unforeseen(self) -> bool:
        """Whether it fell over."""
        return UNFORESEEN in self.err or "Traceback (most recent call last)" in self.err + self.out

    @property
    def last_line(self) -> str:
        """The last line that it printed, for a record."""
        lines = (self.out + self.err).strip().splitlines()
        return lines[-1] if lines else ""


def call(*words: str | Path, limit_s: float) -> Call:
    """Run `steelyard WORDS` in this process. Needs the main thread: the limit is an alarm."""
    texts = tuple(str(word) for word in words)
    out, err = io.StringIO(), io.StringIO()
    begun_s = time.monotonic()
    code: int | None = None
    before = sys.argv
    try:
        sys.argv = ["steelyard", *texts]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), bounded(limit_s):
            main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except OverLimit:
        pass
    finally:
        sys.argv = before
    return Call(texts, code, out.getvalue(), err.getvalue(), time.monotonic() - begun_s)


def apart(argv: Sequence[str], state: Path, limit_s: float) -> tuple[int | None, str]:
    """Run a command line in a process of its own, with a state folder. Returns its exit code, None if it was ended at
    its limit, and what it printed."""
    environment = {**os.environ, STATE_VARIABLE: str(state), "NO_COLOR": "1"}
    try:
        done = subprocess.run(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=limit_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return None, str(late.stdout)
    return done.returncode, done.stdout


@contextlib.contextmanager
def bounded(limit_s: float) -> Iterator[None]:
    """Raises OverLimit in the main thread after `limit_s` seconds."""

    def over(number: int, frame: FrameType | None) -> None:
        raise OverLimit

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def lines_of(calls: Sequence[Call]) -> list[list[object]]:
    """Each command with its exit code, seconds and last line: facts for a record."""
    return [[one.words[0], one.code, round(one.seconds, 2), one.last_line[:300]] for one in calls]
