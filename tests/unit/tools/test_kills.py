"""The campaign of kills: what it promises to hit, and that its killer hits what it says."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tools.campaigns import disruptions
from tools.campaigns.__main__ import SEED
from tools.campaigns.killed_run import CONDUCTOR, Killer
from tools.campaigns.kills import CAMPAIGN, PHASES
from tools.campaigns.leftovers import processes_of

from steelyard.model.trial import Phase


def test_simulated_and_real_kills_come_to_every_phase_five_times() -> None:
    cases = CAMPAIGN.cases(SEED)
    systems = Counter(str(case.values["system"]) for case in cases)
    assert systems == {"simulated": 74, "cassandra": 32, "linked": 22, "growing": 60, "jobs": 20}
    phases = Counter(str(case.values["phase"]) for case in cases)
    assert min(phases[phase] for phase in PHASES) >= 5
    assert {case.values["target"] for case in cases} == {
        "conductor", "agent", "node", "link", "member", "joiner", "driver", "worker",
    }  # fmt: skip


def test_disrupted_studies_are_killed_220_times_on_three_sites() -> None:
    cases = disruptions.CAMPAIGN.cases(SEED)
    assert Counter(str(case.values["site"]) for case in cases) == {"local": 24, "docker": 10, "ssh": 10}
    assert len(cases) * disruptions.KILLS == 220
    assert len({case.name for case in cases}) == len(cases)


def test_a_phase_is_counted_until_its_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun: list[float] = []
    # The timer would kill.
    monkeypatch.setattr("threading.Timer.start", lambda timer: begun.append(timer.interval))
    killer = Killer(Phase.MEASURE, 2, 0.5, CONDUCTOR, tmp_path)
    for phase in (Phase.MEASURE, Phase.DRAIN):
        killer.came_to(phase)
    assert begun == []
    for _ in range(3):
        killer.came_to(Phase.MEASURE)
    assert begun == [0.5]


def test_processes_of_a_lease_are_found_by_their_environment(tmp_path: Path) -> None:
    environment = {"STEELYARD_STATE": str(tmp_path), "STEELYARD_LEASE": "1"}
    argv = [sys.executable, "-c", "import sys; sys.stdin.read()", "steelyard-agent load"]
    with subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        found = processes_of(tmp_path)
        process.communicate()
    assert list(found) == [process.pid]
    assert "steelyard-agent load" in found[process.pid]
    assert processes_of(tmp_path / "other") == {}
