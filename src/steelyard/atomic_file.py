"""Write a file whole or not at all: a reader sees the old content or the new one, also after a power cut or on a full
disk."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

NAME_CHARS = 50
"""Of the file's name in that of its draft: names have 255 bytes at most."""


def sync_folder(folder: Path) -> None:
    """Put on disk which files a folder has."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_output(path: Path, content: str | bytes) -> None:
    """Write what a user asked for to the place that the user named, whole or not at all; its folder is created. A link
    is followed. What is no regular file (a terminal, a pipe) is written to as it is. Raises OSError that names the
    path."""
    with output(path) as file:
        file.write(_bytes(content))


@contextlib.contextmanager
def output(path: Path) -> Iterator[BinaryIO]:
    """The same for content that is not in memory: the file to write it to. It takes the place of `path` when the block
    ends without an error."""
    # Before links are followed: that of a pipe, as /dev/stdout often is one, leads to no file.
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as file:
            yield file
    else:
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        with _replacement(path, None, sync=True) as file:
            yield file


def replace_file(path: Path, content: str | bytes, draft: Path | None = None, *, sync: bool = True) -> None:
    """Write a text (as UTF-8) or bytes into a draft in the same folder, put it on disk, and rename it to `path`.

    `draft`: a file that nobody else writes; else one with the number of this process in its name, `.NAME.PID.tmp`. It
    is left behind only by a kill. Without `sync` the content may be lost in a power cut, but is never half there
    otherwise. Raises OSError that names `path`; the old file is then what it was.
    """
    with _replacement(path, draft, sync=sync) as file:
        file.write(_bytes(content))


@contextlib.contextmanager
def _replacement(path: Path, draft: Path | None, *, sync: bool) -> Iterator[BinaryIO]:
    draft = draft or path.with_name(f".{path.name[:NAME_CHARS]}.{os.getpid()}.tmp")
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        draft.rename(path)
        if sync:
            sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        if error.filename not in (None, str(draft), str(path.parent)):
            raise  # of another file, which the content was read from
        # Writing names no file, and renaming names two.
        raise type(error)(error.errno, error.strerror, str(path)) from error
    except BaseException:  # an interrupt too leaves nothing behind
        draft.unlink(missing_ok=True)
        raise


def _bytes(content: str | bytes) -> bytes:
    return content.encode("utf-8") if isinstance(content, str) else content
