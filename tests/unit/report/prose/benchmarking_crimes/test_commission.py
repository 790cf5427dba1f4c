"""Each check of the report's suspicion of itself names the number that triggered it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.analysis.analyse import analyse
from steelyard.judging.noise_floor import FoundFloor, KeptFloor, Spread, circumstances
from steelyard.model.study import Study
from steelyard.report.figures import catalogue
from steelyard.report.prose.benchmarking_crimes.commission import crimes
from steelyard.report.prose.benchmarking_crimes.crime import Crime
from steelyard.report.prose.method_and_facts import paragraph
from steelyard.store.measured_again import MeasuredAgain
from tests.unit.report import synthetic
from tests.unit.report.test_page import page_input


def found(study: Study, facts: Mapping[str, Mapping[str, str]] | None = None, **change: Any) -> dict[str, Crime]:
    records = [record.model_copy(update=change) for record in synthetic.records(study, faults=False)]
    results = analyse(records, study, seed=1)
    drawn = catalogue.of_results(results)
    return {crime.name: crime for crime in crimes(study, results, records, facts or {}, list(drawn.values()))}


def test_a_usual_study_is_held_against_every_check() -> None:
    sheet = found(synthetic.study())
    assert len(sheet) == 21
    assert not sheet["No baseline"].guilty
    assert not sheet["No units, no n"].guilty
    closed = sheet["Response times of a closed loop compared"]
    assert closed.guilty
    assert "48 of 48 trials ran in a closed loop" in closed.evidence
    axes = sheet["Truncated axes"]
    assert axes.guilty
    assert "Execution time" in axes.evidence
    assert sheet["No measure of noise"].guilty
    assert "0 control trials" in sheet["No measure of noise"].evidence


def test_a_trial_that_was_measured_again_is_not_left_out_in_silence() -> None:
    study = synthetic.study()
    records = synthetic.records(study, faults=False)
    again = MeasuredAgain(
        folder="a-s1-t1", line=4, outcome="invalid", reasons=("the system under test failed",), fate="removed",
        line_now=9, outcome_now="valid",
    )  # fmt: skip
    sheet = {one.name: one for one in crimes(study, analyse(records, study, seed=1), records, {}, [], [again])}
    crime = sheet["Results left out in silence"]
    assert crime.guilty
    assert "1 sealed attempt removed and measured again" in crime.evidence
    assert "sealed as invalid (the system under test failed), was removed" in crime.evidence


def test_one_treatment_has_no_baseline_and_one_trial_is_one() -> None:
    sheet = found(synthetic.study(nodes=(1,), workloads=("A",), starts=1, trials=1, warm_up_trials=0))
    assert sheet["No baseline"].guilty
    assert "1 treatment and 0 comparisons" in sheet["No baseline"].evidence
    assert sheet["A single trial"].guilty
    assert "1 of 1 cell rest on n = 1 trial" in sheet["A single trial"].evidence


def test_nodes_that_differ_are_named_with_both_values() -> None:
    facts = {
        "system:n1": {"release_version": "5"}, "system:n2": {"release_version": "5"},
        "n1": {"cores": "4"}, "n2": {"cores": "8"}, "machine": {"cores": "16"}, "l1": {"cores": "32"},
    }  # fmt: skip
    crime = found(synthetic.study(workloads=("A",)), facts)["Mixed hardware or versions"]
    assert crime.guilty
    assert crime.evidence == "cores: 2 values (4; 8)."


def test_a_percentile_as_the_main_response_is_a_mean_of_percentiles() -> None:
    study = synthetic.study(workloads=("A",))
    study = study.model_copy(update={"analysis": study.analysis.model_copy(update={"response": "response_ms_p99"})})
    assert found(study)["A mean of percentiles"].guilty
    assert not found(synthetic.study(workloads=("A",)))["A mean of percentiles"].guilty


def test_the_methods_text_has_system_design_hardware_settings_and_seed() -> None:
    text = paragraph(page_input(synthetic.study()))
    for part in ("cassandra 5.0.5", "split plot", "AMD EPYC 7B13", "system.heap_mb = 512", "seed 7", "SHA-256"):
        assert part in text.replace("\n", " ")
    assert max(map(len, text.splitlines())) <= 100


def test_a_known_noise_floor_is_told_and_none_is_a_crime() -> None:
    study = synthetic.study(nodes=(1, 3), workloads=("A",))
    records = synthetic.records(study, faults=False)
    spread = Spread(
        response="execution_time_ms", starts=12, trials=36, between_mean_square=0.003, between_degrees=11,
        within_mean_square=0.0004, within_degrees=24, trials_a_start=3.0,
    )  # fmt: skip
    held = circumstances(records[0].settings, ())
    floor = KeptFloor(study="noise-floor", made_s=1.79e9, pairs=6, holds_for=held, spreads=(spread,))
    results = analyse(records, study, seed=1, floor=FoundFloor(floor=floor, why=""))
    (crime,) = [one for one in crimes(study, results, records, {}, []) if one.name == "No measure of noise"]
    assert not crime.guilty
    assert "judged against the noise floor of this machine (study noise-floor of 2026-09-21" in crime.evidence
    none = found(study)["No measure of noise"]
    assert none.guilty
    assert "not screened for noise" in none.evidence
    assert "noise-floor.toml" in none.hint
