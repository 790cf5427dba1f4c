"""A store on disk with synthetic trials, for everything that reads one."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.plan import Plan
from steelyard.model.sample import Sample
from steelyard.store.write import StoreWriter
from tests.unit.report import synthetic


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two workloads on three cluster sizes; intervals of a load node and samples of every node."""
    study = synthetic.study(workloads=("A",), trials=2)
    plan = Plan(study=study.study.name, seed=7, factors=study.factors, hard=("nodes",), trials=())
    with StoreWriter(tmp_path, study.study.name) as writer:
        writer.intend(study, "", plan)
        for record in synthetic.records(study, faults=False):
            draft = writer.draft(record.id, record.attempt)
            for name, facts in synthetic.facts(record).items():
                draft.facts(name, facts)
            frame = synthetic.samples(record)
            for node in frame["node"].unique():
                rows = frame.filter(frame["node"] == node).iter_rows(named=True)
                draft.samples(node, [Sample(row["t_s"], node, row["metric"], row["value"]) for row in rows])
            draft.intervals("load1", synthetic.interval_records(record))
            draft.seal(record)
        return writer.folder
