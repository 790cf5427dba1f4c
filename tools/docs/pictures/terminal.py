"""Terminal screens as SVG: what a command prints, and the live screen of a study in progress."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

LINES: Final = 40
COLUMNS: Final = 100
ENDS_S: Final = 900.0
"""Longest wait for a screen."""
WATCHED: Final = 300
"""Screens with a load before one is taken: some trials are done."""
ANY_MACHINE: Final = "background_cpu_fraction = 1.0\nlag_p99_ms = 1000"
"""Limits with which a study runs on a busy machine: its pictures show no results."""
REDRAWN: Final = re.compile(rb"(?:\r?\x1b\[2K(?:\x1b\[1A)?)+")
"""What the live screen writes before it is drawn anew."""
SHOWN: Final = "p99"
"""A screen with this word shows a load."""
LIGHT: Final = TerminalTheme(
    (255, 255, 255),
    (36, 41, 47),
    [
        (36, 41, 47),
        (180, 35, 24),
        (17, 99, 41),
        (130, 80, 0),
        (9, 80, 170),
        (130, 50, 140),
        (10, 105, 120),
        (90, 98, 107),
    ],
)
FORM: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
 font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>
{lines}
</defs>
<rect x="1" y="1" width="99.8%" height="99%" rx="8" fill="#fff" stroke="#d0d7de"/>
<g transform="translate({terminal_x}, 10)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own form fetches a font."""


def picture(words: Sequence[str], folder: Path, columns: int = COLUMNS) -> str:
    """A command that was typed in a folder, with its output. Raises RuntimeError if it printed nothing."""
    settings = {**os.environ, "COLUMNS": str(columns), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    argv = [sys.executable, "-m", "steelyard", *words]
    done = subprocess.run(argv, cwd=folder, env=settings, stdout=subprocess.PIPE, check=False, text=True)
    if not done.stdout:
        raise RuntimeError(f"{words}: no output, exit code {done.returncode}")
    return svg(f"$ steelyard {' '.join(words)}\n{done.stdout}", columns)


def svg(screen: str, columns: int) -> str:
    """Text with a terminal's colours as a picture."""
    console = Console(record=True, file=io.StringIO(), width=columns, force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(screen.rstrip()), soft_wrap=False)
    return console.export_svg(title="", theme=LIGHT, code_format=FORM, unique_id="screen")


@contextlib.contextmanager
def study_in_progress(folder: Path, study: Path, *, columns: int = COLUMNS) -> Iterator[Callable[[], str]]:
    """Run a study into the folder's stores until the block ends. Gives the picture of its newest screen."""
    folder.mkdir(parents=True, exist_ok=True)
    text = study.read_text(encoding="utf-8").replace("[limits]\n", f"[limits]\n{ANY_MACHINE}\n")
    (folder / study.name).write_text(
        text if ANY_MACHINE in text else f"{text}\n[limits]\n{ANY_MACHINE}\n", encoding="utf-8"
    )
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
    settings = {
        **os.environ,
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "STEELYARD_STATE": str(folder / "state"),
    }
    argv = [sys.executable, "-m", "steelyard", "run", study.name]
    process = subprocess.Popen(argv, cwd=folder, env=settings, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    written: list[bytes] = []
    # Read all the time: a study whose terminal takes nothing stands still.
    reader = threading.Thread(target=_read, args=(ours, written), daemon=True)
    reader.start()

    def newest() -> str:
        """The last screen that was drawn as a whole and shows a load. Raises RuntimeError if there is none in time."""
        end = time.monotonic() + ENDS_S
        while time.monotonic() < end and reader.is_alive():
            whole = [part.decode(errors="ignore") for part in REDRAWN.split(b"".join(written))[:-1]]
            loaded = [part.replace("\r", "") for part in whole if SHOWN in part]
            if len(loaded) >= WATCHED:
                return svg(loaded[-1], columns)
            time.sleep(0.2)
        raise RuntimeError(f"{study.name}: no screen with a load")

    try:
        yield newest
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(ENDS_S)
        reader.join(1)
        os.close(ours)


def _read(terminal: int, written: list[bytes]) -> None:
    # The terminal's end is an error on Linux.
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 1 << 16):
            written.append(part)
