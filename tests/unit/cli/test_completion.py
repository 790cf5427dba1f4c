"""Completion: candidates for each kind of word, and the scripts in the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.cli import completion
from steelyard.cli.commands.completion import Shell, script_of
from steelyard.cli.main import command_line
from tests.unit.cli.screen import printed
from tests.unit.report import synthetic

PROGRAM = Path(sys.executable).with_name("steelyard")
SHELL_TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder: two studies, two stores, others."""
    here = tmp_path_factory.mktemp("home")
    (here / "studies").mkdir()
    for name in ("quickstart.toml", "gate.toml", "notes.md"):
        (here / "studies" / name).write_text("")
    (here / "store").mkdir()
    synthetic.stored(here / "store")
    (here / "store" / "empty").mkdir()
    (here / "deep" / "deeper").mkdir(parents=True)
    shutil.copytree(here / "store" / "synthetic", here / "deep" / "deeper" / "other")
    return here


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def candidates(line: str) -> list[str]:
    def body() -> int:
        completion.answer(line, command_line)
        return 0

    return [each.partition("\t")[0] for each in printed(body).out.splitlines()]


@pytest.fixture(autouse=True)
def environment_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_TYPER_COMPLETE_ARGS", "_TYPER_COMPLETE_FISH_ACTION"):
        monkeypatch.setenv(name, "")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("steelyard rep", ["report", "replay"]),
        ("steelyard selftest ", ["stall"]),
        ("steelyard export store/synthetic --o", ["--openmetrics", "--otava"]),
        ("steelyard check ", ["studies/gate.toml", "studies/quickstart.toml"]),
        ("steelyard run studies/q", ["studies/quickstart.toml"]),
        ("steelyard run --plain stud", ["studies/gate.toml", "studies/quickstart.toml"]),
        ("steelyard report ", ["store/synthetic"]),
        ("steelyard report sto", ["store/synthetic"]),
        ("steelyard report de", ["deep/"]),
        ("steelyard report deep/", ["deep/deeper/other"]),
        ("steelyard status store/s", ["store/synthetic"]),
        ("steelyard compare store/synthetic rich", ["richardson2017"]),
        ("steelyard compare store/synthetic --a ", ["nodes=1", "nodes=3", "workload=A"]),
        ("steelyard compare store/synthetic --a nodes=1 --b nodes=", ["nodes=1", "nodes=3"]),
        ("steelyard compare store/synthetic --a nodes=1,w", ["nodes=1,workload=A"]),
        ("steelyard compare store/synthetic --response throu", ["throughput_per_s"]),
        ("steelyard reference show srinad", ["srinadhuni2018"]),
        ("steelyard load ycsb-a --crea", ["--create"]),
        ("steelyard load ycsb-", [f"ycsb-{letter}" for letter in "abcdefi"]),
        ("steelyard completion ", ["bash", "zsh", "fish"]),
        ("steelyard export store/synthetic --parquet ", []),
        ("steelyard report /nowhere/at/all", []),
        ("steelyard setup ca", ["cassandra", "cassandra-stress"]),
        ("steelyard setup ag", []),
    ],
)
def test_candidates(line: str, expected: list[str]) -> None:
    assert candidates(line) == expected


def test_a_store_that_cannot_be_read_has_no_levels(folder: Path) -> None:
    (folder / "store" / "empty" / "study.json").write_text("{")
    assert candidates("steelyard compare store/empty --a ") == []
    (folder / "store" / "empty" / "study.json").unlink()


def in_bash(line: str, words: list[str], folder: Path) -> list[str]:
    """COMPREPLY of the script for a line, of which Bash made these words."""
    script = f"""
{script_of(Shell.BASH)}
COMP_LINE="$1" COMP_POINT="${{#1}}"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_steelyard_complete "$PROGRAM"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "-c", script, "bash", line, *words], cwd=folder, env={**os.environ, "PROGRAM": str(PROGRAM)},
        capture_output=True, text=True, timeout=SHELL_TIMEOUT_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_bash_completes_a_store(folder: Path) -> None:
    assert in_bash("steelyard report sto", ["steelyard", "report", "sto"], folder) == ["store/synthetic"]


def test_bash_completes_levels_behind_the_sign_at_which_it_splits(folder: Path) -> None:
    before = ["steelyard", "compare", "store/synthetic", "--a"]
    line = " ".join(before)
    assert in_bash(f"{line} no", [*before, "no"], folder) == ["nodes=1", "nodes=3"]
    assert in_bash(f"{line} nodes=", [*before, "nodes", "="], folder) == ["1", "3"]
    assert in_bash(f"{line} nodes=3", [*before, "nodes", "=", "3"], folder) == []


def test_bash_knows_the_script(folder: Path) -> None:
    """As in the how-to: the script is evaluated, and Bash has a completion for the command then."""
    text = f'eval "$({PROGRAM} completion bash)"; complete -p steelyard'
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=SHELL_TIMEOUT_S, check=False)
    assert done.stdout == "complete -o default -F _steelyard_complete steelyard\n", done.stderr


@pytest.mark.parametrize(("shell", "check"), [(Shell.ZSH, "-n"), (Shell.FISH, "--no-execute")])
def test_other_shells_can_read_their_script(shell: Shell, check: str, tmp_path: Path) -> None:
    text = script_of(shell)
    assert "steelyard" in text
    assert f"{completion.VARIABLE}=" in text, "the program is asked by this variable"
    if shutil.which(shell) is None:
        pytest.skip(f"this machine has no {shell}")
    script = tmp_path / "script"
    script.write_text(text)
    done = subprocess.run([shell, check, str(script)], capture_output=True, timeout=SHELL_TIMEOUT_S, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
