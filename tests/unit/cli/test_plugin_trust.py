"""A study's Python files: named, asked about, and executed only if the user trusts them."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.cli import plugin_trust
from steelyard.cli.commands.check import check
from steelyard.cli.commands.run import run
from steelyard.model.errors import StudyError
from steelyard.plugins import approved, find
from steelyard.plugins.find import PluginFile, Plugins, any_file
from tests.unit.cli.screen import Printed, printed
from tests.unit.study.paper import HEAD, SITE, SYSTEM, WORKLOAD

MARKED = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n"
PLACES = {
    "site": (SITE, 'name = "./mine.py"'),
    "system": (SYSTEM, 'name = "./mine.py"'),
    "workload": (WORKLOAD, 'name = "./mine.py"'),
    "probe": ("probes = []", 'probes = ["./mine.py"]'),
    "engine": ("operations = 1000", 'operations = 1000\nengine = "./mine.py"'),
}


def shipped(head: str) -> str:
    """The study of plug-ins that are installed."""
    return head.replace(SITE, "local").replace(SYSTEM, "simulated").replace(WORKLOAD, "ycsb-c")


def naming(folder: Path, seam: str) -> tuple[Path, Path]:
    """A study that names a file as plug-in of a seam, and the file that the plug-in creates when it is executed."""
    was, now = PLACES[seam]
    head = HEAD.replace(was if was in ("probes = []", "operations = 1000") else f'name = "{was}"', now)
    (folder / "mine.py").write_text(MARKED)
    path = folder / "study.toml"
    path.write_text(shipped(head) + "[factors]\nnodes = [1]\n")
    return path, folder / "mine.ran"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def checked(path: Path, **options: bool) -> Printed:
    return printed(lambda: check(path, store=path.parent / "store", **options), width=400)


@pytest.mark.parametrize("seam", PLACES)
def test_no_command_executes_a_file_that_nobody_trusts(seam: str, tmp_path: Path) -> None:
    path, ran = naming(tmp_path, seam)
    found = checked(path)
    assert found.code == 2
    assert f"{tmp_path / 'mine.py'} (sha256 " in found.err
    assert "add --trust, or run the command at a terminal" in found.err
    assert f"{path}:" in found.err
    with pytest.raises(StudyError, match="add --trust"):
        run(path, store=tmp_path / "store")
    assert not ran.exists()
    assert "is not a plug-in" in checked(path, trust=True).err, "executed, and found to define nothing"
    assert ran.exists()


def test_paths_are_relative_to_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = naming(tmp_path, "site")
    (tmp_path / "mine.py").rename(tmp_path.parent / "mine.py")
    monkeypatch.chdir(tmp_path.parent)
    found = checked(path, trust=True)
    assert f"site plug-in not found at {tmp_path / 'mine.py'}" in found.err
    assert "that in the working directory is ../mine.py from there" in found.err


def asked(file: PluginFile, answer: str) -> bool:
    """Whether a file may be executed, where somebody at a terminal answers."""
    try:
        plugin_trust.asking(lambda: bool(answer), lambda file: answer == "y")(file)
    except StudyError:
        return False
    return True


def test_a_yes_holds_for_that_path_and_content(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = PluginFile("site", tmp_path / "mine.py", b"1")
    assert not asked(file, "n")
    assert not asked(file, ""), "a no is not kept as a yes"
    assert asked(file, "y")
    assert (state / approved.KEPT).stat().st_mode & 0o777 == 0o600
    assert asked(file, "")
    assert not asked(PluginFile("site", file.path, b"2"), ""), "another content"
    assert not asked(PluginFile("site", tmp_path / "copy.py", b"1"), ""), "beside other files"
    (state / approved.KEPT).chmod(0o620)
    assert not asked(file, ""), "who else could have written there?"
    assert asked(PluginFile("site", tmp_path / "other.py", b"3"), "y")
    assert (state / approved.KEPT).stat().st_mode & 0o777 == 0o600, "ours again: the yes is kept"
    assert asked(PluginFile("site", tmp_path / "other.py", b"3"), "")
    assert not asked(file, ""), "what somebody else may have written is not believed afterwards"


def test_a_link_is_not_written_through(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state.mkdir()
    (tmp_path / "victim").write_text("")
    (state / approved.KEPT).symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        asked(PluginFile("site", tmp_path / "mine.py", b"1"), "y")
    assert (tmp_path / "victim").read_text() == ""


def test_at_a_terminal_it_is_asked(tmp_path: Path) -> None:
    path, ran = naming(tmp_path, "site")
    for answer, executed in (("n", False), ("y", True)):
        ours, theirs = pty.openpty()
        os.write(ours, f"{answer}\n".encode())
        argv = [sys.executable, "-m", "steelyard", "check", str(path)]
        subprocess.run(argv, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, timeout=60, check=False)
        said = os.read(ours, 10_000).decode()
        os.close(ours)
        os.close(theirs)
        assert "the study names code as its site" in said
        assert "execute it, now and later" in said
        assert ran.exists() is executed


def test_what_is_executed_is_what_was_judged(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from pydantic import BaseModel as Settings\ncreate = 1\n")

    def judge(file: PluginFile) -> None:
        file.path.write_text("raise SystemExit('swapped after it was judged')")

    assert Plugins(tmp_path, judge).find("site", "mine.py").create == 1


def test_a_library_call_trusts_no_file_unless_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def create(): return 1\n")
    with pytest.raises(StudyError, match="it is not trusted"):
        Plugins(tmp_path).find("engine", "mine.py")
    assert Plugins(tmp_path, any_file).find("engine", "mine.py").create() == 1
    path.write_text("1 / 0\n")
    with pytest.raises(StudyError, match="fails when it is executed: ZeroDivisionError"):
        find.find("engine", str(path))
