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

AGAIN = "and run the same command again"
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
FORBIDDEN = frozenset({errno.EACCES, errno.EPERM})
BROKEN = frozenset({errno.EIO, errno.ESTALE, errno.ENXIO, errno.ENODEV})
UNFIT = frozenset({errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP})
"""Names that cannot be files. Not a file that is missing: whoever expects one says so, else it is a fault of ours."""
TOO_MANY = frozenset({errno.EMFILE, errno.ENFILE})
WHOLE_DISK = FULL | BROKEN | {errno.EROFS}
"""Whatever is attempted next on the same disk fails too."""
RUST_ERROR = re.compile(r"\(os error (\d+)\)")
"""What libraries written in Rust (polars) add to the text of an error that the kernel gave them."""


def of_the_disk(error: BaseException) -> bool:
    """Whether a full, read-only or failing disk is to blame: it stops whatever is attempted next, too."""
    number, _ = _of(error)
    return number in WHOLE_DISK


def foreseen(error: BaseException) -> FileError | None:
    """The error for people, if the disk or a file's permissions are to blame: the file, free space, what to do. None
    for anything else."""
    if isinstance(error, FileError):
        return error
    number, path = _of(error)
    if isinstance(error, OSError) and not path and number in FORBIDDEN | UNFIT:
        return None  # a process or a socket
    message, hint = _words(number, path, getattr(error, "strerror", None) or os.strerror(number))
    return FileError(message, hint, path=path) if message else None


def _words(number: int, path: str, reason: str) -> tuple[str, str]:
    """What happened, and what to do; empty if nothing is known. `reason`: the words of the
    kernel, or of whoever refused."""
    what = hint = ""
    if number in FULL:
        what, hint = f" cannot be written: {_full(number, path)}", f"free some space, or name another folder, {AGAIN}"
    elif number == errno.EROFS:
        what, hint = " cannot be written: the file system is read-only", f"mount it writable, or name another, {AGAIN}"
    elif number in FORBIDDEN:
        what = f": permission denied for user {_user()}{_owner(path)}"
        hint = f"give this user the right to it, or name another place, {AGAIN}"
    elif number in BROKEN:
        what = f" cannot be read or written: {os.strerror(number)}"
        hint = "the disk may be failing: read the kernel's messages (dmesg), and copy the store to another one"
    elif number in TOO_MANY:
        what = " cannot be opened: too many files are open"
        hint = "close other programs of this user, or allow more open files (ulimit -n)"
    elif number in UNFIT:
        what, hint = f": {reason[:1].lower()}{reason[1:]}", "name another file or folder"
    return (f"{path or 'a file'}{what}", hint) if what else ("", "")


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
