"""Output streams: standard output, the file of `-log file=`, the log for `-graph`; notes go to standard error."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from steelyard.dropin.stress.parse.refusal import Refused
from steelyard.shown_text import visible


@dataclass
class Voice:
    """Writer of output lines. `kept`: all lines of the log, for the page of `-graph`."""

    out: TextIO
    err: TextIO
    file: TextIO | None = None
    kept: list[str] = field(default_factory=list)

    def say(self, *lines: str) -> None:
        """Write lines to the log."""
        self.kept.extend(lines)
        text = visible("".join(f"{line}\n" for line in lines), lines=True)
        for stream in (self.out, self.file):
            if stream is not None:
                stream.write(text)
                stream.flush()

    def say_here(self, line: str) -> None:
        """Write a line to standard output only, not to the file, as cassandra-stress does."""
        self.out.write(visible(f"{line}\n", lines=True))
        self.out.flush()

    def note(self, line: str) -> None:
        """Write a line to standard error."""
        self.err.write(visible(f"{line}\n", lines=True))
        self.err.flush()


def opened(option: str, path: Path) -> TextIO:
    """Open a file for writing and create its folder. Raises Refused."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise Refused(option, str(path), error.strerror or "cannot be written", "a file that may be written") from None


@contextlib.contextmanager
def speaking(log: Path | None) -> Iterator[Voice]:
    """A voice on this process's own output and on a file."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(opened("-log file=", log)) if log is not None else None
        yield Voice(sys.stdout, sys.stderr, file)
