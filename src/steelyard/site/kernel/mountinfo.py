"""Mounted file systems, by the text of a /proc/PID/mountinfo, see proc_pid_mountinfo(5): the one place that reads its
lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOUNTINFO: Final = Path("/proc/self/mountinfo")
ESCAPED: Final = re.compile(r"\\([0-7]{3})")
"""White space and backslashes in paths."""


@dataclass(frozen=True)
class MountedFileSystem:
    """A line of a mountinfo."""

    numbers: str
    """Number of its device, `major:minor`."""
    root: str
    """Mounted part of the file system: `/` for all of it."""
    point: Path
    """Mount point."""
    options: str
    """Options of this mount."""
    kind: str
    device: str
    more_options: str
    """Options of the file system, wherever it is mounted."""


def parse(text: str) -> tuple[MountedFileSystem, ...]:
    """Mounts in the order of the text, which is that of mounting; lines of another form are skipped. Pure."""
    mounts = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        words, kind = left.split(), right.split()
        if len(words) < 6 or len(kind) < 2:
            continue
        root, point = (ESCAPED.sub(lambda match: chr(int(match[1], 8)), word) for word in words[3:5])
        mounts.append(MountedFileSystem(words[2], root, Path(point), words[5], kind[0], kind[1], "".join(kind[2:3])))
    return tuple(mounts)


def here() -> tuple[MountedFileSystem, ...]:
    """Mounts of this process. Raises OSError."""
    return parse(MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape"))


def below(mounts: Iterable[MountedFileSystem], *folders: Path) -> list[Path]:
    """Mount points below folders, and folders that are mounted on themselves, as a daemon does with its data; the last
    mounted first. Pure."""
    return [
        mount.point
        for mount in reversed(tuple(mounts))
        if any(folder in mount.point.parents or (folder == mount.point and mount.root != "/") for folder in folders)
    ]
