"""A study with a link as a factor, from the command line to the report: measured before and after, laid beside what was
asked."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from steelyard.events.kept import LinksMeasured
from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory, loopback_addresses

pytestmark = [pytest.mark.root, pytest.mark.agent]

STUDY = f"""
[study]
name = "links"
question = "does the link matter?"
[site]
name = "local"
mode = "namespaces"
[system]
name = "simulated"
service_us = 200
[workload]
name = "ycsb-c"
records = 100
[load]
operations = 200
[design]
starts = 1
trials = 1
[factors]
link = ["nodal", "ethernet-100"]
nodes = [2]
{BUSY_MACHINE}probe_gap_s = 30
{COLD}"""


def test_a_study_over_links(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "links.toml"
    study.write_text(STUDY)
    done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    store = Store(laboratory.store / "links")
    records = store.trials()
    assert sorted(record.settings.link.name for record in records) == ["ethernet-100", "nodal"]
    for record in records:
        paths = [(path["from"], path["to"], path.get("ends", "")) for path in store.links(record)]
        assert paths == [("l1", "n1", ""), ("l1", "n2", ""), ("n1", "n2", "databases")]
        assert {"rtt_ms_min", "database_rtt_ms_min", "link_mbit_per_s", "link_loss_percent"} <= set(record.covariates)
    after = [entry.event for entry in store.journal() if isinstance(entry.event, LinksMeasured)]
    assert {event.cluster for event in after} == {record.start for record in records}
    assert [len(event.links) for event in after] == [3, 3]
    table = laboratory.tables("links")["link"]
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    assert {(row["link"], row["quantity"]) for row in rows} >= {("nodal", "rate"), ("ethernet-100", "rate")}
    assert all(row["after"] is not None for row in rows)
    assert laboratory.call("verify", laboratory.store / "links").returncode == 0
    assert list((laboratory.folder / "state" / "leases").glob("*.json")) == []


def test_a_study_measures_the_network_as_it_is_where_it_says_so(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "links.toml"
    as_it_is = STUDY.replace('link = ["nodal", "ethernet-100"]\n', "").replace('"namespaces"', '"loopback"')
    study.write_text(f"measure_links = true\n{as_it_is}")
    with loopback_addresses():
        done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    store = Store(laboratory.store / "links")
    (record,) = store.trials()
    assert [(path["from"], path["to"]) for path in store.links(record)] == [("l1", "n1"), ("l1", "n2"), ("n1", "n2")]
    assert record.covariates["link_mbit_per_s"] > 0
    table = laboratory.tables("links")["link"]
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    assert "rate" in {row["quantity"] for row in rows if row["after"] is not None}


STANDS_STILL = """
[study]
name = "still"
question = "is a link program that stands still noticed?"
[site]
name = "local"
mode = "namespaces"
[system]
name = "simulated"
[workload]
name = "ycsb-c"
records = 100
[load]
duration_s = 4
threads = 4
[design]
starts = 1
trials = 1
[link]
name = "802.11g"
[factors]
nodes = [1]
[limits]
background_cpu_fraction = 1
steal_fraction = 1
probe_gap_s = 30
link_late_ms = 1000
link_stalled_fraction = 0.2
"""


def test_a_link_program_that_stands_still_voids_the_trial(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "still.toml"
    study.write_text(STANDS_STILL)
    running = laboratory.start("run", study, "--store", laboratory.store, "--plain")
    try:
        deadline = time.monotonic() + 120
        while "  measure" not in (laboratory.folder / "stderr.txt").read_text():
            assert time.monotonic() < deadline
            assert running.poll() is None
            time.sleep(0.05)
        time.sleep(1.0)
        (program,) = link_programs(str(laboratory.folder))
        os.kill(program, signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(program, signal.SIGCONT)
        assert running.wait(120) == 0
    finally:
        running.kill()
        running.communicate()
    records = Store(laboratory.store / "still").trials()
    assert [record.verdict.outcome for record in records] == ["invalid", "valid"]
    assert [reason.kind.name for reason in records[0].verdict.reasons] == ["LINK_STALLED"]
    assert all(record.moved_frames is not None for record in records)
    (row,) = laboratory.tables("still")["link_program"]["rows"]
    assert row[:2] == ["802.11g", 2]
    assert laboratory.call("verify", laboratory.store / "still").returncode == 0


def link_programs(folder: str) -> list[int]:
    """Link programs with a configuration in a folder."""
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"\0link\0--config\0" + folder.encode() in _content(path)
    ]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
