from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.commands.check import check
from steelyard.judging.noise_floor import KeptFloor, Spread, circumstances
from steelyard.lab import quiet
from steelyard.model.verdict_reasons import Reason, ReasonKind
from steelyard.node import machine_facts, noise_floor
from steelyard.plan import Machine, expand
from steelyard.study import read
from tests.unit.cli.screen import Printed, printed
from tests.unit.study.paper import HEAD, OTHER, WORKLOAD

REST = f'[factors]\nnodes = [1, 3]\nworkload = ["{WORKLOAD}", "{OTHER}"]\n'
LONG = "[design]\ntrials = 8\n" + REST


def checked(folder: Path, rest: str, **options: Any) -> Printed:
    path = folder / "paper.toml"
    path.write_text(HEAD + rest)
    return printed(lambda: check(path, trust=True, store=folder / "store", **options), width=400)


def test_a_study_that_works_is_laid_out(tmp_path: Path) -> None:
    found = checked(tmp_path, LONG)
    assert (found.code, found.err) == (0, "")
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
        assert words in found.out, words
    assert "more (--all)" not in checked(tmp_path, LONG, everything=True).out


def test_a_cluster_that_exists_takes_no_memory_of_this_machine(tmp_path: Path) -> None:
    path = Path(__file__).parents[4] / "studies" / "existing-cluster.toml"
    found = printed(lambda: check(path, trust=True, store=tmp_path / "store"), width=400)
    assert found.code == 0
    assert "512 MiB at most, the laboratory's own: the cluster exists" in found.out
    assert "nodetool clearsnapshot" in found.out


def test_a_probe_that_a_cluster_cannot_be_read_by_is_refused(tmp_path: Path) -> None:
    shipped = Path(__file__).parents[4] / "studies" / "existing-cluster.toml"
    path = tmp_path / "study.toml"
    path.write_text(shipped.read_text().replace('probes = ["os"]', 'probes = ["os", "gc"]'))
    found = printed(lambda: check(path, trust=True, store=tmp_path / "store"), width=400)
    assert found.code == 2
    assert "study.toml:6: probes: the probe gc reads systems that offer the way 'gc_log'" in found.err


def test_json_has_everything(tmp_path: Path) -> None:
    found = checked(tmp_path, REST, as_json=True)
    data = json.loads(found.out)
    assert found.code == 0
    assert len(data["plan"]["trials"]) == 24
    assert data["treatments"][0] == {"nodes": 1, "workload": WORKLOAD}
    assert data["estimate"]["trials"] == 24
    assert {item["factor"] for item in data["resolution"]} == {"nodes", "workload"}
    assert data["errors"] == []


def test_errors_go_to_stderr_with_exit_code_2(tmp_path: Path) -> None:
    found = checked(tmp_path, "thread = 4\n[factors]\nnodes = 3\n")
    assert (found.code, found.out) == (2, "")
    found = checked(tmp_path, "thread = 4\n[factors]\nnodes = [1, 1]\n")
    assert found.code == 2
    assert "paper.toml:20: load.thread = 4: no such key; did you mean 'threads'?" in found.err


def test_what_cannot_work_is_refused_at_its_line(tmp_path: Path) -> None:
    found = checked(tmp_path, "[factors]\nnodes = [1, 3]\nsystem.replication_factor = [1, 3]\n")
    assert found.code == 2
    assert "8 treatments" not in found.out
    assert "paper.toml:22: system.replication_factor = 3 with 1 node: more copies than nodes" in found.err


def test_a_confounded_design_is_refused_at_its_line(tmp_path: Path) -> None:
    rest = (
        '[design]\nkind = "listed"\ntreatments = [{ nodes = 1, load.threads = 1 }, { nodes = 3, load.threads = 2 }]\n'
    )
    found = checked(tmp_path, rest)
    assert found.code == 2
    assert "paper.toml:22: factors 'nodes' and 'load.threads' always move together" in found.err


def test_errors_in_json(tmp_path: Path) -> None:
    found = checked(tmp_path, "thread = 4\n", as_json=True)
    assert found.code == 2
    (error,) = json.loads(found.out)["errors"]
    assert (error["line"], error["key"]) == (20, "load.thread")


def test_a_stopping_rule_says_what_to_expect(tmp_path: Path) -> None:
    rest = "[design]\nstarts = 30\ntrials = 1\n[design.until]\nwidth_percent = 3\n{}[factors]\nnodes = [1, 3]\n"
    found = checked(tmp_path, rest.format(""))
    flat = " ".join(found.out.split())
    assert found.code == 0
    assert "is within 3% of it: from 10 to 30 starts" in flat
    assert "CV between starts" in flat
    assert "10.0% 30 " in flat, "the cap"
    assert "% reach the cap, wider than requested" in flat
    assert "the study ends earlier once its intervals are within ±3%" in flat
    assert "t intervals that end a study" not in flat
    found = checked(tmp_path, rest.format("least_starts = 6\nhours = 0.001\n"))
    flat = " ".join(found.out.split())
    assert found.code == 0
    assert "at least 6 starts: t intervals that end a study cover less" in flat
    assert "the study will end before an interval is judged" in flat
    until = json.loads(checked(tmp_path, rest.format(""), as_json=True).out)["until"]
    assert until["rule"]["least_starts"] == 10
    assert [one["cv"] for one in until["expected"]] == [0.01, 0.02, 0.05, 0.1]


def test_it_says_which_noise_floor_the_study_will_be_judged_against(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_STATE", str(tmp_path / "state"))
    assert "noise floor none: this machine's noise floor has not been measured" in checked(tmp_path, REST).out
    assert "measured by this study" in checked(tmp_path, '[design]\nkind = "same"\n').out
    study = read(tmp_path / "paper.toml")
    of = circumstances(expand(study).trials[0].settings, [machine_facts.facts()])
    spread = Spread(
        response="execution_time_ms", starts=12, trials=36, between_mean_square=0.0031, between_degrees=11,
        within_mean_square=0.0004, within_degrees=24, trials_a_start=3.0,
    )  # fmt: skip
    floor = KeptFloor(study="noise-floor", made_s=1.79e9, pairs=6, holds_for=of, spreads=(spread,))
    noise_floor.write(tmp_path / "state", floor)
    text = checked(tmp_path, REST).out
    assert "execution time of identical systems stays below 7.3% over starts and 2.4% within starts at 95%" in text
    assert "(study noise-floor of 2026-09-21, 12 starts, 36 trials)" in text
    assert "if its nodes are like this machine" not in text, "they share its kernel"
    data = json.loads(checked(tmp_path, REST, as_json=True).out)
    assert data["noise_floor"]["floor"]["study"] == "noise-floor"
    noise_floor.write(tmp_path / "state", floor.model_copy(update={"holds_for": of.model_copy(update={"nodes": 9})}))
    for path in (tmp_path / "state" / noise_floor.FOLDER).glob("*.json"):
        if '"nodes": 9' not in path.read_text():
            path.unlink()
    assert "it was measured with nodes 9, this study has 1 and 3" in checked(tmp_path, REST).out


def test_the_long_name_of_a_factor_is_whole_at_80_columns(tmp_path: Path) -> None:
    """It once read `system.compress…`; a name that does not fit is broken over two lines."""
    path = tmp_path / "paper.toml"
    path.write_text(HEAD + '[factors]\n"load.connections_per_node" = [1, 2]\nnodes = [1, 2]\n')
    found = printed(lambda: check(path, trust=True, store=tmp_path / "store"), width=80)
    assert found.code == 0, found.err
    assert "…" not in found.out


@pytest.mark.parametrize("busy", [True, False])
def test_a_busy_machine_is_said_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: bool) -> None:
    reason = Reason(kind=ReasonKind.STEAL, measured=0.8, threshold=0.2, unit="of all CPU time", detail="java 1.60")
    # Whether this machine is busy is chance.
    monkeypatch.setattr(quiet, "disturbed_since", lambda before, state, limits: [reason] if busy else [])
    printed_out = " ".join(checked(tmp_path, REST).out.split())
    words = (
        "this machine is busy: background load: 80% of all CPU time, limit 20%, limits.background_cpu_fraction "
        "(java 1.60); `run` would wait for a quiet machine, at most 30 min (limits.quiet_wait_s)"
    )
    assert (words in printed_out) == busy
    assert ("machine is busy" in printed_out) == busy


def test_the_disk_of_the_store_is_looked_at(tmp_path: Path, this_machine: list[Machine]) -> None:
    this_machine.append(Machine(cores=2, memory_mb=64_000, disk_free_bytes=10**12, store_free_bytes=10**5))
    found = checked(tmp_path, REST)
    assert found.code == 0
    printed_out = " ".join(found.out.split())
    assert "97.7 KiB free there" in printed_out
    assert "in the store, 97.7 KiB are free there: free some space, or name another folder (--store)" in printed_out


def test_named_levels_are_laid_out(tmp_path: Path) -> None:
    rest = """[factors]
hardware = ["small", "large"]
[levels.hardware.small]
system.heap_mb = 256
number = 1
unit = "GB"
[levels.hardware.large]
system.heap_mb = 512
number = 2
[levels.hardware.huge]
system.heap_mb = 1024
number = 4
"""
    text = " ".join(checked(tmp_path, rest).out.split())
    assert "hardware small system.heap_mb = 256 1 GB" in text
    assert "defined under [levels], but in no treatment: hardware = huge" in text
