"""A fraction of a factorial through the whole laboratory, with cost, energy and percentiles beside its effects."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.events.kept import SessionBegan
from steelyard.store import Store
from tests.e2e.laboratory import Laboratory

pytestmark = pytest.mark.agent

STUDY = """
format = 1
probes = ["os", "energy"]
[study]
name = "merits"
question = "Which settings matter, and what do they cost?"
[site]
name = "local"
[system]
name = "simulated"
service_us = 1000
[workload]
name = "ycsb-c"
records = 200
[load]
threads = 8
operations = 1200
[data]
state = "continue"
[design]
kind = "fractional"
resolution = 3
starts = 2
trials = 1
[analysis]
response = "throughput_per_s"
[limits]
background_cpu_fraction = 1
generator_ceiling_fraction = 1000
[cost]
price_per_node_hour = 0.36
currency = "EUR"
node_watts_busy = 100
[factors]
nodes = [1, 2]
"load.threads" = [1, 8]
"load.routing" = ["token", "round-robin"]
"""


def test_a_fraction_with_its_aliases_cost_and_percentiles(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "merits.toml"
    study.write_text(STUDY)
    done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    tables = laboratory.tables("merits")

    def rows(name: str) -> list[dict[str, object]]:
        return [dict(zip(tables[name]["columns"], row, strict=True)) for row in tables[name]["rows"]]

    effects = {str(row["factor"]): row for row in rows("main_effect")}
    assert effects["load.routing"]["aliases"] == "nodes x load.threads"
    assert all(row["n"] == 4 for row in effects.values())
    merits = rows("merit")
    assert len(merits) == 4
    for row in merits:
        throughput, nodes = float(str(row["throughput_per_s"])), int(str(row["nodes"]))
        assert float(str(row["cost_per_million_operations"])) == pytest.approx(100 * nodes / throughput, rel=0.2)
        assert row["energy_basis"] in ("declared", "measured")
    found = [row for row in rows("percentile") if row["response"] == "response_ms_p99"]
    assert len(found) == 8
    for row in found:
        assert float(str(row["percentile"])) > 0
        assert row["percentile_low"] is None, "of a trial shorter than 12 s"
    store = Store(laboratory.store / "merits")
    begun = next(entry.event for entry in store.journal() if isinstance(entry.event, SessionBegan))
    assert "run" in begun.command
    facts = store.facts(store.trials()[0])
    assert {"sysctl vm.swappiness", "ulimit open_files", "disk_filesystem"} <= facts["n1"].keys()
