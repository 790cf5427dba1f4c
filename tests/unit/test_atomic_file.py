from __future__ import annotations

import os
from pathlib import Path

import pytest

from steelyard import atomic_file
from steelyard.atomic_file import replace_file, write_output


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text in ("old", "new, ä"):
        replace_file(path, text)
        assert path.read_text(encoding="utf-8") == text
    replace_file(path, "by a draft of its own", draft=tmp_path / "a.draft")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a.json", "by a draft of its own")]


def test_text_is_on_disk_before_it_has_the_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    path = tmp_path / "a.json"

    def sync(descriptor: int) -> None:
        of_folder = os.readlink(f"/proc/self/fd/{descriptor}") == str(tmp_path)
        steps.append(("folder" if of_folder else "text", path.exists()))

    # What is on disk shows only after a power cut.
    monkeypatch.setattr(atomic_file.os, "fsync", sync)
    replace_file(path, "text")
    assert steps == [("text", False), ("folder", True)]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_fails_leaves_the_old_file(error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    replace_file(path, "old")

    def fail(descriptor: int) -> None:
        raise error

    # It has to fail after the draft is written.
    monkeypatch.setattr(atomic_file.os, "fsync", fail)
    with pytest.raises(type(error)):
        replace_file(path, "new")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a.json", "old")]


def test_output_follows_links_and_leaves_devices_alone(tmp_path: Path) -> None:
    target, link = tmp_path / "target.html", tmp_path / "link.html"
    link.symlink_to(target)
    write_output(link, "page")
    assert (target.read_text(), link.is_symlink()) == ("page", True)
    write_output(tmp_path / "new" / "folder" / "a.csv", b"bytes")
    assert (tmp_path / "new" / "folder" / "a.csv").read_bytes() == b"bytes"
    write_output(Path("/dev/null"), "nothing")
    assert Path("/dev/null").is_char_device()


def test_an_error_names_the_file_that_was_wanted(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "folder.txt"):
        with pytest.raises(OSError, match=str(path)) as caught:
            replace_file(path, "text")
        assert caught.value.filename == str(path)
