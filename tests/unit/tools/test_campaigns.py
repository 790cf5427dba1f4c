"""Campaigns: the frame, and of each campaign a few cases."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tools.campaigns import damage
from tools.campaigns.__main__ import CAMPAIGNS, SEED, main
from tools.campaigns.campaign import FINDINGS, Case, Finding, Outcome, no_world
from tools.campaigns.command import call
from tools.campaigns.runner import carry_out, done, table

from tests.unit.verify import made


class Counting:
    """A campaign whose cases do what their name says."""

    name = "counting"
    about = "for tests"
    limit_s = 60.0

    def __init__(self) -> None:
        self.ran: list[str] = []

    def cases(self, seed: int) -> Sequence[Case]:
        return [Case(name, name[0]) for name in ("good", "great", "bad", "broken")]

    def world(self, folder: Path) -> AbstractContextManager[None]:
        return no_world(folder)

    def run(self, world: None, case: Case, folder: Path) -> Outcome:
        assert not list(folder.iterdir())
        (folder / "left").touch()
        self.ran.append(case.name)
        if case.name == "broken":
            raise OSError("tripped")
        return Outcome((Finding("lost", "a trial"),) if case.name == "bad" else (), {"seen": case.name})


def test_a_campaign_is_resumed_after_a_torn_line(tmp_path: Path) -> None:
    campaign, path = Counting(), tmp_path / "outcomes.jsonl"
    cases = campaign.cases(1)
    carry_out(campaign, cases[:2], path)
    path.write_text(path.read_text()[:-20])
    lines = carry_out(campaign, cases, path)
    assert campaign.ran == ["good", "great", "great", "bad", "broken"]
    assert list(lines) == [case.name for case in cases]
    assert done(path) == lines
    assert lines["good"]["facts"] == {"seen": "good"}
    assert [one["kind"] for one in lines["bad"]["findings"]] == ["lost"]
    assert [one["kind"] for one in lines["broken"]["findings"]] == ["campaign"]
    carry_out(campaign, cases, path)
    assert len(campaign.ran) == 5


def test_a_case_that_takes_longer_than_its_limit_is_a_fault(tmp_path: Path) -> None:
    campaign = Counting()
    campaign.limit_s = 0.0
    lines = carry_out(campaign, campaign.cases(1)[:1], tmp_path / "outcomes.jsonl")
    assert [one["kind"] for one in lines["good"]["findings"]] == ["late"]


def test_the_summary_counts_by_stratum_and_kind(tmp_path: Path) -> None:
    campaign = Counting()
    rows = table(list(carry_out(campaign, campaign.cases(1), tmp_path / "x.jsonl").values())).splitlines()
    assert rows[0] == "| stratum | cases | as it should be | lost | campaign | longest |"
    assert rows[2].startswith("| g | 2 | 2 | 0 | 0 |")
    assert rows[3].startswith("| b | 2 | 0 | 1 | 1 |")
    assert rows[4].startswith("| all | 4 | 2 | 1 | 1 |")


def test_a_command_is_called_in_this_process_and_bounded(tmp_path: Path) -> None:
    refused = call("status", tmp_path, limit_s=30.0)
    assert refused.code == 3
    assert str(tmp_path) in refused.err
    assert not refused.unforeseen
    assert call("serve", tmp_path, "--port", "0", limit_s=0.3).code is None


@pytest.mark.parametrize("campaign", CAMPAIGNS.values(), ids=list(CAMPAIGNS))
def test_cases_are_the_same_each_time_and_have_names_of_their_own(campaign) -> None:
    cases = campaign.cases(SEED)
    names = [case.name for case in cases]
    assert len(set(names)) == len(names)
    assert names == [case.name for case in campaign.cases(SEED)]
    assert campaign.about


def test_cases_are_listed_and_an_unknown_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["damage", "--list", "--only", "plan.jsonl"]) == 0
    assert "plan.jsonl: half" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["damage", "--only", "no such case"])


def test_outcomes_are_plain_json(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    campaign = Counting()
    carry_out(campaign, campaign.cases(1), path)
    for text in path.read_text().splitlines():
        assert {one["kind"] for one in json.loads(text)["findings"]} <= set(FINDINGS)


DAMAGE = ("plan.jsonl: half", "TRIAL/intervals/l1.parquet: a pipe in its place")
MORE_DAMAGE = ("TRIAL/trial.json: deleted",)
"""Each through `run` with a simulated cluster; tests/unit/store/test_damage.py has the others."""


@pytest.mark.agent
@pytest.mark.parametrize("names", [DAMAGE, pytest.param(MORE_DAMAGE, marks=pytest.mark.by_hand)], ids=len)
def test_damage_in_small(tmp_path: Path, names: tuple[str, ...]) -> None:
    campaign = CAMPAIGNS["damage"]
    cases = [case for case in campaign.cases(SEED) if case.name in names]
    assert len(cases) == len(names)
    lines = carry_out(campaign, cases, tmp_path / "damage.jsonl")
    assert {name: line["findings"] for name, line in lines.items() if line["findings"]} == {}


HOSTILE = (
    "link: report.html to a page",
    "program: a system as ./evil.py",
)
"""Each through every command; tests/unit/store/test_hostile.py has more of what is found by the reader alone."""
MORE_HOSTILE = (
    "no file: a pipe as events.jsonl",
    "table: intervals: 300 million rows of one value",
    "link: trials to a folder",
    "name: a load node that is not UTF-8",
    "size: 10 GB of nothing as events.jsonl",
)


@pytest.mark.parametrize("names", [HOSTILE, pytest.param(MORE_HOSTILE, marks=pytest.mark.by_hand)], ids=len)
def test_hostile_stores_in_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]) -> None:
    """On a store that is made, not measured, so that `run` has nothing to start."""
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))
    campaign = CAMPAIGNS["hostile_stores"]
    study = tmp_path / f"{damage.NAME}.toml"
    study.write_text(made.STUDY.replace('name = "made"', f'name = "{damage.NAME}"'))
    store = made.store(tmp_path / "world", text=study.read_text())
    for number, name in enumerate(names):
        case = next(case for case in campaign.cases(SEED) if case.name == name)
        folder = tmp_path / str(number)
        folder.mkdir()
        outcome = campaign.run(damage.World(study, store, None, None), case, folder)
        assert [(one.kind, one.text) for one in outcome.findings] == [], name


def test_the_page_on_faults_has_the_cases_that_there_are() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "explanation" / "faults.md").read_text(encoding="utf-8")
    cases = CAMPAIGNS["damage"].cases(SEED)
    strata = Counter(case.stratum for case in cases)
    assert len(cases) >= 60
    for stratum, number in {**strata, "all": len(cases)}.items():
        assert re.search(rf"^\| {stratum} \| {number} \|", page, re.MULTILINE), (stratum, number)
    assert f"none of the {len(cases)} cases" in page
