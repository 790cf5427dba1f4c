"""Disruptions of a simulated cluster: what is planted is found, and a pause is what a planted stall is."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.trial import TrialRecord
from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory

pytestmark = [pytest.mark.agent, pytest.mark.quiet]

STUDY = """
probes = ["os", "simulated"]
[study]
name = "{name}"
question = "are planted disruptions found?"
[site]
name = "local"
nodes = 3
[system]
name = "simulated"
service_us = 1000
contention = 0
{system}
[workload]
name = "{workload}"
records = 100
[load]
schedule = "constant"
rate_per_s = 300
threads = {threads}
duration_s = {lasts_s}
timeout_ms = {timeout_ms}
[disruption]
recover_s = 8
{disruption}
[design]
starts = 1
trials = 1
seed = 1
{factors}
{limits}lag_p99_ms = 1000
probe_gap_s = 30
{cold}"""
FOR_S = 3.0


def measured(laboratory: Laboratory, folder: Path, name: str, **changes: object) -> dict[object, TrialRecord]:
    """The trial of each treatment, which `verify` has computed again."""
    path = folder / f"{name}.toml"
    given = {
        "threads": 64,
        "lasts_s": 40,
        "timeout_ms": 2000,
        "system": "",
        "workload": "ycsb-c",
        "limits": BUSY_MACHINE,
        "cold": COLD,
        **changes,
    }
    path.write_text(STUDY.format(name=name, **given))
    ended = laboratory.run(path)
    assert ended.returncode == 0, ended.stderr
    verified = laboratory.call("verify", laboratory.store / name)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    return {next(iter(record.treatment.values())): record for record in Store(laboratory.store / name).trials()}


def test_a_pause_of_all_costs_what_a_planted_stall_costs(laboratory: Laboratory, tmp_path: Path) -> None:
    """Both hold every node for the same time; waiting operations are answered late, none fails."""
    lasts_s = 26
    found = measured(
        laboratory, tmp_path, "pause-here", threads=2000, timeout_ms=20_000, lasts_s=lasts_s,
        disruption=f'on = "all"\nat_s = 12\nfor_s = {FOR_S}',
        factors='[levels.what.pause]\ndisruption = "pause"\n[levels.what.stall]\n"system.stall" = "12:3"\n'
        '[levels.what.noop]\ndisruption = "noop"\n[factors]\nwhat = ["pause", "stall", "noop"]',
    )  # fmt: skip
    by_name = {str(level): record for level, record in found.items()}
    lost = {name: record.measures["lost_operations"] for name, record in by_name.items()}
    # Those that were due in the last part of a second are answered in it, as the nodes carry ten times the rate.
    assert lost["pause"] == pytest.approx(300 * FOR_S, rel=0.1)
    assert lost["pause"] == pytest.approx(lost["stall"], rel=0.02)
    assert [record.responses.errors for record in by_name.values()] == [0, 0, 0]
    assert by_name["noop"].measures["availability_percent"] == 100
    # Other programs may make a second of it slower, or operations of it late.
    assert by_name["noop"].measures["recovery_s"] < 2 * FOR_S
    assert lost["noop"] < 100
    assert by_name["pause"].measures["availability_percent"] == pytest.approx(100 * (1 - FOR_S / lasts_s), abs=5)
    # Other programs may keep the rest of the load from five good seconds on end: then it is censored.
    assert by_name["pause"].measures.get("degraded_s", FOR_S) > FOR_S - 1
    held = by_name["pause"].disruptions[0]
    assert held.nodes == ("n1", "n2", "n3")
    began, healed = (max(mark.t_s for mark in held.marks if mark.name == name) for name in ("began", "healed"))
    assert healed - began == pytest.approx(FOR_S, abs=0.3)


def test_killed_nodes_are_missed_until_they_are_back(laboratory: Laboratory, tmp_path: Path) -> None:
    """Without one, the client goes on with the others at once; without all, nothing is answered until it has connected
    again."""
    found = measured(
        laboratory, tmp_path, "kill-here", disruption="at_s = 12\nfor_s = 16",
        factors='[levels.what.one]\ndisruption = "kill"\n"disruption.on" = "one"\n'
        '[levels.what.all]\ndisruption = "kill"\n"disruption.on" = "all"\n[factors]\nwhat = ["one", "all"]',
    )  # fmt: skip
    for record in found.values():
        (activity,) = record.disruptions
        assert {mark.name for mark in activity.marks} == {"began", "healed", "recovered"}
        assert record.verdict.outcome == "valid"
    assert found["one"].measures["availability_percent"] >= 100 * (1 - 1 / 40)
    # A third of what was due meanwhile would be 1,600; a busy machine adds late ones.
    assert found["one"].measures["lost_operations"] < 160
    gone = found["all"].measures
    assert gone["availability_percent"] == pytest.approx(100 * (1 - 16 / 40), abs=6)
    assert gone["lost_operations"] >= 0.9 * 300 * 16
    assert gone["detection_s"] <= 1
    # Censored where other programs keep the rest of the load from five good seconds on end.
    assert 0 < gone.get("recovery_s", 1.0) < 10


def test_writes_that_a_killed_node_has_lost_are_found_by_reading_back(laboratory: Laboratory, tmp_path: Path) -> None:
    """Rows stay in the memory of the node that received them: those of the killed one are gone, and no others."""
    found = measured(
        laboratory, tmp_path, "lost-here", lasts_s=26, disruption="at_s = 12\nfor_s = 3",
        system="remember = true", workload="ycsb-a", limits=f"{BUSY_MACHINE}not_found_fraction = 1\n",
        factors='[factors]\ndisruption = ["none", "kill"]',
    )  # fmt: skip
    none, kill = (found[level].measures for level in ("none", "kill"))
    assert (none["stale_values"], none["lost_writes"]) == (0, 0)
    # Half of 300/s for 26 s on 1,000 fields: most were written.
    assert none["values_read_back"] > 600
    assert kill["values_read_back"] == pytest.approx(none["values_read_back"], rel=0.2)
    # A third of the rows is the killed node's; what was written to them after it was back is there.
    assert 10 < kill["lost_writes"] < 400
    assert kill["stale_values"] >= kill["lost_writes"]
    logs = list((laboratory.store / "lost-here").glob("trials/*/logs/*/read-again.log"))
    assert len(logs) == 1
    assert "none of the versions" in logs[0].read_text()
    curves = laboratory.tables("lost-here")["aligned"]
    rows = [dict(zip(curves["columns"], row, strict=True)) for row in curves["rows"]]
    assert {(row["disruption"], row["kind"]) for row in rows} == {("kill", "disruption")}
    assert all(row["control"] is not None for row in rows if row["response"] == "throughput_per_s")


def test_a_node_joins_while_another_stands_still(laboratory: Laboratory, tmp_path: Path) -> None:
    """The join is complete, the pause is of a first member, and both are judged as if they were alone."""
    found = measured(
        laboratory, tmp_path, "join-here", lasts_s=30, threads=2000, timeout_ms=10_000,
        disruption='on = "n1"\nat_s = 13\nfor_s = 3',
        system="boot_s = 0.5\nring_delay_s = 0.5\ndata_mb = 16.0\nstream_mb_per_s = 1.0",
        factors='[policy]\ntimes = [[11, 4]]\n[levels.what.quiet]\npolicy = "none"\n[levels.what.both]\n'
        'policy = "scheduled"\ndisruption = "pause"\n[factors]\nwhat = ["quiet", "both"]',
    )  # fmt: skip
    both = found["both"]
    (join,), (pause,) = both.activities, both.disruptions
    assert (join.nodes, join.outcome, pause.nodes, pause.outcome) == (("n4",), "done", ("n1",), "done")
    assert join.ended_s is not None
    assert join.begun_s < pause.begun_s < join.ended_s
    assert (both.verdict.outcome, both.responses.errors) == ("valid", 0)
    assert both.measures["scale_out_s"] > 4
    # A third of the operations waits at the node that stands still.
    assert both.measures["lost_operations"] > 100
