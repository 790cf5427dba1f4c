"""Real Cassandra: the shipped quickstart, small, on 1 and 2 real nodes, from study file to report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, ROOT, Laboratory

pytestmark = [pytest.mark.agent, pytest.mark.cassandra]

WORKLOADS = (("ycsb-a", "ycsb-e"), pytest.param(("ycsb-c", "ycsb-i"), marks=pytest.mark.by_hand))
"""All of the first study."""


def small(text: str, workloads: Sequence[str]) -> str:
    """The quickstart with one start and one short trial of each treatment, of these workloads."""
    changes = {
        "starts = 3": "starts = 1",
        "duration_s = 22": "operations = 2000",
        "deadline_s = 90\nsteady_s = 4": "deadline_s = 10\nsteady_s = 1",
        "\nnodes = [1, 2]": f"\nnodes = [1, 2]\nworkload = {json.dumps(workloads)}",
    }
    for shipped, reduced in changes.items():
        assert shipped in text
        text = text.replace(shipped, reduced)
    return text + BUSY_MACHINE


@pytest.mark.parametrize("workloads", WORKLOADS, ids=" ".join)
def test_the_quickstart_on_real_nodes(laboratory: Laboratory, tmp_path: Path, workloads: Sequence[str]) -> None:
    shipped = (ROOT / "studies" / "quickstart.toml").read_text()
    study = tmp_path / "quickstart.toml"
    study.write_text(small(shipped, workloads))
    assert study.read_text() != shipped
    done = laboratory.run(study, "--scale", "0.2", timeout_s=900.0)
    assert done.returncode == 0, done.stderr
    (folder,) = laboratory.store.iterdir()
    store = Store(folder)
    # A busy machine may void an attempt, which is then repeated.
    records = [record for record in store.trials() if record.verdict.final]
    assert len(records) == 2 * len(workloads)
    assert all(record.verdict.outcome == "valid" for record in records)
    for record in records:
        nodes = record.settings.root["site"]["nodes"]
        facts = store.facts(record)
        assert {f"system:n{i + 1}" for i in range(nodes)} <= set(facts)
        samples = store.samples(record)
        assert set(samples["node"]) == {*(f"n{i + 1}" for i in range(nodes)), "l1"}
        metrics = set(samples["metric"])
        assert {"node_cpu_user_cores", "node_disk_write_bytes_per_s", "node_network_receive_bytes_per_s"} <= metrics
        assert record.responses.not_found == 0
        assert record.server_warm_up is not None
        assert all(node.compiler_fraction is not None for node in record.server_warm_up.nodes.values())
        assert len(record.server_warm_up.nodes) == nodes
    laboratory.tables(folder.name)
    page = (laboratory.folder / "report.html").read_text()
    assert store.study.study.question in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
