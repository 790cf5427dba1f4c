"""The first second: a signal ends the command line with 130, whatever is being imported."""

from __future__ import annotations

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.unit.small_study import SMALL_STUDY

PROGRAM = """
import importlib.abc, os, runpy, signal, sys
number, module, *words = sys.argv[1:]
class Sender(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == module:
            os.kill(os.getpid(), int(number))
        return None
sys.meta_path.insert(0, Sender())
def opened(event, arguments):
    if event == "open" and module in str(arguments[0]) and "/" not in module and module[0] == ".":
        os.kill(os.getpid(), int(number))
sys.addaudithook(opened)
sys.argv = ["steelyard", *words]
runpy.run_module("steelyard", run_name="__main__", alter_sys=True)
"""
"""The command line, which gets a signal while a module is looked for, or a hidden file of this name is opened."""


def signalled(number: signal.Signals, module: str, *words: str, ignored: bool = False) -> tuple[int, str]:
    """Exit code and messages of the command line."""

    def prepare() -> None:
        signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)

    argv = [sys.executable, "-c", PROGRAM, str(int(number)), module, *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, preexec_fn=prepare)
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_before_the_command_line_is_there(number: signal.Signals) -> None:
    assert signalled(number, "typer", "--version") == (130, "interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_a_command_is_imported(number: signal.Signals) -> None:
    code, messages = signalled(number, "steelyard.cli.commands.check", "check", "none.toml")
    assert code == 130
    assert "Traceback" not in messages
    assert "not foreseen" not in messages


@pytest.mark.agent
@pytest.mark.root
def test_before_the_first_start_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a file of the store."""
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))
    study = tmp_path / "early.toml"
    study.write_text(SMALL_STUDY)
    code, messages = signalled(signal.SIGTERM, ".study.json.", "run", str(study), "--store", str(tmp_path), "--plain")
    assert code == 130, messages
    assert (tmp_path / "small" / "study.toml").is_file(), "the file before it"
    assert {path.name for path in (tmp_path / "small").iterdir()} <= {".lock", "events.jsonl", "study.toml", "trials"}
    assert "not foreseen" not in messages


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_is_ignored_stays_ignored(number: signal.Signals) -> None:
    assert signalled(number, "typer", "--version", ignored=True) == (0, "")


def test_the_installed_command_begins_here() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["scripts"] == {"steelyard": "steelyard.__main__:main"}
