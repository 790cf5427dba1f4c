"""Foreseen disk errors, explained for people: full, read-only and failing disks, and files without permission.

Code that writes files lets OSError propagate; the callers that decide what happens next (the command line, the
conductor) use `foreseen`.
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
"""Invalid file names. Missing files are excluded: either the caller reports them, or they are a bug of ours."""
TOO_MANY = frozenset({errno.EMFILE, errno.ENFILE})
WHOLE_DISK = FULL | BROKEN | {errno.EROFS}
"""Errors after which further attempts on the same disk fail too."""
RUST_ERROR = re.compile(r"\(os error (\d+)\)")
"""Suffix that Rust libraries (polars) add to the kernel's error text."""


def of_the_disk(error: BaseException) -> bool:
    """Whether the cause is a full, read-only or failing disk, on which further attempts fail too."""
    number, _ = _of(error)
    return number in WHOLE_DISK


def foreseen(error: BaseException) -> FileError | None:
    """The error for people if its cause is the disk or a file's permissions: the file, free space, what to do. None for
    other errors."""
    if isinstance(error, FileError):
        return error
    number, path = _of(error)
    if isinstance(error, OSError) and not path and number in FORBIDDEN | UNFIT:
        return None  # a process or a socket
    message, hint = _words(number, path, getattr(error, "strerror", None) or os.strerror(number))
    return FileError(message, hint, path=path) if message else None


def _words(number: int, path: str, reason: str) -> tuple[str, str]:
    """What happened and what to do; empty if unknown. `reason`: the words of the kernel, or of the code that
    refused."""
    what = hint = ""
    if number in FULL:
        what, hint = f" cannot be written: {_full(number, path)}", f"free some space or use another folder, {AGAIN}"
    elif number == errno.EROFS:
        what, hint = " cannot be written: the file system is read-only", f"mount it writable or use another, {AGAIN}"
    elif number in FORBIDDEN:
        what = f": permission denied for user {_user()}{_owner(path)}"
        hint = f"grant this user access or use another folder, {AGAIN}"
    elif number in BROKEN:
        what = f" cannot be read or written: {os.strerror(number)}"
        hint = "the disk may be failing: check the kernel's messages (dmesg), and copy the store to another disk"
    elif number in TOO_MANY:
        what = " cannot be opened: too many files are open"
        hint = "close other programs of this user, or raise the limit of open files (ulimit -n)"
    elif number in UNFIT:
        what, hint = f": {reason[:1].lower()}{reason[1:]}", "use another file or folder"
    return (f"{path or 'a file'}{what}", hint) if what else ("", "")


def _of(error: BaseException) -> tuple[int, str]:
    """The error number (0 if there is none) and the file if known."""
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
        return "it would exceed the maximum file size"
    return f"the disk is full{free_space(Path(path)) if path else ''}"


def free_space(path: Path) -> str:
    """` (120 KiB of 300 KiB are free)`, or that no more files fit; empty if unknown."""
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
    """`; PATH belongs to root` for the file or its nearest existing folder; empty if unknown."""
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
