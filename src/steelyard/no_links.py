"""Untrusted files and folders, opened without following links.

Anything below a folder may come from another user: a link could lead a reader or writer to another of its user's files,
a pipe would block it, a device would have side effects. The folder itself is the user's choice and may be reached
through links. Each step below it is opened relative to the previous one, so that no other process can replace a folder
meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
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
"""Files that identify a study's folder in a store: the first, and at least one of the others (`store.layout`)."""
LONGEST_NAME: Final = 400
"""Maximum length of a name in messages; our own names have up to 300 characters including folders."""
MOST_FOLDERS: Final = 20
"""Maximum nesting of folders that are looked into."""
MOST_LINKS: Final = 40
"""Maximum number of links to follow, the same as the kernel's."""


class Kind(Enum):
    """Kind of a folder's entry itself, not of a link's target."""

    FILE = "regular file"
    FOLDER = "folder"
    OTHER = "link, pipe, socket or device"


def place_of(path: Path) -> tuple[Path, Path | None]:
    """The target of a path given by the user, and the store that contains it, if any: links are followed up to the
    store, but not below it. Raises OSError for a link loop."""
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
    # A project may have its own study.json; without a plan, trials or a journal, no study is read from a folder.
    return is_there(folder / STORE_SIGN) and any(is_there(folder / name) for name in BESIDE_IT)


def open_folder(folder: Path, below: Path, *, make: bool = False) -> int:
    """Descriptor of a folder; every step below `below` must be a folder, not a link. With `make`, missing ones are
    created. Raises OSError that names the folder."""
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
    """Descriptor of a regular file; no link is followed below `below`. `flags` may create it. A file with several hard
    links may belong to another user: it is opened only for reading, and only if it has the folder's owner, as in
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
        # Does not block on a pipe that replaced the file meanwhile.
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
    """Content of a file opened as by `open_file`, at most `most_bytes`. Raises OSError that names the path."""
    with opened(path, below, most_bytes) as file:
        content = file.read(most_bytes + 1)
        refuse_larger(len(content), most_bytes, path)  # it grew meanwhile
        return content


def opened(path: Path, below: Path, most_bytes: int) -> BinaryIO:
    """A file opened for reading as by `open_file`, at most `most_bytes`. Raises OSError that names the path."""
    file = os.fdopen(open_file(path, below), "rb")
    try:
        refuse_larger(os.fstat(file.fileno()).st_size, most_bytes, path)
    except OSError:
        file.close()
        raise
    return file


def refuse_larger(size: int, most_bytes: int, path: Path) -> None:
    """Raise OSError if a file is larger than any file of its kind."""
    if size > most_bytes:
        problem = f"it has {size:,} bytes; such a file may have at most {most_bytes:,}"
        raise OSError(errno.EOVERFLOW, problem, str(path))


def entries(folder: Path, below: Path) -> Mapping[str, Kind]:
    """Sorted names in a folder with their kinds. Raises OSError that names the folder."""
    at = open_folder(folder, below)
    try:
        with os.scandir(at) as listed:
            kinds = {entry.name: _kind(entry) for entry in listed}
    finally:
        os.close(at)
    return dict(sorted(kinds.items()))


def files(folder: Path, below: Path, part: str = "") -> Iterator[str]:
    """Relative paths of everything but folders in a folder and in those below it. One that cannot be read has none; one
    that is nested too deeply is named and not opened."""
    with contextlib.suppress(OSError):
        for name, kind in entries(folder / part, below).items():
            if kind is Kind.FOLDER and part.count("/") < MOST_FOLDERS:
                yield from files(folder, below, f"{part}{name}/")
            else:
                yield f"{part}{name}"


def is_file(path: Path, below: Path) -> bool:
    """Whether `open_file` would open it, possibly only with another user's rights."""
    try:
        os.close(open_file(path, below))
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def is_there(path: Path) -> bool:
    """Whether an entry of this name exists, including a broken link."""
    return os.path.lexists(path)


def name_below(path: Path, below: Path) -> str:
    """The relative name of a file below a folder as text: bytes that are not UTF-8 are escaped, and a very long name is
    shortened. A path outside the folder, which a record may name, is returned whole."""
    name = str(path.relative_to(below) if path.is_relative_to(below) else path)
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME // 2]}…{name[-LONGEST_NAME // 2 :]}"
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_dir(follow_symlinks=False):
        return Kind.FOLDER
    return Kind.FILE if entry.is_file(follow_symlinks=False) else Kind.OTHER


def _refuse_other(status: os.stat_result, linked_of: int | None) -> None:
    """Raise OSError unless it is a regular file without further hard links, or with some and owned by `linked_of`."""
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, LINK)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, NOT_REGULAR)
    if status.st_nlink > 1 and status.st_uid != linked_of:
        raise OSError(errno.EMLINK, HARD_LINK if linked_of is None else NOT_THEIRS)


def _refuse_name(path: Path, below: Path) -> None:
    try:
        parts = path.relative_to(below).parts
        "/".join(parts).encode("utf-8")  # as our own file names are
    except ValueError as error:
        raise OSError(errno.EINVAL, NO_NAME, repr(str(path))) from error
    if "\0" in str(path) or ".." in parts:
        raise OSError(errno.EINVAL, NO_NAME, repr(str(path)))
