"""The honest test: the whole laboratory, study file to report, recovers what was planted in the simulated cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.regression import Regression
from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, Laboratory

pytestmark = pytest.mark.agent

SERVICE_US = 4000
"""Long against the round trip, which the law does not know."""
CONTENTION = 0.25
OPERATIONS = 80

LAW = f"""
[study]
name = "planted-law"
question = "how does the execution time change with the number of nodes?"
[site]
name = "local"
[system]
name = "simulated"
service_us = {SERVICE_US}
contention = {CONTENTION}
coherency = 0.0
start_cv = 0.05
[workload]
name = "ycsb-c"
records = 200
[load]
operations = {OPERATIONS}
[design]
starts = 3
trials = 1
seed = 11
[factors]
nodes = [1, 2, 3, 4, 6]
[analysis]
confidence = 0.999
{BUSY_MACHINE}"""
"""The factors of the starts are drawn from the design's seed, so that chance has been taken once and for all."""


@pytest.mark.quiet
def test_a_planted_law_is_recovered(laboratory: Laboratory, tmp_path: Path) -> None:
    study = tmp_path / "law.toml"
    study.write_text(LAW)
    done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    store = Store(laboratory.store / "planted-law")
    results = analyse(store.trials(), store.study, seed=1)
    (regression,) = results.of(Regression)
    assert regression.honest is not None
    planted_ms = OPERATIONS * SERVICE_US / 1000 * CONTENTION
    slope = regression.honest.slope
    assert slope.low is not None
    assert slope.high is not None
    assert slope.low <= planted_ms <= slope.high, f"{slope} does not hold the planted {planted_ms} ms per node"
    assert slope.low > 0, "the interval must be narrow enough to tell the law from none"
    (usl,) = [fit for fit in results.of(LawFit) if fit.law == "usl"]
    sigma = usl.parameters["sigma"]
    assert sigma.low is not None
    assert sigma.high is not None
    assert sigma.low <= CONTENTION <= sigma.high, f"{sigma} does not hold the planted contention"
    tables = laboratory.tables("planted-law")
    assert tables
    page = (laboratory.folder / "report.html").read_text()
    assert "how does the execution time change with the number of nodes?" in page
