"""Where lines go: standard output, the file of `-log file=`, and what `-graph` keeps; standard error for all else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from steelyard.dropin.stress.parse.refusal import Refused


@dataclass
class Voice:
    """Says lines. `kept`: all lines of the log, for the page of `-graph`."""

    out: TextIO
    err: TextIO
    file: TextIO | None = None
    kept: list[str] = field(default_factory=list)

    def say(self, *lines: str) -> None:
        """Lines of the log."""
        self.kept.extend(lines)
        for stream in (self.out, self.file):
            if stream is not None:
                stream.write("".join(f"{line}\n" for line in lines))
                stream.flush()

    def say_here(self, line: str) -> None:
        """A line of standard output that does not go to the file, as cassandra-stress keeps them apart."""
        self.out.write(f"{line}\n")
        self.out.flush()

    def note(self, line: str) -> None:
        """A line on standard error."""
        self.err.write(f"{line}\n")
        self.err.flush()


def opened(option: str, path: Path) -> TextIO:
    """A file to write, its folder made. Raises Refused."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise Refused(option, str(path), error.strerror or "cannot be written", "a file that may be written") from None


@contextlib.contextmanager
def speaking(log: Path | None) -> Iterator[Voice]:
    """A voice on this process's own output, and on a file."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(opened("-log file=", log)) if log is not None else None
        yield Voice(sys.stdout, sys.stderr, file)
