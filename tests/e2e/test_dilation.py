"""Stretched time: a planted law is the same with and without dilation, and every number says that it is dilated."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.store import Store
from steelyard.store.modelled import open_store
from tests.e2e.laboratory import BUSY_MACHINE, Laboratory

pytestmark = [pytest.mark.agent, pytest.mark.quiet]

SERVICE_US = 20_000
"""So long that round trips, which are not dilated, add little to it."""
CONTENTION = 0.25
OPERATIONS = 30
DILATION = 2.0
SIZES = (1, 4)

STUDY = f"""
[study]
name = "dilated"
question = "is the law the same in stretched time?"
[site]
name = "local"
[system]
name = "simulated"
service_us = {SERVICE_US}
contention = {CONTENTION}
[workload]
name = "ycsb-c"
records = 200
[load]
operations = {OPERATIONS}
[design]
starts = 1
trials = 1
[factors]
nodes = [{SIZES[0]}, {SIZES[1]}]
node.dilation = [1.0, {DILATION}]
"""


def test_a_planted_law_is_the_same_in_stretched_time(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "dilated.toml"
    study.write_text(STUDY + BUSY_MACHINE)
    done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    assert "(dilation 2)" in done.stderr
    folder = laboratory.store / "dilated"
    planted_ms = {n: OPERATIONS * SERVICE_US / 1000 * (1 + CONTENTION * (n - 1)) for n in SIZES}
    for store, stretch in ((open_store(folder), 1.0), (Store(folder), DILATION)):
        for k in (1.0, DILATION):
            for n in SIZES:
                (record,) = (
                    one for one in store.trials() if one.treatment == {"nodes": n, "node.dilation": k}
                )  # fmt: skip
                expected_ms = planted_ms[n] * (1.0 if k == 1 else stretch)
                assert record.responses.execution_time_ms == pytest.approx(expected_ms, rel=0.15), (stretch, k, n)
                assert record.responses.operations == OPERATIONS
    tables = laboratory.tables("dilated")
    trials = tables["trials"]
    dilations = {row[trials["columns"].index("dilation")] for row in trials["rows"]}
    page = (laboratory.folder / "report.html").read_text()
    assert "stretched time (dilations 1 and 2)" in page
    assert dilations == {1.0, DILATION}
    checked = laboratory.call("verify", folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    compared = laboratory.call("compare", folder, folder, "--a", "node.dilation=1", "--b", "node.dilation=2")
    assert "stretched time" in compared.stdout + compared.stderr
