"""Programs and mount points of this machine, for sites that need some."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOT_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Folders of root's programs, which users' search paths often lack."""


def program(name: str) -> str | None:
    """Path of a program, also in the folders for root's programs."""
    return shutil.which(name, path=search_path())


def search_path() -> str:
    """The search path of this process with the folders for root's programs."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *ROOT_FOLDERS])


def mounted_below(mountinfo: str, *folders: Path) -> list[Path]:
    """Mount points below folders, and folders that are mounted on themselves, as a daemon does with its data; the last
    mounted first. `mountinfo` is the text of /proc/self/mountinfo. Pure."""
    lines = [line.split() for line in mountinfo.splitlines()]
    points = [(Path(words[4].replace("\\040", " ")), words[3]) for words in lines if len(words) > 4]
    return [
        point
        for point, root in reversed(points)
        if any(folder in point.parents or (folder == point and root != "/") for folder in folders)
    ]
