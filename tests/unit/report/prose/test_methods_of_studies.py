"""Methods text of every shipped study, and of a search: no field that nobody set is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.model.plan import PlannedTrial
from steelyard.model.trial import Responses, TrialRecord
from steelyard.plan.expand import expand
from steelyard.plugins.find import Plugins
from steelyard.reading.report_input import ReportInput
from steelyard.report.page import build
from steelyard.report.prose import method_and_facts
from steelyard.study.read import read
from tests.unit.analysis import made

STUDIES = Path(__file__).parents[4] / "studies"
EMPTY = re.compile(r"\bNone\b")
CODE = re.compile(r"<(code|script|style)\b.*?</\1>", re.DOTALL)
MOST_TRIALS = 40


def _failed(trial: PlannedTrial, study: str) -> TrialRecord:
    return TrialRecord(
        id=trial.id, attempt=1, study=study, treatment=trial.treatment, hard=trial.hard, settings=trial.settings.root,
        block=trial.block, planned_start=trial.start, start=trial.start, start_replicate=trial.start_replicate,
        replicate=trial.replicate, position=trial.position, order_in_start=1, seed=trial.seed,
        begun_s=1_790_000_000.0 + trial.position, verdict=made.FAULT, responses=Responses(),
    )  # fmt: skip


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_methods_of_a_shipped_study_print_no_unset_field(path: Path) -> None:
    plugins = Plugins(STUDIES)
    study = read(path, plugins=plugins)
    plan = expand(study, plugins)
    records = [_failed(trial, study.study.name) for trial in plan.trials[:MOST_TRIALS]]
    results = analyse(records, study, seed=1)
    text = " ".join(method_and_facts.method(study, plan, records, results))
    assert "Each treatment was planned" in text or "a split plot" in text
    assert not EMPTY.search(text), text
    page = CODE.sub("", build(ReportInput(study=study, results=results, records=records, plan=plan)))
    assert "Method" in page
    assert not EMPTY.search(page), EMPTY.split(page)[0][-200:]


def test_the_methods_of_a_search_name_its_limits_and_windows() -> None:
    study = read(STUDIES / "search.toml", plugins=Plugins(STUDIES))
    text = " ".join(method_and_facts.method(study, None, (), analyse((), study, seed=1)))
    for part in ("One trial is a search", "with p99 <= 20 ms and errors <= 0.1%", "Poisson arrivals",
                 "from 100 operations/s", "capacity, the highest rate with p99"):  # fmt: skip
        assert part in text, part


def test_the_methods_name_every_system() -> None:
    study = read(STUDIES / "stores.toml", plugins=Plugins(STUDIES))
    text = " ".join(method_and_facts.method(study, None, (), analyse((), study, seed=1)))
    assert text.startswith("The systems under test were cassandra, redis and postgresql on clusters of 1 node")


@pytest.mark.parametrize(("protocol", "said"), [("cql", True), ("", True), ("http", False), ("etcd", False)])
def test_consistency_is_said_only_of_a_protocol_that_has_it(protocol: str, said: bool) -> None:
    study = read(STUDIES / "search.toml", plugins=Plugins(STUDIES))
    facts = {"system:n1": {"protocol": protocol} if protocol else {}}
    text = " ".join(method_and_facts.method(study, None, (), analyse((), study, seed=1), facts))
    assert ("Reads asked for consistency ONE, writes for ONE; an operation without" in text) == said
    assert ("consistency" in text) == said
    assert "operation without an answer after" in text
