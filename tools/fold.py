"""Fold the output of a command of the set-up: `python3 tools/fold.py "compiling the agent" -- cargo build`.

At a terminal one line moves; elsewhere a line is printed at least every 15 s. The whole output is in a file of
`target/setup`, which is named; if the command fails, its last lines follow. Only the standard library: this runs
before there is an environment.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO

LOGS: Final = Path("target/setup")
SILENT_S: Final = 15.0
BEAT_S: Final = 0.2
TAIL_LINES: Final = 20
TAIL_BYTES: Final = 64_000
LEFT_WIDTH: Final = 20
"""Characters that are kept for the command's own last line, at least."""
SIGNS: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
CLEAR: Final = "\r\x1b[2K"


def fold(
    what: str,
    argv: Sequence[str],
    out: TextIO,
    *,
    moving: bool,
    logs: Path = LOGS,
    beat_s: float = BEAT_S,
    silent_s: float = SILENT_S,
) -> int:
    """Run a command: its exit code; 127 if there is no such program, 130 if it was interrupted.

    `beat_s`: how often the line moves; `silent_s`: how long nothing is said where it does not move.
    """
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{re.sub(r'[^a-z0-9]+', '-', what.lower()).strip('-')}.log"
    if not moving:
        print(f"{what}: output in {log}", file=out, flush=True)
    with log.open("wb") as file:
        file.write(f"$ {shlex.join(argv)}\n".encode())
        file.flush()
        try:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        except OSError as error:
            print(f"{what}: {argv[0]}: {error.strerror}", file=out, flush=True)
            return 127
        begun_s = time.monotonic()
        try:
            code = _followed(process, what, log, out, moving=moving, beat_s=beat_s, silent_s=silent_s)
        except KeyboardInterrupt:
            # The terminal has interrupted the command as well.
            process.wait()
            code = 130
    took = f"{time.monotonic() - begun_s:.0f} s"
    start = CLEAR if moving else ""
    if code == 0:
        print(f"{start}{what}: done in {took}", file=out, flush=True)
    else:
        print(f"{start}{what}: failed after {took} with exit code {code}; its last lines:", file=out)
        for line in _tail(log)[-TAIL_LINES:]:
            print(f"  {line}", file=out)
        print(f"the whole output: {log}", file=out, flush=True)
    return code


def _followed(
    process: subprocess.Popen[bytes], what: str, log: Path, out: TextIO, *, moving: bool, beat_s: float, silent_s: float
) -> int:
    begun_s = spoke_s = time.monotonic()
    for beat in range(sys.maxsize):
        try:
            return process.wait(beat_s)
        except subprocess.TimeoutExpired:
            now_s = time.monotonic()
        line = f"{what}: {now_s - begun_s:.0f} s"
        if moving:
            room = shutil.get_terminal_size().columns - 1
            newest = (_tail(log)[-1:] or [""])[0].strip()
            line = f"{SIGNS[beat % len(SIGNS)]} {line}"
            shown = f"{line}  {newest}" if room - len(line) >= LEFT_WIDTH else line
            print(f"{CLEAR}{shown[:room]}", end="", file=out, flush=True)
        elif now_s - spoke_s >= silent_s:
            spoke_s = now_s
            newest = (_tail(log)[-1:] or [""])[0].strip()
            print(f"  {line}  {newest[: LEFT_WIDTH * 3]}".rstrip(), file=out, flush=True)
    raise AssertionError


def _tail(log: Path) -> list[str]:
    """Last lines of the log, without what a terminal would obey."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        text = file.read().decode(errors="replace")
    return [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]", "", line) for line in text.splitlines()]


def main() -> int:
    """The command line."""
    what, dashes, *argv = sys.argv[1:]
    if dashes != "--" or not argv:
        print("usage: fold.py WHAT -- COMMAND ...", file=sys.stderr)
        return 2
    # Of several jobs at once each would overwrite the line of the other.
    several = re.search(r"--jobserver|(^| )-j", os.environ.get("MAKEFLAGS", "")) is not None
    return fold(what, argv, sys.stderr, moving=sys.stderr.isatty() and not several)


if __name__ == "__main__":
    sys.exit(main())
