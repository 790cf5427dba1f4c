from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from steelyard.cli.check import check
from steelyard.judging.noise_floor import KeptFloor, Spread, circumstances
from steelyard.node import noise_floor
from steelyard.plan import expand
from steelyard.site import _machine
from steelyard.study import read
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
        "GiB free",
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


def test_a_stopping_rule_says_what_to_expect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rest = "[design]\nstarts = 30\ntrials = 1\n[design.until]\nwidth_percent = 3\n{}[factors]\nnodes = [1, 3]\n"
    code, text = checked(tmp_path, rest.format(""))
    flat = " ".join(text.split())
    assert code == 0
    assert "is within 3% of it: from 10 to 30 starts" in flat
    assert "CV between starts" in flat
    assert "10.0% 30 " in flat, "the cap"
    assert "% reach the cap, wider than asked" in flat
    assert "the study ends after fewer if its intervals are within ±3% before" in flat
    assert "t intervals that end a study" not in flat
    code, text = checked(tmp_path, rest.format("least_starts = 6\nhours = 0.001\n"))
    flat = " ".join(text.split())
    assert code == 0
    assert "at least 6 starts: t intervals that end a study cover less" in flat
    assert "the study will end without a judged interval" in flat
    capsys.readouterr()
    checked(tmp_path, rest.format(""), as_json=True)
    until = json.loads(capsys.readouterr().out)["until"]
    assert until["rule"]["least_starts"] == 10
    assert [one["cv"] for one in until["expected"]] == [0.01, 0.02, 0.05, 0.1]


def test_it_says_which_noise_floor_the_study_will_be_judged_against(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))
    assert "noise floor none: no noise floor of this machine is known" in checked(tmp_path, REST)[1]
    assert "this study measures it" in checked(tmp_path, '[design]\nkind = "same"\n')[1]
    study = read(tmp_path / "paper.toml")
    of = circumstances(expand(study).trials[0].settings, [_machine.facts()])
    spread = Spread(
        response="execution_time_ms", starts=12, trials=36, between_mean_square=0.0031, between_degrees=11,
        within_mean_square=0.0004, within_degrees=24, trials_a_start=3.0,
    )  # fmt: skip
    floor = KeptFloor(study="noise-floor", made_s=1.79e9, pairs=6, holds_for=of, spreads=(spread,))
    noise_floor.write(tmp_path / "state", floor)
    text = checked(tmp_path, REST)[1]
    assert "execution time of identical systems stays below 7.3% over starts and 2.4% within starts at 95%" in text
    assert "(study noise-floor of 2026-09-21, 12 starts, 36 trials)" in text
    assert "if its nodes are like this machine" in text, "the site is not this machine"
    checked(tmp_path, REST, as_json=True)
    assert json.loads(capsys.readouterr().out)["noise_floor"]["floor"]["study"] == "noise-floor"
    noise_floor.write(tmp_path / "state", floor.model_copy(update={"holds_for": of.model_copy(update={"nodes": 9})}))
    for path in (tmp_path / "state" / noise_floor.FOLDER).glob("*.json"):
        if '"nodes": 9' not in path.read_text():
            path.unlink()
    assert "it was measured with nodes 9, this study has 1 and 3" in checked(tmp_path, REST)[1]
