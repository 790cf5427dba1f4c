"""The honest test: the whole laboratory, study file to report, recovers what was planted in the simulated cluster."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from steelyard.analysis import analyse
from steelyard.analysis.statistics.law import LawFit
from steelyard.analysis.statistics.law_choice import LawChoice
from steelyard.analysis.statistics.regression import Regression
from steelyard.store import Store
from tests.e2e.laboratory import Laboratory

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
"""
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


SHIPPED = Path(__file__).resolve().parents[2] / "studies" / "simulated.toml"
BRIEFER = {
    "nodes = [1, 2, 3, 4, 6, 8]": "nodes = [1, 2, 3, 5, 8]",
    "duration_s = 1.5": "duration_s = 1",
    "[analysis]": "[analysis]\nconfidence = 0.999",
}
"""The fewest sizes that a law is fitted to, two thirds of the time; at 99.9%, because a busy machine is noise too."""


@pytest.mark.quiet
def test_the_shipped_study_finds_what_it_plants(laboratory: Laboratory, tmp_path: Path) -> None:
    """By the law that its answer prefers."""
    study = tmp_path / "simulated.toml"
    text = SHIPPED.read_text()
    for shipped, briefer in BRIEFER.items():
        assert shipped in text
        text = text.replace(shipped, briefer)
    study.write_text(text)
    done = laboratory.run(study)
    assert done.returncode in (0, 1), done.stderr
    store = Store(laboratory.store / "simulated")
    results = analyse(store.trials(), store.study, seed=1)
    (choice,) = results.of(LawChoice)
    assert choice.contention is not None
    assert choice.contention.low is not None
    assert choice.contention.high is not None
    assert choice.contention.low <= 0.1 <= choice.contention.high, choice.sentence
    assert choice.planted_contention == 0.1
    assert any("planted 0.1" in sentence for sentence in results.answer)
    assert not any("did not saturate" in sentence for sentence in results.caveats)


WARM_SERVICE_US = 20_000
"""So long that a busy machine adds little to it."""
WARM_CONTENTION = 0.25
WARM_SIZES = (1, 4)

WARMING = f"""
[study]
name = "planted-warm-up"
question = "is the law found although each node gets faster with what it has served itself?"
[site]
name = "local"
[system]
name = "simulated"
service_us = {WARM_SERVICE_US}
contention = {WARM_CONTENTION}
warm_up = "3:25"
[workload]
name = "ycsb-c"
records = 200
[load]
operations = 40
[server_warm_up]
mode = "MODE"
steady_s = 0.5
deadline_s = 20
[design]
starts = 1
trials = 2
[factors]
nodes = [{WARM_SIZES[0]}, {WARM_SIZES[1]}]
[limits]
background_cpu_fraction = 1  # a machine that runs tests has other things to do
"""


@pytest.mark.parametrize("mode", ["on", "off"])
def test_a_planted_warm_up_hides_the_law_unless_servers_are_warmed_up(
    laboratory: Laboratory, tmp_path: Path, mode: str
) -> None:
    study = tmp_path / "warming.toml"
    study.write_text(WARMING.replace("MODE", mode))
    done = laboratory.run(study)
    assert done.returncode == 0, done.stderr
    records = Store(laboratory.store / "planted-warm-up").trials()
    one, four = (
        statistics.fmean(
            record.responses.execution_time_ms or 0.0 for record in records if record.treatment["nodes"] == n
        )
        for n in WARM_SIZES
    )
    planted = 1 + WARM_CONTENTION * (WARM_SIZES[1] - 1)
    if mode == "off":
        assert all(record.server_warm_up is None for record in records)
        assert four / one > 1.2 * planted, "each of four nodes serves a quarter of the operations, and is colder"
        return
    assert all(record.server_warm_up is not None and record.server_warm_up.reached for record in records)
    assert four / one == pytest.approx(planted, rel=0.15)
    assert "server-warm-up" in done.stderr
