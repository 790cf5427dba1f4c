"""Foreseen errors of disks: what the kernel says of a full, read-only, failing or forbidden file, in words for people.

Whoever writes lets OSError pass; the places that decide what comes next (the command line, the conductor) ask
`foreseen`.
"""

from __future__ import annotations

import errno
import getpass
import os
import re
import shutil
from pathlib import Path

from steelyard.format import data_size
from steelyard.model.errors import FileError

AGAIN = "then the same command goes on: no sealed trial is lost"
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
FORBIDDEN = frozenset({errno.EACCES, errno.EPERM})
BROKEN = frozenset({errno.EIO, errno.ESTALE, errno.ENXIO, errno.ENODEV})
UNFIT = frozenset({errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EMFILE, errno.ENFILE})
"""Names that cannot be files. Not a file that is missing: whoever expects one says so, else it is a fault of ours."""
RUST_ERROR = re.compile(r"\(os error (\d+)\)")
"""What libraries written in Rust (polars) add to the text of an error that the kernel gave them."""


def of_the_disk(error: BaseException) -> bool:
    """Whether a full, read-only or failing disk is to blame: it stops whatever is attempted next, too."""
    number, _ = _of(error)
    return number in FULL or number in (errno.EROFS, errno.EIO)


def foreseen(error: BaseException) -> FileError | None:
    """The error for people, if the disk or a file's permissions are to blame: the file, free space, what to do. None
    for anything else."""
    if isinstance(error, FileError):
        return error
    number, path = _of(error)
    message, hint = _words(number, path)
    return FileError(message, hint, path=path) if message else None


def _words(number: int, path: str) -> tuple[str, str]:
    """What happened, and what to do; empty if nothing is known."""
    named = path or "a file"
    if number in FULL:
        return f"{named} cannot be written: {_full(number, path)}", f"free some space, or name another folder; {AGAIN}"
    if number == errno.EROFS:
        hint = f"mount it writable, or name another folder; {AGAIN}"
        return f"{named} cannot be written: the file system is read-only", hint
    if number in FORBIDDEN:
        hint = f"give this user the right to it, or name another place; {AGAIN}"
        return f"{named}: permission denied for user {_user()}{_owner(path)}", hint
    if number in BROKEN:
        hint = "the disk may be failing: read the kernel's messages (dmesg), and copy the store to another one"
        return f"{named} cannot be read or written: {os.strerror(number)}", hint
    if number in UNFIT:
        return f"{named}: {os.strerror(number)[:1].lower()}{os.strerror(number)[1:]}", "name another file or folder"
    return "", ""


def _of(error: BaseException) -> tuple[int, str]:
    """The kernel's number of an error, 0 if it has none, and the file if it is known."""
    if isinstance(error, OSError):
        name = error.filename
        path = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else ""
        return error.errno or 0, path
    match = RUST_ERROR.search(str(error))
    return (int(match[1]), "") if match else (0, "")


def _full(number: int, path: str) -> str:
    if number == errno.EDQUOT:
        return f"the disk quota of user {_user()} is used up"
    if number == errno.EFBIG:
        return "it would be larger than a file may be"
    return f"the disk is full{free_space(Path(path)) if path else ''}"


def free_space(path: Path) -> str:
    """` (120 KiB of 300 KiB are free)`, or that no more files fit; empty if it is not known."""
    try:
        existing = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
        usage, files = shutil.disk_usage(existing), os.statvfs(existing)
    except (OSError, StopIteration):
        return ""
    if files.f_files and not files.f_favail:
        return f" (no more files fit, {data_size(usage.free)} of {data_size(usage.total)} are free)"
    return f" ({data_size(usage.free)} of {data_size(usage.total)} are free)"


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.geteuid())


def _owner(path: str) -> str:
    """`; it belongs to root`, of the file or of the nearest folder that there is; empty if it is not known."""
    if not path:
        return ""
    for place in (Path(path).absolute(), *Path(path).absolute().parents):
        try:
            return f"; {place} belongs to {place.owner()}"
        except FileNotFoundError:
            continue
        except (OSError, KeyError):
            return ""
    return ""
