"""Programs of this machine, for sites that need some."""

from __future__ import annotations

import os
import shutil

ROOT_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Folders of root's programs, which users' search paths often lack."""


def program(name: str) -> str | None:
    """Path of a program, also in the folders for root's programs."""
    return shutil.which(name, path=search_path())


def search_path() -> str:
    """The search path of this process with the folders for root's programs."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *ROOT_FOLDERS])
