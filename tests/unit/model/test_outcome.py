"""Outcomes: whoever counts answers and errors counts the same ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.dropin.stress.run.interval_stats import Counting, span_of
from steelyard.dropin.ycsb.export_options import Display
from steelyard.dropin.ycsb.measures import measures
from steelyard.judging.trial_responses import responses
from steelyard.model.outcome import Outcome, is_error
from steelyard.reading import time_courses
from steelyard.store import Store, StoreWriter
from tests.unit.judging.test_attempts import record
from tests.unit.lab.fakes import plan_of, study
from tests.unit.wire import made

SECONDS = 6
BUCKET = (5_000_000, 5_000_999, 10)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_everybody_counts_the_same_outcomes_as_errors(outcome: Outcome, tmp_path: Path) -> None:
    interval = made.interval(made.counts([BUCKET], outcome=outcome.value))
    error = is_error(outcome)

    # The laboratory, and a tool's own tables.
    assert (responses([interval], [made.done()]).response_ms_mean is None) is error
    assert (interval.tables.histogram("response").n == 0) is error
    assert (interval.tables.errors("read").n == 10) is error

    # The drop-ins. cassandra-stress also fails a read that finds no row, where it expects one.
    statuses = measures(interval.tables, Display())["READ"].statuses
    assert ("ERROR" in statuses) is error
    assert statuses.get("NOT_FOUND", 0) == (10 if outcome is Outcome.NOT_FOUND else 0)
    assert (span_of(interval, "read", Counting(may_be_empty=True)).errors == 10) is error
    assert (span_of(interval, "read", Counting()).errors == 10) is (error or outcome is Outcome.NOT_FOUND)

    # The store and the report.
    sealed = record(plan_of(study()).trials[0])
    with StoreWriter(tmp_path, "fake") as writer:
        writer.intend(study(), "", plan_of(study()))
        draft = writer.draft(sealed.id, 1)
        seconds = [made.interval(*interval.counts, t_s=100.0 + second) for second in range(SECONDS)]
        draft.intervals("l1", seconds)
        sealed = draft.seal(sealed)
        store = Store(writer.folder)
    answered = store.answered([sealed], ("measure",)).collect()
    assert answered["count"].sum() == (0 if error else 10 * SECONDS)
    timeline = time_courses.timeline(sealed, store.intervals(sealed))
    if timeline is None:
        assert error, "a trial without an answer has no course"
    else:
        assert sum(window.failed for window in timeline.windows) == (10 * SECONDS if error else 0)
        assert sum(window.operations for window in timeline.windows) == (0 if error else 10 * SECONDS)
