"""Responses around activities: planted windows are found, and intervals cover what was planted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.frame import frame_of
from steelyard.analysis.results import Results
from steelyard.analysis.statistic import AroundActivity, Context, Within
from steelyard.analysis.statistics.activity_response import ActivityResponse, activity_responses
from steelyard.analysis.statistics.time_to_event import EventTime
from steelyard.judging.activity_windows import ActivityWindow
from steelyard.judging.membership import Span
from steelyard.model.scaling import Desired, Point, Scaling
from steelyard.model.trial import TrialRecord
from steelyard.plan import expand
from steelyard.reading.reading import read
from steelyard.store.write import StoreWriter
from steelyard.study.read import read_text
from steelyard.wire.record import Interval
from tests.unit.report import growing, synthetic
from tests.unit.wire import made

STUDY = growing.STUDY.replace("[factors]", '[analysis]\nresponse = "response_ms_p99"\n[factors]')
PLANTED_MS = {"before": 10.0, "during": 20.0, "streaming": 120.0, "after": 12.0}
DRIFT = 1.5
"""By which response times of every cluster rise after 20 s."""


def window_of(record: TrialRecord, second: int) -> str:
    """The window in which a second lies, for the two nodes of `growing.growth`: a second at an edge counts as calm."""
    if not record.activities or second < 20:
        return "before"
    slower = 1 + 0.1 * record.block
    for turn_s in (20.0, 20.0 + slower * 10.1):
        if turn_s + slower * 5.7 <= second and second + 1 <= turn_s + slower * 9.2:
            return "streaming"
    return "during" if second + 1 <= 20.0 + slower * 20.2 else "after"


def planted(record: TrialRecord) -> Iterator[Interval]:
    """A second each with 1,000 operations: 980 at the planted time, 20 ten times as long; while data are streamed 5
    fail."""
    for second in range(growing.SECONDS):
        window = window_of(record, second)
        by = (1 + record.block / 20) * (DRIFT if second >= 20 else 1.0)
        value_ns = round(by * 1e6 * PLANTED_MS[window])
        tables = [
            made.counts([(value_ns, value_ns, 980), (10 * value_ns, 10 * value_ns, 20)], measure=measure)
            for measure in ("response", "service", "lag")
        ]
        if window == "streaming":
            tables.append(made.counts([(value_ns, value_ns, 5)], outcome="timeout"))
        yield made.interval(*tables, t_s=record.begun_s + second, sent=1000, done=1000)


def results(
    root: Path, text: str = STUDY, of_trial: Callable[[TrialRecord], Any] = planted, scaling: Scaling | None = None
) -> Results:
    """`scaling`: what the policy of trials with activities said, in seconds of their measurement."""
    study = read_text(text)
    with StoreWriter(root, study.study.name) as writer:
        writer.intend(study, text, expand(study))
        for made_up in growing.records(text):
            said = scaling.model_copy(update={"begun_s": made_up.begun_s}) if scaling and made_up.activities else None
            record = made_up.model_copy(update={"scaling": said})
            draft = writer.draft(record.id, record.attempt)
            draft.intervals("l1", list(of_trial(record)))
            draft.seal(record)
        folder = writer.folder
    return read(folder).results


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return results(tmp_path_factory.mktemp("around"))


def rows(found: Results, response: str) -> dict[str, ActivityResponse]:
    return {row.window: row for row in found.of(ActivityResponse) if row.response == response}


def test_each_window_has_what_was_planted_in_it(found: Results) -> None:
    centre = np.exp(np.mean(np.log([1 + block / 20 for block in (1, 2, 3, 4)])))
    for response, times in (("response_ms_p50", 1), ("response_ms_p99", 10), ("response_ms_mean", 1.18)):
        by_window = rows(found, response)
        assert [*by_window] == ["before", "during", "streaming", "after", "from decision"]
        assert {(row.activity, row.kind, row.n) for row in by_window.values()} == {(1, "scale-out", 4)}
        before, streaming = by_window["before"], by_window["streaming"]
        assert before.value is not None
        assert before.value.value == pytest.approx(10.0 * times * centre)
        assert (before.ratio, before.against_control) == (None, None)
        assert streaming.ratio is not None
        assert streaming.ratio.value == pytest.approx(12.0 * DRIFT)
        assert streaming.against_control is not None
        assert streaming.against_control.value == pytest.approx(12.0), "the drift of every cluster is not in it"
        after = by_window["after"].against_control
        assert after is not None
        assert after.value == pytest.approx(1.2)


ALARM = growing.STUDY.replace("times = [[20, 5]]", """max_nodes = 5
[policy.threshold]
threshold = 15
metric = "response_ms_mean"
period_s = 1
evaluation_periods = 2
""").replace('"scheduled"]', '"threshold"]')  # fmt: skip
SAID = Scaling(begun_s=0.0, points=(Point(1.0, 10.0, 1),), desired=(Desired(0.0, 3, ""), Desired(20.0, 5, "")))


def high_for_a_moment(record: TrialRecord) -> Iterator[Interval]:
    """10 ms, and 20 ms for the two seconds before the policy acts: at 20 s, in controls at 30 s, in the last never."""
    acts_s = 20 if record.activities else 30 if record.block < 4 else 1000
    for second in range(growing.SECONDS):
        value_ns = 20_000_000 if acts_s - 2 <= second < acts_s else 10_000_000
        tables = [made.counts([(value_ns, value_ns, 1000)], measure=one) for one in ("response", "service", "lag")]
        yield made.interval(*tables, t_s=record.begun_s + second, sent=1000, done=1000)


def test_the_control_is_taken_when_the_policy_would_have_acted_there(tmp_path: Path) -> None:
    """A moment that was chosen because it was high: the trial's before is high by 2 s in 20, the control's by 2 in
    30."""
    row = rows(results(tmp_path, ALARM, high_for_a_moment, SAID), "response_ms_mean")["from decision"]
    assert (row.n, row.controlled) == (4, 3), "in the last control it would not have acted"
    assert row.ratio is not None
    assert row.against_control is not None
    assert row.ratio.value == pytest.approx(10 / 11)
    assert row.against_control.value == pytest.approx((10 / 11) / (10 / (10 + 20 / 30)))


def test_lengths_are_means_over_trials_and_failures_have_no_ratio(found: Results) -> None:
    lengths = {name: row.seconds.value for name, row in rows(found, "error_percent").items()}
    assert lengths == {
        "before": pytest.approx(20.0), "during": pytest.approx(20.2 * 1.25, abs=0.01),
        "streaming": pytest.approx(7.0 * 1.25), "after": pytest.approx(40 - 20.2 * 1.25, abs=0.01),
        "from decision": pytest.approx(40.0),
    }  # fmt: skip
    shares = rows(found, "error_percent")
    assert {row.ratio for row in shares.values()} == {None}
    assert shares["streaming"].value is not None
    assert shares["streaming"].value.value == pytest.approx(100 * 5 / 1005)
    assert shares["before"].value is not None
    assert (shares["before"].value.value, shares["before"].value.high) == (0.0, None)
    throughput = rows(found, "throughput_per_s")["during"]
    assert throughput.value is not None
    assert throughput.value.value == pytest.approx(1000.0)


def test_the_answer_says_it_with_the_numbers_of_the_tables(found: Results) -> None:
    assert found.answer[-2] == (
        "While nodes joined (25.2 s): 99th percentile of response time 3.0 times as high against before, +100% against "
        "the control; while data were streamed 12 times as high against the control; afterwards +20% against the "
        "control. "
        "The mean response time of a second was not back in the range of before within the trial (in 4 of 4 trials)."
    )
    by_window = {
        name: (row.ratio.value, row.against_control.value)
        for name, row in rows(found, "response_ms_p99").items()
        if row.ratio and row.against_control
    }
    assert by_window == {
        "during": pytest.approx((3.0, 2.0)), "streaming": pytest.approx((18.0, 12.0)),
        "after": pytest.approx((1.8, 1.2)), "from decision": pytest.approx((3.0, 2.0)),
    }  # fmt: skip
    (back,) = found.of(EventTime)
    assert (back.n, back.lacking, back.never_left, back.median_s) == (4, 4, 0, None)


def test_windows_too_short_have_no_number_and_few_operations_no_percentile(tmp_path: Path) -> None:
    def few(record: TrialRecord) -> Iterator[Interval]:
        for second in range(growing.SECONDS):
            buckets = [(1_000_000, 1_000_000, 49), (9_000_000, 9_000_000, 1)]
            yield made.interval(made.counts(buckets), t_s=record.begun_s + second, sent=50, done=50)

    found = results(tmp_path, of_trial=few)
    p99, p50 = rows(found, "response_ms_p99"), rows(found, "response_ms_p50")
    assert (p99["before"].n, p99["streaming"].n, p99["streaming"].value) == (4, 0, None), "20 s of 50 are 1,000"
    assert (p50["streaming"].n, p99["streaming"].ratio) == (4, None)
    (back,) = found.of(EventTime)
    assert (back.median_s, back.never_left, back.lacking) == (0.0, 4, 0)
    assert found.answer[-2].endswith("stayed in the range of before (in all of 4 trials).")


def test_how_long_it_lasted_is_a_median_in_which_what_did_not_return_is_longest(tmp_path: Path) -> None:
    """Out of the range from 25 s on: for 15 s in block 1, 5 s more in each later one, in block 4 to the end."""

    def slow(record: TrialRecord) -> Iterator[Interval]:
        until = 60 if record.block == 4 else 35 + 5 * record.block
        for second in range(growing.SECONDS):
            value_ns = (50_000_000 if 25 <= second < until and record.activities else 10_000_000) + second % 2 * 10**6
            counts = made.counts([(value_ns, value_ns, 1000)])
            yield made.interval(counts, t_s=record.begun_s + second, sent=1000, done=1000)

    found = results(tmp_path, of_trial=slow)
    (back,) = found.of(EventTime)
    assert (back.n, back.lacking, back.never_left) == (4, 1, 0)
    assert (back.event, back.median_s, back.share.value) == ("back", pytest.approx(27.5), 75.0)
    assert back.of_s == pytest.approx(30.0), "40 s are left after the desired size, the last 10 s of them too few"
    assert back.restricted_mean.value == pytest.approx((20 + 25 + 30 + 30) / 4)
    assert found.answer[-2].endswith(
        "The mean response time of a second was back in the range of before after 28 s (median; 3 of 4 trials were "
        "back within the trial)."
    )


def test_without_a_control_there_is_no_ratio_against_it(tmp_path: Path) -> None:
    alone = STUDY.replace('["none", "scheduled"]', '["scheduled"]')
    found = results(tmp_path, alone)
    assert {row.against_control for row in found.of(ActivityResponse)} == {None}
    assert all("against the control" not in one for one in found.answer)
    assert rows(found, "response_ms_p99")["after"].ratio is not None


def test_a_store_without_activities_has_no_rows(tmp_path: Path) -> None:
    found = read(synthetic.stored(tmp_path)).results
    assert (found.of(ActivityResponse), found.of(EventTime)) == ((), ())


def test_the_interval_against_the_control_covers_and_that_to_before_has_the_drift() -> None:
    """400 cells of five starts: a drift of -5% in every trial, 2% from trial to trial, no effect of the join."""
    text = growing.STUDY.replace("starts = 4", "starts = 5")
    study, records = read_text(text), growing.records(text)
    context_frame, rng = frame_of(records, study), np.random.default_rng(7)
    grown = [record for record in records if record.activities]

    def drawn() -> dict[str, float]:
        return {"response_ms_mean": float(np.exp(np.log(0.95) + rng.normal(0, 0.02)))}

    covered = alarms = 0
    for _ in range(400):
        around = [
            AroundActivity(
                record.key, ActivityWindow(1, "scale-out", 1, name, (Span(0.0, 20.0),)),
                {"response_ms_mean": 1.0} if name == "before" else drawn(),
                [{"response_ms_mean": 1.0} if name == "before" else drawn()],
            )
            for record in grown
            for name in ("before", "after")
        ]  # fmt: skip
        context = Context(context_frame, study, seed=1, records=records, within=Within(around=around))
        after = next(row for row in activity_responses(context) if row.ratio is not None)
        assert after.ratio is not None
        assert after.against_control is not None
        assert after.ratio.high is not None
        assert after.against_control.low is not None
        assert after.against_control.high is not None
        covered += after.against_control.low <= 1.0 <= after.against_control.high
        alarms += after.ratio.high < 1.0
    assert 368 <= covered <= 392
    assert alarms > 300, "the drift is in the ratio to before"
    assert analyse(records, study, seed=1).of(ActivityResponse) == ()
