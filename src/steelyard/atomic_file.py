"""Replace a file at once and for good: a reader sees the old text or the new one, also after a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Put on disk which files a folder has."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_file(path: Path, text: str, draft: Path | None = None) -> None:
    """Write a text into a draft in the same folder, put it on disk, and rename it to `path`.

    `draft`: a file that nobody else writes; else one with the number of this process in its name, `.NAME.PID.tmp`. It
    is left behind only by a kill. Raises OSError; the old file is then what it was.
    """
    draft = draft or path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except BaseException:  # an interrupt too leaves nothing behind
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
