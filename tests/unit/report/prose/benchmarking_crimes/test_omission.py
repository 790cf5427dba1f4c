"""The checks of omission: each is guilty of a study that lacks the thing, clear of one that has it, with numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistics.main_effect import MainEffect
from steelyard.analysis.statistics.percentile import TrialPercentile
from steelyard.model.study import Study
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.report.prose.benchmarking_crimes.crime import Crime
from steelyard.report.prose.benchmarking_crimes.omission import missing
from tests.unit.report import synthetic

PLATFORM = {"n1": {"cpu_model": "x", "cores": "4", "memory_mb": "1000", "kernel": "6"}}


def found(
    study: Study | None = None, *, facts: Mapping[str, Mapping[str, str]] | None = None,
    rows: Mapping[str, Any] | None = None, **change: Any,
) -> dict[str, Crime]:  # fmt: skip
    study = study or synthetic.study()
    records = [record.model_copy(update=change) for record in synthetic.records(study, faults=False)]
    analysed = analyse(records, study, seed=1)
    analysed = analysed.model_copy(update={"rows": {**analysed.rows, **(rows or {})}})
    sheet = missing(study, analysed, records, PLATFORM if facts is None else facts)
    return {crime.name: crime for crime in sheet}


def test_a_usual_study_is_clear_of_most() -> None:
    sheet = found()
    clear = {name for name, crime in sheet.items() if not crime.guilty}
    assert clear >= {
        "A subset of what was planned", "Platform not described", "Relative numbers only",
        "Treatments in a fixed order",
        "Effects that are confounded", "Percentiles of few operations", "Throughput without what it takes",
    }  # fmt: skip
    assert all(any(letter.isdigit() for letter in crime.evidence) or not crime.guilty for crime in sheet.values())
    assert all(crime.hint for crime in sheet.values() if crime.guilty)


def test_trials_with_a_planted_law_are_of_a_simulated_system() -> None:
    assert not found()["A simulated system"].guilty
    planted = found(settings=TrialSettings({"system": {"name": "shelf", "contention": 0.1}}))["A simulated system"]
    assert planted.guilty
    assert planted.evidence.startswith("48 of 48 trials measured the simulated cluster")


def test_levels_of_another_factor_are_no_cluster_sizes() -> None:
    crime = found()["Scaling on shared hardware"]
    assert crime.evidence.startswith("2 cluster sizes on nodes that share")
    threads = synthetic.study().model_copy(update={"factors": {"load.threads": (1, 8), "nodes": (3,)}})
    records = [
        record.model_copy(update={"treatment": {"load.threads": level, "nodes": 3}, "hard": ("load.threads",)})
        for record, level in zip(synthetic.records(synthetic.study(), faults=False), (1, 8), strict=False)
    ]
    results = analyse(records, threads, seed=1)
    assert results.size_factor == "load.threads"
    sheet = {crime.name: crime for crime in missing(threads, results, records, PLATFORM)}
    assert sheet["Scaling on shared hardware"].evidence.startswith("1 cluster size on nodes that share")


def test_a_treatment_without_a_trial_is_a_subset() -> None:
    voided = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.PROBE_GAP),))
    crime = found(verdict=voided)["A subset of what was planned"]
    assert crime.guilty
    assert "without a used trial (" in crime.evidence


def test_the_generator_is_named_where_it_was_the_limit_or_might_be() -> None:
    bound = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.GENERATOR_BOUND),))
    crime = found(verdict=bound)["The generator may be the limit"]
    assert not crime.guilty
    assert "48 of 48 trials left out because the load generator was the limit, none of them blamed" in crime.evidence
    unknown = Verdict(outcome="valid", notes=("the generator's ceiling is unknown: no calibration",))
    crime = found(verdict=unknown)["The generator may be the limit"]
    assert crime.guilty
    assert "of 48 valid ones its ceiling is unknown" in crime.evidence


@pytest.mark.parametrize(
    ("facts", "words"), [({}, "0 nodes with facts"), ({"n1": {"cores": "4", "kernel": "6"}}, "cpu_model of n1")]
)
def test_a_platform_that_nobody_tells(facts: Mapping[str, Mapping[str, str]], words: str) -> None:
    crime = found(facts=facts)["Platform not described"]
    assert crime.guilty
    assert words in crime.evidence


def test_one_workload_one_start_and_the_published_order() -> None:
    study = synthetic.study(workloads=("A",), starts=1)
    design = study.design.model_copy(update={"order": "published"})
    sheet = found(study.model_copy(update={"design": design}))
    assert sheet["One workload only"].evidence == "1 workload: A."
    assert sheet["One workload only"].guilty
    assert sheet["No significance"].guilty
    assert sheet["Treatments in a fixed order"].guilty


def test_throughput_needs_a_probe_of_the_processor() -> None:
    study = synthetic.study()
    analysis = study.analysis.model_copy(update={"response": "throughput_per_s"})
    crime = found(study.model_copy(update={"analysis": analysis, "probes": ()}))["Throughput without what it takes"]
    assert crime.guilty
    assert "0 probes (none)" in crime.evidence


def test_aliases_of_two_factors_and_percentiles_of_few_operations() -> None:
    def effect(aliases: str) -> MainEffect:
        return MainEffect(
            factor="a", baseline=1, level=2, response="throughput_per_s", n=4, starts=2, verdict="faster",
            aliases=aliases, sentence="",
        )  # fmt: skip

    few = TrialPercentile(
        trial_id="x", attempt=1, treatment={}, response="response_ms_p99", unit="ms", operations=10, needed=1000
    )
    change = {"main_effect": (effect("b x c or d x e x f"), effect("b x c x d"), effect("")), "percentile": (few,)}
    sheet = found(rows=change)
    assert "1 of 3 effects" in sheet["Effects that are confounded"].evidence
    assert sheet["Effects that are confounded"].guilty
    assert "1 of 1 percentile of single trials" in sheet["Percentiles of few operations"].evidence
