"""Write a file whole or not at all: a reader sees the old content or the new one, also after a power cut or on a full
disk.

A draft has a name that nobody can foresee, is made by this process and is renamed over whatever has the file's name: a
link there is replaced, never followed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from steelyard import no_links

NAME_CHARS = 50
"""Maximum length of the file's name within its draft's name: names have at most 255 bytes."""


def sync_folder(folder: Path) -> None:
    """Put on disk which files a folder has."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_output(path: Path, content: str | bytes) -> None:
    """Write what a user asked for to the place that the user named, whole or not at all; its folder is created. A link
    is followed, but not below a store: that may belong to another user. What is not a regular file (a terminal, a pipe)
    is written to as it is, but replaced below a store. Raises OSError that names the path."""
    with output(path) as file:
        file.write(_bytes(content))


@contextlib.contextmanager
def output(path: Path) -> Iterator[BinaryIO]:
    """The same for content that is not in memory: the file to write it to. It takes the place of `path` when the block
    ends without an error."""
    if writes_in_place(path):
        with path.open("wb") as file:
            yield file
        return
    place, below = no_links.place_of(path)
    with _folder(place.parent, below, place, make=True) as folder, _replacement(place, folder, None, sync=True) as file:
        yield file


def writes_in_place(path: Path) -> bool:
    """Whether an output is written to as it is: a terminal, a pipe, a device, and not below a store."""
    # Before links are followed: that of a pipe, as /dev/stdout often is one, leads to no file.
    return path.exists() and not path.is_file() and not path.is_dir() and no_links.place_of(path)[1] is None


def output_folder(path: Path) -> Path:
    """The folder for several outputs, created. Raises OSError that names it."""
    place, below = no_links.place_of(path)
    with _folder(place, below, place, make=True):
        return place


def replace_file(path: Path, content: str | bytes, draft: Path | None = None, *, sync: bool = True) -> None:
    """Write a text (as UTF-8) or bytes into a draft in the same folder, put it on disk, and rename it to `path`.

    `draft`: a name for it that no one else writes; else `.NAME.RANDOM.tmp`. It is left behind only by a kill. Without
    `sync` the content may be lost in a power cut, but is never half there otherwise. Raises OSError that names `path`;
    the old file is then what it was.
    """
    with _folder(path.parent, None, path) as folder, _replacement(path, folder, draft, sync=sync) as file:
        file.write(_bytes(content))


@contextlib.contextmanager
def _folder(folder: Path, below: Path | None, wanted: Path, *, make: bool = False) -> Iterator[int]:
    """Descriptor of a folder; no link is followed to it below `below`. Its errors name what was `wanted`."""
    try:
        if below is None and make:
            folder.mkdir(parents=True, exist_ok=True)
        at = no_links.open_folder(folder, below or folder, make=make)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(wanted)) from error
    try:
        yield at
    finally:
        os.close(at)


@contextlib.contextmanager
def _replacement(path: Path, folder: int, draft: Path | None, *, sync: bool) -> Iterator[BinaryIO]:
    name = draft.name if draft else f".{path.name[:NAME_CHARS]}.{secrets.token_hex(8)}.tmp"
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)  # left behind by a kill, or put there by another process
        # Made here: nothing that has the name is opened, and no link is followed.
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=folder)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.rename(name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        if sync:
            os.fsync(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
        if error.filename not in (None, name, str(path)):
            raise  # of another file, which the content was read from
        # Writing names no file, and renaming names two.
        raise type(error)(error.errno, error.strerror, str(path)) from error
    except BaseException:  # an interrupt too leaves nothing behind
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        raise


def _bytes(content: str | bytes) -> bytes:
    return content.encode("utf-8") if isinstance(content, str) else content
