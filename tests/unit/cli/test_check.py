from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from steelyard.cli.check import check, duration
from tests.unit.study.paper import HEAD, OTHER, WORKLOAD

REST = f'[factors]\nnodes = [1, 3]\nworkload = ["{WORKLOAD}", "{OTHER}"]\n'
LONG = "[design]\ntrials = 8\n" + REST


def checked(folder: Path, rest: str, **options: Any) -> tuple[int, str]:
    path = folder / "paper.toml"
    path.write_text(HEAD + rest)
    out = Console(file=io.StringIO(), width=400)
    asked: dict[str, Any] = {"store": None, "scale": 1.0, "as_json": False, "console": out} | options
    code = check(path, **asked)
    text = out.file.getvalue() if isinstance(out.file, io.StringIO) else ""
    return code, text


def test_a_study_that_works_is_laid_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = checked(tmp_path, LONG)
    assert code == 0
    assert capsys.readouterr().err == ""
    for words in (
        "4 treatments, full-factorial",
        "64 trials in 2 blocks, seed 1",
        " more (--all)",
        "trials within a start",
        "with a CV of 5.0% (assumed)",
        "default rates",
        "if started now",
        "GiB available",
        "GB free",
        "2 cluster sizes: enough for a slope",
    ):
        assert words in text, words
    assert "more (--all)" not in checked(tmp_path, LONG, everything=True)[1]


def test_json_has_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = checked(tmp_path, REST, as_json=True)
    data = json.loads(capsys.readouterr().out)
    assert (code, text) == (0, "")
    assert len(data["plan"]["trials"]) == 24
    assert data["treatments"][0] == {"nodes": 1, "workload": WORKLOAD}
    assert data["estimate"]["trials"] == 24
    assert {item["factor"] for item in data["resolution"]} == {"nodes", "workload"}
    assert data["errors"] == []


def test_errors_go_to_stderr_with_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = checked(tmp_path, "thread = 4\n[factors]\nnodes = 3\n")
    assert (code, text) == (2, "")
    code, text = checked(tmp_path, "thread = 4\n[factors]\nnodes = [1, 1]\n")
    said = capsys.readouterr().err
    assert code == 2
    assert "paper.toml:20: load.thread = 4: no such key; did you mean 'threads'?" in said


def test_what_cannot_work_is_refused_at_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = checked(tmp_path, "[factors]\nnodes = [1, 3]\nsystem.replication_factor = [1, 3]\n")
    assert code == 2
    assert "8 treatments" not in text
    assert "paper.toml:22: system.replication_factor = 3 with 1 node: more copies than nodes" in capsys.readouterr().err


def test_a_confounded_design_is_refused_at_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rest = (
        '[design]\nkind = "listed"\ntreatments = [{ nodes = 1, load.threads = 1 }, { nodes = 3, load.threads = 2 }]\n'
    )
    assert checked(tmp_path, rest)[0] == 2
    assert "paper.toml:22: factors 'nodes' and 'load.threads' always move together" in capsys.readouterr().err


def test_errors_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(tmp_path, "thread = 4\n", as_json=True)[0] == 2
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert (error["line"], error["key"]) == (20, "load.thread")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0.4 s"), (41.2, "41 s"), (260, "4 min"), (7000, "1.9 h"), (90_000, "25.0 h")]
)
def test_durations_have_as_many_digits_as_a_guess_deserves(seconds: float, words: str) -> None:
    assert duration(seconds) == words
