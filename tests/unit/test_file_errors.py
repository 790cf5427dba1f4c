"""What the kernel says of a disk, in words for people."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from steelyard.file_errors import foreseen, of_the_disk


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "", "/tmp/x"), "/tmp/x cannot be written: the disk is full ("),
        (OSError(errno.EDQUOT, "", "/tmp/x"), "the disk quota of user"),
        (OSError(errno.EROFS, "", "/tmp/x"), "the file system is read-only"),
        (PermissionError(errno.EACCES, "", "/tmp/x"), "permission denied for user"),
        (OSError(errno.EIO, "", "/tmp/x"), "cannot be read or written"),
        (IsADirectoryError(errno.EISDIR, "", "/tmp"), "/tmp: is a directory"),
        (OSError(errno.EMFILE, "", "/tmp/x"), "/tmp/x cannot be opened: too many files are open"),
        (ValueError("parquet: No space left on device (os error 28)"), "a file cannot be written: the disk is full"),
    ],
)
def test_what_a_disk_says_is_foreseen(error: Exception, words: str) -> None:
    found = foreseen(error)
    assert found is not None
    assert words in found.message


def test_nothing_else_is(tmp_path: Path) -> None:
    no_file = PermissionError(errno.EPERM, "Operation not permitted")
    others = (ValueError("no"), no_file, ConnectionRefusedError(111, "refused"))
    others = (*others, FileNotFoundError(2, "", str(tmp_path / "a")))
    assert [foreseen(error) for error in others] == [None] * 4


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.ESTALE])
def test_what_meets_the_whole_disk(number: int) -> None:
    assert of_the_disk(OSError(number, "", "/tmp/x"))


def test_one_file_is_not_the_whole_disk() -> None:
    assert not of_the_disk(PermissionError(errno.EACCES, "", "/tmp/x"))
