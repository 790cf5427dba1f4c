"""Files and folders of somebody else, opened without following a link.

What lies below a folder may have been put there by anybody: a link would lead a reader or a writer to another file of
its user, a pipe would block it, a device would act. The folder itself is the user's own choice, and may be reached by
links. Each step below it is opened from the one before, so that nobody can exchange a folder meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import BinaryIO, Final

LINK: Final = "a symbolic link, which is not followed below a folder of results"
NOT_REGULAR: Final = "it is not a regular file"
HARD_LINK: Final = "a hard link: the same file has other names too; copy the folder (cp -r) and use the copy"
NOT_THEIRS: Final = "a hard link to a file of another user than the folder's"
NO_NAME: Final = "no file of ours can have this name"

STORE_SIGN: Final = "study.json"
BESIDE_IT: Final = ("plan.jsonl", "trials", "events.jsonl")
"""What a study's folder in a store has, and at least one of what lies beside it (`store.layout`)."""
LONGEST_NAME: Final = 400
"""Of a file that is told; names of ours have up to 300 characters with their folders."""
MOST_LINKS: Final = 40
"""That are followed to a place: as many as the kernel follows."""


class Kind(Enum):
    """What an entry of a folder is, itself and not behind a link."""

    FILE = "regular file"
    FOLDER = "folder"
    OTHER = "link, pipe, socket or device"


def place_of(path: Path) -> tuple[Path, Path | None]:
    """Where a path of the user's own leads, and the store that it is in, if any: links are followed up to there, and
    none below it. Raises OSError for a circle of links."""
    waiting, place, links = [*reversed(path.absolute().parts[1:])], Path("/"), 0
    store: Path | None = None
    while waiting:
        part = waiting.pop()
        if store is None and _is_store(place):
            store = place
        if part == "..":
            place = place.parent
            store = store if store is not None and place.is_relative_to(store) else None
        elif store is None and (place / part).is_symlink():
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, "too many links lead to one another", str(path))
            to = Path(os.readlink(place / part))
            place = Path("/") if to.is_absolute() else place
            waiting += [name for name in reversed(to.parts) if name != "/"]
        else:
            place /= part
    return place, store


def _is_store(folder: Path) -> bool:
    # Without a plan, trials and a journal nothing of a study is read, and a project may have a study.json of its own.
    return is_there(folder / STORE_SIGN) and any(is_there(folder / name) for name in BESIDE_IT)


def open_folder(folder: Path, below: Path, *, make: bool = False) -> int:
    """Descriptor of a folder; each step below `below` is a folder and no link. With `make` missing ones are created.
    Raises OSError that names the folder."""
    _refuse_name(folder, below)
    at = os.open(below, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in folder.relative_to(below).parts:
            step = _step(part, at, make=make)
            os.close(at)
            at = step
    except OSError as error:
        os.close(at)
        raise type(error)(error.errno, error.strerror, str(folder)) from error
    return at


def _step(part: str, at: int, *, make: bool) -> int:
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, dir_fd=at)
    try:
        return os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and _is_link(part, at):
            raise OSError(errno.ELOOP, LINK) from error
        raise


def _is_link(name: str, at: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)


def open_file(path: Path, below: Path, flags: int = os.O_RDONLY, *, to_write: bool = False) -> int:
    """Descriptor of a regular file; no link is followed below `below`. It is made if `flags` say so. One with another
    name, by which it may be somebody else's, is opened only to read, and only where its owner is the folder's: so are
    backups made of hard links. `to_write`: it is written later. Raises OSError that names the path."""
    _refuse_name(path, below)
    at = open_folder(path.parent, below)
    linked_of = None if to_write or flags & (os.O_WRONLY | os.O_RDWR) else os.fstat(at).st_uid
    try:
        try:
            _refuse_other(os.stat(path.name, dir_fd=at, follow_symlinks=False), linked_of)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
        # Not blocked by a pipe that took its place meanwhile.
        handle = os.open(path.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666, dir_fd=at)
        try:
            _refuse_other(os.fstat(handle), linked_of)
        except OSError:
            os.close(handle)
            raise
        return handle
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(at)


def content(path: Path, below: Path, most_bytes: int) -> bytes:
    """Content of such a file, of at most `most_bytes`. Raises OSError that names the path."""
    with opened(path, below, most_bytes) as file:
        content = file.read(most_bytes + 1)
        refuse_larger(len(content), most_bytes, path)  # it grew meanwhile
        return content


def opened(path: Path, below: Path, most_bytes: int) -> BinaryIO:
    """Such a file to read, of at most `most_bytes`. Raises OSError that names the path."""
    file = os.fdopen(open_file(path, below), "rb")
    try:
        refuse_larger(os.fstat(file.fileno()).st_size, most_bytes, path)
    except OSError:
        file.close()
        raise
    return file


def refuse_larger(size: int, most_bytes: int, path: Path) -> None:
    """Raises OSError if a file is larger than any of its kind."""
    if size > most_bytes:
        problem = f"it has {size:,} bytes, and at most {most_bytes:,} of such a file are read"
        raise OSError(errno.EOVERFLOW, problem, str(path))


def entries(folder: Path, below: Path) -> Mapping[str, Kind]:
    """Names in a folder, in order, and what each is. Raises OSError that names the folder."""
    at = open_folder(folder, below)
    try:
        with os.scandir(at) as listed:
            kinds = {entry.name: _kind(entry) for entry in listed}
    finally:
        os.close(at)
    return dict(sorted(kinds.items()))


def is_file(path: Path, below: Path) -> bool:
    """Whether `open_file` would open it, or could with another user's rights."""
    try:
        os.close(open_file(path, below))
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def is_there(path: Path) -> bool:
    """Whether there is anything of this name, a link that leads nowhere too."""
    return os.path.lexists(path)


def name_below(path: Path, below: Path) -> str:
    """The name of a file below a folder as text: bytes that are not UTF-8 are escaped, and a very long name is cut. A
    path that is not below the folder, as a record may name one, is given whole."""
    name = str(path.relative_to(below) if path.is_relative_to(below) else path)
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME // 2]}…{name[-LONGEST_NAME // 2 :]}"
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_dir(follow_symlinks=False):
        return Kind.FOLDER
    return Kind.FILE if entry.is_file(follow_symlinks=False) else Kind.OTHER


def _refuse_other(status: os.stat_result, linked_of: int | None) -> None:
    """Raises OSError for what is no regular file, or has another name and is not of the user `linked_of`."""
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, LINK)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, NOT_REGULAR)
    if status.st_nlink > 1 and status.st_uid != linked_of:
        raise OSError(errno.EMLINK, HARD_LINK if linked_of is None else NOT_THEIRS)


def _refuse_name(path: Path, below: Path) -> None:
    try:
        parts = path.relative_to(below).parts
        "/".join(parts).encode("utf-8")  # as names of files of ours are
    except ValueError as error:
        raise OSError(errno.EINVAL, NO_NAME, repr(str(path))) from error
    if "\0" in str(path) or ".." in parts:
        raise OSError(errno.EINVAL, NO_NAME, repr(str(path)))
