"""One trial's numbers again: phases apart, capacity only of the attempt that measured it, foreign engines."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from steelyard.judging.scaling_measures import scaling_measures
from steelyard.judging.trial_responses import joined, responses
from steelyard.lab.capacity import capacity_of
from steelyard.model.load import Load
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.study import Limits
from steelyard.model.trial import ClockStep, TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.store import layout
from steelyard.verify import journal_and_plan, recompute
from steelyard.verify.checklist import Book
from steelyard.wire.record import Done, Interval
from tests.unit.report import elastic, growing
from tests.unit.verify import made

PHASES = [
    {"name": "low", "schedule": "constant", "capacity_fraction": 0.3, "duration_s": 2.0},
    {"name": "high", "schedule": "constant", "capacity_fraction": 0.6, "duration_s": 2.0},
]


def rows(intervals: list[Interval]) -> list[tuple]:
    return [
        (
            "l1",
            one.phase,
            one.t_s,
            one.seconds,
            counts.operation,
            counts.outcome,
            counts.measure,
            *bucket,
        )
        for one in intervals
        for counts in one.counts
        for bucket in counts.buckets
    ]


def phase(name: str, seed: int) -> tuple[list[Interval], list[Done]]:
    intervals, dones = made.engine_records(seed, 1.0)
    return [replace(one, phase=name) for one in intervals], [replace(one, phase=name) for one in dones]


@pytest.fixture
def trial() -> tuple[TrialRecord, pl.DataFrame]:
    low, high, capacity = phase("low", 1), phase("high", 2), phase("capacity", 3)
    load = Load.model_validate({"threads": 16, "phases": PHASES})
    measured = [*low[0], *high[0]]
    record = TrialRecord(
        id="abc-s1-t1", study="made", treatment={}, hard=(), settings={"load": load.model_dump(mode="json")}, block=1,
        planned_start="b1", start="b1", start_replicate=1, replicate=1, position=0, order_in_start=1, seed=1,
        begun_s=made.BEGUN_S, ended_s=made.BEGUN_S + 10, verdict=Verdict(outcome="valid"),
        responses=responses(measured, [*joined(("l1", end) for end in (*low[1], *high[1])).values()]),
        phase_responses={"low": responses(*low), "high": responses(*high)},
        capacity=capacity_of(load, *capacity, "abc-s1-t1", made.BEGUN_S + 1, Limits()),
    )  # fmt: skip
    schema = {"node": pl.String, **layout.INTERVAL_SCHEMA}
    return record, pl.DataFrame(rows([*measured, *capacity[0]]), schema=schema, orient="row")


def found(record: TrialRecord, intervals: pl.DataFrame) -> list[str]:
    book = Book()
    recompute.trial(record, intervals, "trial.json", book)
    journal_and_plan.capacities({(record.id, record.attempt): (record, "trial.json")}, book)
    return [one.what for one in book.findings]


def test_phases_and_capacity_are_recomputed(trial: tuple[TrialRecord, pl.DataFrame]) -> None:
    assert found(*trial) == []


def test_an_edited_phase(trial: tuple[TrialRecord, pl.DataFrame]) -> None:
    record, intervals = trial
    phases = {**record.phase_responses, "high": record.phase_responses["high"].model_copy(update={"operations": 9})}
    told = found(record.model_copy(update={"phase_responses": phases}), intervals)
    assert "phase_responses high: operations" in told
    assert not any("low" in one for one in told)


def test_an_edited_capacity(trial: tuple[TrialRecord, pl.DataFrame]) -> None:
    record, intervals = trial
    assert record.capacity is not None
    changed = record.capacity.model_copy(update={"rate_per_s": 1.0})
    assert found(record.model_copy(update={"capacity": changed}), intervals) == [
        "capacity: rate_per_s, operations over seconds"
    ]


def test_a_later_attempt_has_the_capacity_of_the_first(trial: tuple[TrialRecord, pl.DataFrame]) -> None:
    record, intervals = trial
    later = record.model_copy(update={"attempt": 2, "begun_s": made.BEGUN_S + 100, "ended_s": made.BEGUN_S + 110})
    book = Book()
    recompute.trial(later, intervals.filter(pl.col("phase") != "capacity"), "2", book)
    both = {(record.id, 1): (record, "1"), (later.id, 2): (later, "2")}
    journal_and_plan.capacities(both, book)
    assert book.findings == []
    assert book.made["capacity"] == 1


def test_a_foreign_engine_counts_for_itself(trial: tuple[TrialRecord, pl.DataFrame]) -> None:
    record, intervals = trial
    settings = {"load": {**record.settings.root["load"], "engine": "latte"}}
    counted = record.responses.operations + 2
    rate = counted / (record.responses.execution_time_ms or 1) * 1000
    more = record.responses.model_copy(update={"operations": counted, "throughput_per_s": rate})
    assert (
        found(
            record.model_copy(update={"settings": TrialSettings.model_validate(settings), "responses": more}), intervals
        )
        == []
    )


def test_a_failed_trial_without_responses_is_not_recomputed(trial: tuple[TrialRecord, pl.DataFrame]) -> None:
    record, intervals = trial
    fault = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.SYSTEM_FAULT, detail="killed"),))
    empty = record.model_copy(
        update={"verdict": fault, "responses": responses([], []), "phase_responses": {}, "capacity": None}
    )
    assert found(empty, intervals) == []
    claimed = empty.model_copy(update={"verdict": Verdict(outcome="valid")})
    assert found(claimed, intervals) == ["a valid trial without responses"]


def test_a_clock_that_was_set_is_judged_again(trial: tuple[TrialRecord, pl.DataFrame]) -> None:
    record, intervals = trial
    silent = record.model_copy(update={"clock_step": ClockStep(moved_s=-3600.0, seconds=20.0)})
    assert found(silent, intervals) == ["reasons that the store gives"]
    detail = "it was set back by 3600.000 s within 20.0 s"
    reason = Reason(kind=ReasonKind.CLOCK_STEP, measured=3599.99, threshold=0.1, unit="s", detail=detail)
    judged = silent.model_copy(update={"verdict": Verdict(outcome="invalid", reasons=(reason,))})
    assert found(judged, intervals) == []


def test_what_a_link_program_counted_is_judged_again(trial: tuple[TrialRecord, pl.DataFrame]) -> None:
    record, intervals = trial
    moved = MovedFrames(
        seconds=10.0, frames=900, delivered=900, dropped=0, lost=0, unread=0, late_ms_mean=2.0, late_ms_max=9.0,
        stalled_s=0.05, cpu_s=1.0,
    )  # fmt: skip
    silent = record.model_copy(update={"moved_frames": moved})
    assert found(silent, intervals) == ["reasons that the store gives"]
    detail = "the latest of 900 frames came 9 ms after its time"
    reason = Reason(kind=ReasonKind.LINK_LATE, measured=2.0, threshold=0.25, unit="ms", detail=detail)
    judged = silent.model_copy(update={"verdict": Verdict(outcome="invalid", reasons=(reason,))})
    assert found(judged, intervals) == []


def test_measures_of_activities_are_recomputed_from_the_intervals_of_all_load_nodes() -> None:
    grown = next(one for one in growing.records(elastic.STUDY) if one.activities)
    grown = grown.model_copy(update={"activities": (growing.growth(grown.begun_s + 10, 0.3),)})
    seconds = growing.intervals(grown.begun_s, *grown.activities)
    late = [replace(one, t_s=one.t_s + 0.25) for one in seconds]
    sealed = grown.model_copy(update={"measures": scaling_measures(grown, [*seconds, *late])})
    assert set(sealed.measures) == {
        "scale_out_decision_s", "scale_out_s", "time_to_stability_s", "lost_operations", "excess_response_ms_s",
    }  # fmt: skip
    schema = {"node": pl.String, **layout.INTERVAL_SCHEMA}
    intervals = pl.DataFrame(rows([*late, *seconds]), schema=schema, orient="row")

    def differing(record: TrialRecord) -> list[str]:
        return [what for what in found(record, intervals) if what.startswith("measures: ")]

    assert differing(sealed) == []
    for name, value in sealed.measures.items():
        edited = sealed.model_copy(update={"measures": {**sealed.measures, name: value + 1e-3}})
        assert differing(edited) == [f"measures: {name}"]
    unfinished = sealed.model_copy(update={"activities": ()})
    assert "measures: scale_out_s" in differing(unfinished)
    book = Book()
    recompute.measures(
        sealed, pl.DataFrame(schema={"node": pl.String, **layout.SAMPLE_SCHEMA}), {}, (), "trial.json", book
    )
    assert book.findings == [], "they follow from no samples"
