"""Files and folders of somebody else: no link is followed below a folder, nothing but a plain file is opened."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

from steelyard import no_links
from steelyard.atomic_file import output_folder, replace_file, write_output
from steelyard.file_errors import foreseen

MOST = 100


def link(path: Path) -> None:
    path.symlink_to(path.parents[1] / "mine.txt")


def hard_link(path: Path) -> None:
    os.link(path.parents[1] / "mine.txt", path)


def bound_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one, chdir(path.parent):
        one.bind(path.name)


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 << 30)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "mine").mkdir()
    store = tmp_path / "store"
    store.mkdir()
    (store / "study.json").write_text("{}")
    (store / "plan.jsonl").write_text("")
    return store


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (link, "a symbolic link"),
        (os.mkfifo, "not a regular file"),
        (bound_socket, "not a regular file"),
        (Path.mkdir, "not a regular file"),
        (large, "at most 100"),
        (lambda path: None, "No such file"),
    ],
)
def test_only_plain_files_are_read(make: Callable[[Path], object], why: str, store: Path) -> None:
    make(store / "facts.json")
    with pytest.raises(OSError, match=why) as caught:
        no_links.content(store / "facts.json", store, MOST)
    assert caught.value.filename == str(store / "facts.json")


def test_a_hard_link_is_read_and_not_written(store: Path) -> None:
    hard_link(store / "facts.json")
    assert no_links.content(store / "facts.json", store, MOST) == b"mine", "as in a backup by rsync --link-dest"
    for flags, later in ((os.O_RDWR, False), (os.O_WRONLY | os.O_APPEND, False), (os.O_RDONLY, True)):
        with pytest.raises(OSError, match="a hard link: the same file has other names"):
            no_links.open_file(store / "facts.json", store, flags, to_write=later)


@pytest.mark.root
@pytest.mark.parametrize(("file_of", "folder_of"), [(0, 65534), (65534, 0)])
def test_a_hard_link_to_a_file_of_another_user_is_not_read(file_of: int, folder_of: int, store: Path) -> None:
    hard_link(store / "facts.json")
    os.chown(store / "facts.json", file_of, file_of)
    os.chown(store, folder_of, folder_of)
    with pytest.raises(OSError, match="a hard link to a file of another user"):
        no_links.content(store / "facts.json", store, MOST)
    os.chown(store, file_of, file_of)
    assert no_links.content(store / "facts.json", store, MOST) == b"mine"


@pytest.mark.parametrize("name", ["../mine.txt", "a/../../mine.txt", "/etc/hostname", "a\0b", "a\ud800", "n" * 5000])
def test_names_that_lead_out_of_the_folder_or_are_none_are_refused(name: str, store: Path) -> None:
    (store / "a").mkdir()
    with pytest.raises(OSError, match=r"no file of ours can have this name|too long"):
        no_links.content(store / name, store, MOST)


def test_no_folder_on_the_way_is_a_link_but_the_first_may_be(store: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / "x").write_text("x")
    (store / "trials").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic link"):
        no_links.content(store / "trials" / "x", store, MOST)
    with pytest.raises(OSError, match="symbolic link"):
        no_links.entries(store / "trials", store)
    (tmp_path / "my-own-way").symlink_to(store)
    assert no_links.content(tmp_path / "my-own-way" / "study.json", tmp_path / "my-own-way", MOST) == b"{}"
    kinds = {name: kind.name for name, kind in no_links.entries(store, store).items()}
    assert kinds == {"plan.jsonl": "FILE", "study.json": "FILE", "trials": "OTHER"}


@pytest.mark.parametrize("to", ["mine.txt", "mine/not-there.html"])
def test_a_page_replaces_a_link_in_a_store(to: str, store: Path, tmp_path: Path) -> None:
    (store / "report.html").symlink_to(tmp_path / to)
    write_output(store / "report.html", "page")
    assert not (store / "report.html").is_symlink()
    assert ((tmp_path / "mine.txt").read_text(), list((tmp_path / "mine").iterdir())) == ("mine", [])


@pytest.mark.parametrize("make", [os.mkfifo, hard_link])
def test_a_page_replaces_whatever_has_its_name_in_a_store(make: Callable[[Path], object], store: Path) -> None:
    make(store / "report.html")
    write_output(store / "report.html", "page")
    assert (store / "report.html").read_text() == "page"
    assert (store.parent / "mine.txt").read_text() == "mine"


def test_outputs_are_written_through_no_folder_that_is_a_link_in_a_store(store: Path, tmp_path: Path) -> None:
    (store / "tables").symlink_to(tmp_path / "mine")
    (tmp_path / "way").symlink_to(store / "tables")
    for folder in (store / "tables", store / "tables" / "new", tmp_path / "way", store / "x" / ".." / "tables"):
        for write in (lambda: output_folder(folder), lambda: write_output(folder / "a.csv", "a")):  # noqa: B023
            with pytest.raises(OSError, match="symbolic link") as caught:
                write()
            refused = foreseen(caught.value)
            assert refused is not None
            assert "symbolic link" in refused.message
    assert list((tmp_path / "mine").iterdir()) == []


def test_links_of_the_users_own_are_followed_outside_of_a_store(store: Path, tmp_path: Path) -> None:
    (tmp_path / "pages").symlink_to(tmp_path / "mine")
    write_output(tmp_path / "pages" / "sub" / "a.html", "a")
    assert (tmp_path / "mine" / "sub" / "a.html").read_text() == "a"
    (tmp_path / "to-the-store").symlink_to(store)
    write_output(tmp_path / "to-the-store" / "tables" / "a.csv", "a")
    assert (store / "tables" / "a.csv").read_text() == "a"
    (tmp_path / "round").symlink_to(tmp_path / "round")
    with pytest.raises(OSError, match="links"):
        write_output(tmp_path / "round" / "a.csv", "a")


@pytest.mark.parametrize("beside", ["plan.jsonl", "trials", "events.jsonl"])
def test_a_project_with_a_study_json_of_its_own_is_no_store(beside: str, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "study.json").write_text("{}")
    (tmp_path / "project" / "out").symlink_to(tmp_path / "mine")
    write_output(tmp_path / "project" / "out" / "a.html", "a")
    assert (tmp_path / "mine" / "a.html").read_text() == "a"
    (tmp_path / "project" / beside).mkdir()
    with pytest.raises(OSError, match="symbolic link"):
        write_output(tmp_path / "project" / "out" / "b.html", "b")


def test_a_draft_that_somebody_laid_there_is_not_written_through(store: Path, tmp_path: Path) -> None:
    for name in (f".events.jsonl.{os.getpid()}.tmp", ".live.json.tmp"):
        (store / name).symlink_to(tmp_path / "mine.txt")
    replace_file(store / "events.jsonl", "new")
    replace_file(store / ".live.json", "new", draft=store / ".live.json.tmp")
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert [(store / name).read_text() for name in ("events.jsonl", ".live.json")] == ["new", "new"]
