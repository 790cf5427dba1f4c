"""A small disk of a test's own: a tmpfs, which is unmounted whatever happens. Needs root."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHUNK_BYTES = 4096


@dataclass(frozen=True)
class SmallDisk:
    """The mounted folder."""

    folder: Path

    def fill(self) -> None:
        """Leave no byte free."""
        with (self.folder / "filler").open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * CHUNK_BYTES)

    def empty(self) -> None:
        """Take away what `fill` wrote."""
        (self.folder / "filler").unlink(missing_ok=True)

    def remount(self, options: str) -> None:
        """Change the size, or make it read-only."""
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.folder)], check=True)


@contextlib.contextmanager
def mounted(folder: Path, size: str) -> Iterator[SmallDisk]:
    """A disk of `size` (`300k`, `2m`) at a new folder."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "steelyard-test", str(folder)], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
