"""A study with a link as a factor, from the command line to the report: measured before and after, laid beside what was
asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.store import Store
from steelyard.store.journal import LinksMeasured
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
