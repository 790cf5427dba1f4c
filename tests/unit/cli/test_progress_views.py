"""What a person sees of a study in progress: the board folds events, both views draw it."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from steelyard.analysis.cells import cell_values
from steelyard.cli.progress_views import LiveView, PlainView, spark
from steelyard.cli.terminal.live_cells import LiveCells
from steelyard.events.kept import QuietAwaited, QuietReached, SessionBegan, StartBegan, StoppingJudged, TrialSealed
from steelyard.events.shown import (
    PhaseEntered,
    Sampled,
    Sized,
    StillBusy,
    Ticked,
    TimeLeft,
    TrialBegan,
    Trouble,
    Waiting,
)
from steelyard.judging.stopping import Decision, Narrowing, Rule, decide, rule_of
from steelyard.model.sample import Sample
from steelyard.model.scaling import Desired
from steelyard.model.trial import Phase, Responses
from steelyard.model.verdict_reasons import Reason, ReasonKind
from steelyard.progress.event_words import decision_line
from steelyard.progress.publisher import Publisher
from steelyard.wire.record import Interval
from tests.unit.judging.test_attempts import record
from tests.unit.judging.test_stopping import sealed, spread
from tests.unit.judging.test_stopping import study as sequential_study
from tests.unit.lab.fakes import plan_of, records_of, study
from tests.unit.wire.orders import order

PLAN = plan_of(study())


class Clock:
    """A clock that goes when told."""

    def __init__(self) -> None:
        self.now_s = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now_s


def events() -> list[Any]:
    planned = PLAN.trials[0]
    records = records_of(order(stop={"operations": 100}))
    interval = next(record for record in records if isinstance(record, Interval))
    sealed = record(planned).model_copy(
        update={"responses": Responses(execution_time_ms=4100.0, operations=100, throughput_per_s=24.0)}
    )
    return [
        SessionBegan(study="fake", total=8, todo=8, blocks=2, store="store/fake"),
        TimeLeft(600.0, 500.0, 700.0),
        StartBegan(start="b01", block=1, blocks=2, treatment={"nodes": 3}, trials=4),
        PhaseEntered(Phase.DEPLOY, 300.0),
        Waiting("1 of 3 nodes ready; n2 joins"),
        TrialBegan(planned, 1, 1, 8),
        PhaseEntered(Phase.MEASURE, 3600.0),
        Ticked("l1", interval),
        Sampled([Sample(1.0, "n1", "node_cpu_user_cores", 0.5), Sample(1.0, "n1", "node_cpu_system_cores", 0.25)]),
        TrialSealed.of_record(sealed, "", 1, 8),
        Trouble("trial x voided", "queued again"),
    ]


def test_a_phase_that_is_entered_again_is_said_once() -> None:
    lines: list[str] = []
    publisher = Publisher(clock := Clock(), PlainView(lines.append, clock))
    filled = (Phase.DEPLOY, Phase.LEASE, Phase.DEPLOY, Phase.POPULATE)
    restarted = (Phase.WIPE, Phase.DEPLOY, Phase.POPULATE)
    for phases in ((*filled, Phase.DEPLOY), (*filled, *restarted, Phase.DEPLOY)):
        publisher.tell(StartBegan(start="b01", block=1, blocks=2, treatment={"nodes": 3}, trials=4))
        for phase in phases:
            publisher.tell(PhaseEntered(phase, 300.0))
    said = [line[9:].strip() for line in lines if "block" not in line]
    again = "deploy: starting the cluster again on the filled data"
    assert said == ["deploy", "populate", "deploy", "populate", again, "populate"]


def test_reminders_grow_rarer_and_the_expected_finish_is_said_once_a_minute() -> None:
    lines: list[str] = []
    clock = Clock()
    publisher = Publisher(clock, view := PlainView(lines.append, clock))
    publisher.tell(TimeLeft(600.0, 500.0, 700.0))
    publisher.tell(PhaseEntered(Phase.SERVER_WARM_UP, 400.0, 60.0))
    publisher.tell(Waiting("ycsb-i, high concurrency"))
    begun_s = clock.now_s
    spoke_s = []
    for _ in range(110):
        clock.now_s += 1
        before = len(lines)
        view.beat()
        if len(lines) > before:
            spoke_s.append(clock.now_s - begun_s)
    assert spoke_s == [5, 15, 35, 65, 95]
    assert lines[0].endswith("server-warm-up, at most 60 s")
    assert lines[1].endswith("still server-warm-up 5 s of 60 s: ycsb-i, high concurrency")
    lines.clear()
    sealed_record = record(PLAN.trials[0])
    for _ in range(4):
        publisher.tell(TrialSealed.of_record(sealed_record, "", 1, 8))
        clock.now_s += 25
    assert ["expected finish" in line for line in lines] == [True, False, False, True]


def test_plain_lines_say_what_matters_and_are_never_silent_for_long() -> None:
    lines: list[str] = []
    clock = Clock()
    publisher = Publisher(clock, view := PlainView(lines.append, clock))
    for event in events():
        publisher.tell(event)
    text = "\n".join(line[9:] for line in lines)
    assert "fake: 8 of 8 trials to do, in store/fake" in text
    assert "block 1/2: starting 3 nodes for 4 trials" in text
    assert "valid: 4.100 s, 24 op/s" in text
    assert "! trial x voided: queued again" in text
    before = len(lines)
    publisher.tell(Waiting("quiet: 2 compactions"))
    assert len(lines) == before
    clock.now_s += 6
    publisher.tell(Waiting("quiet: 2 compactions"))
    assert "still measure 6 s (timeout 60 min): quiet: 2 compactions" in lines[-1]
    clock.now_s += 10
    view.beat()
    assert len(lines) == before + 2, "also when nothing happens at all"


@pytest.mark.parametrize(
    ("gone_s", "words"),
    [(6, "still measure 6 s of 5 s"), (11, "still measure 11 s (timeout 60 min)")],
    ids=["soon done", "late"],
)
def test_a_time_limit_is_shown_when_a_phase_is_late(gone_s: float, words: str) -> None:
    lines: list[str] = []
    publisher = Publisher(clock := Clock(), view := PlainView(lines.append, clock))
    publisher.tell(PhaseEntered(Phase.MEASURE, 3600.0, 5.0))
    clock.now_s += gone_s
    view.beat()
    assert lines[-1].endswith(words)


def test_a_start_of_a_study_without_factors_names_its_nodes_and_searches() -> None:
    lines: list[str] = []
    view = PlainView(lines.append, clock := Clock())
    for searches in (True, False):
        began = StartBegan(start="b01", block=1, blocks=3, treatment={}, trials=1, nodes=2, searches=searches)
        Publisher(clock, view).tell(began)
    assert [line.partition(": ")[2] for line in lines] == [
        "starting 2 nodes for 1 search", "starting 2 nodes for 1 trial",
    ]  # fmt: skip


def test_the_live_screen_shows_phase_load_nodes_cells_and_troubles() -> None:
    out = Console(file=io.StringIO(), width=140, force_terminal=False)
    publisher = Publisher(Clock(), view := LiveView(out, LiveCells(study()), Clock()))
    for event in events()[:-2]:
        publisher.tell(event)
    out.print(view)
    for event in events()[-2:]:
        publisher.tell(event)
    out.print(view)
    text = out.file.getvalue()  # type: ignore[attr-defined]
    for expected in (
        "trial 1/8",
        "ETA about",
        "measure",
        "op/s",
        "n1 0.75 cores",
        "4.10 s",
        "geometric mean execution time",
        "trial x voided",
    ):
        assert expected in text


def test_both_views_show_actual_and_desired_size_under_a_policy() -> None:
    out = Console(file=io.StringIO(), width=140, force_terminal=False)
    clock, lines = Clock(), list[str]()
    live, plain = LiveView(out, LiveCells(study()), clock), PlainView(lines.append, clock)
    publisher = Publisher(clock, live, plain)
    for event in events()[:-2]:
        publisher.tell(event)
    publisher.tell(Sized(3, Desired(40.0, 5, "cpu >= 80 for 20 s on end, last 83"), "cpu", 90.0, "threshold 80"))
    publisher.tell(Waiting("n4 joining for 2 s: streaming"))
    clock.now_s += 6
    plain.beat()
    out.print(live)
    size = "3 of 5 desired: cpu >= 80 for 20 s on end, last 83; now cpu 90, threshold 80"
    assert lines[-1].endswith(f"n4 joining for 2 s: streaming; nodes {size}")
    assert f" nodes  {size}" in out.file.getvalue()  # type: ignore[attr-defined]


def test_the_live_screen_fits_eighty_columns_and_shows_the_main_response() -> None:
    out = Console(file=io.StringIO(), width=80, force_terminal=False)
    clock = Clock()
    cells = LiveCells(study(analysis={"response": "throughput_per_s"}))
    publisher = Publisher(clock, view := LiveView(out, cells, clock))
    first, *others = events()
    publisher.tell(first.model_copy(update={"response": "throughput_per_s", "at_most": True}))
    for event in others[:-2]:
        publisher.tell(event)
    clock.now_s += 3723
    # As wide as they come: one more character than the screen has would be a second line.
    for screen_part in view.lines():
        assert all(len(line) <= 80 for line in screen_part.plain.splitlines())
    for event in others[-2:]:
        publisher.tell(event)
    publisher.tell(Trouble("trial x voided: " + "many words " * 40, "queued again"))
    out.print(view)
    lines = [line.rstrip() for line in out.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert all(len(line) <= 80 for line in lines)
    assert any("geometric mean" in line for line in lines)
    assert any("24.0 operations/s" in line for line in lines)
    assert any("elapsed 1:02:03, ETA " in line for line in lines)
    assert sum("many words" in line for line in lines) == 3


def test_the_cells_show_the_estimator_of_the_answer_over_this_session_and_earlier_ones() -> None:
    asked = study(analysis={"warm_up_trials": 1}, design={"starts": 2, "trials": 3, "seed": 3})
    of_one_node = [trial for trial in plan_of(asked).trials if trial.treatment == {"nodes": 1}]
    values_ms = {1: [9000.0, 1000.0, 1100.0], 2: [9000.0, 4000.0, 4400.0]}
    records = [
        record(planned).model_copy(
            update={
                "order_in_start": order,
                "responses": Responses(execution_time_ms=value, operations=100),
            }
        )
        for start, values in values_ms.items()
        for order, (planned, value) in enumerate(
            zip([trial for trial in of_one_node if trial.start_replicate == start], values, strict=True), start=1
        )
    ]
    out = Console(file=io.StringIO(), width=100, force_terminal=False)
    publisher = Publisher(Clock(), view := LiveView(out, LiveCells(asked, records[:3]), Clock()))
    for place, sealed_record in enumerate(records[3:], start=4):
        publisher.tell(TrialSealed.of_record(sealed_record, "", place, 6))
    out.print(view)
    (answered,) = cell_values(records, asked)
    assert answered.value_text == "2.10 s"
    (shown,) = [line for line in out.file.getvalue().splitlines() if line.startswith(" 1 node")]  # type: ignore[attr-defined]
    assert shown.split() == ["1", "node", "4", "2", "2.10", "s", "1.00", "s", "to", "4.40", "s"]


def test_a_line_of_bars() -> None:
    assert spark([0.0, 1.0, 2.0]) == "▁▅█"
    assert spark([9.0] * 100) == "█" * 24
    assert spark([]) == ""


def test_the_load_of_several_load_nodes_is_added_up() -> None:
    """As the page in the browser does, from the same state."""
    out = Console(file=io.StringIO(), width=140, force_terminal=False)
    publisher = Publisher(Clock(), view := LiveView(out, LiveCells(study()), Clock()))
    records = records_of(order(stop={"operations": 100}))
    interval = next(record for record in records if isinstance(record, Interval))
    for t in range(3):
        for node, rate, p99 in (("l1", 100.0, 5.0), ("l2", 300.0, 40.0)):
            summary = replace(interval.summary, rate_per_s=rate, response_ms_p99=p99)
            publisher.tell(Ticked(node, replace(interval, t_s=50.0 + t, summary=summary)))
    out.print(view)
    screen = out.file.getvalue()  # type: ignore[attr-defined]
    assert "400 op/s" in screen
    assert "p99    40.0 ms" in screen


def test_the_stopping_rule_is_said_before_the_first_block_and_after_each() -> None:
    asked = sequential_study(until={"hours": 2})
    plan = plan_of(asked)
    rule = rule_of(asked)
    assert rule is not None
    lines: list[str] = []
    out = Console(file=io.StringIO(), width=160, force_terminal=False)
    publisher = Publisher(Clock(), PlainView(lines.append, Clock()), live := LiveView(out, LiveCells(study()), Clock()))
    for blocks in (0, 3, 7):
        decision = decide(plan, sealed(plan, spread(0.4), blocks), rule)
        publisher.tell(SessionBegan(study="fake", total=24, todo=12, blocks=12, store="store/fake", at_most=True))
        publisher.tell(StoppingJudged(decision=decision))
    text = "\n".join(line[9:] for line in lines)
    assert "fake: 12 of at most 24 trials to do" in text
    assert "until half of each 95% interval is within 5% of its mean: from 6 to 12 starts, 2 h at most" in text
    assert "block 3 is whole: " in text
    assert "too few starts (n 3)" in text
    assert "narrowing (n 7)" in text
    assert "continues after 7 of at most 12 blocks" in text
    out.print(live)
    screen = out.file.getvalue()  # type: ignore[attr-defined]
    assert "until ±5%" in screen
    assert "%, narrowing" in screen


def test_an_interval_without_width_is_the_narrowest_of_a_decision() -> None:
    rule = Rule(
        response="execution_time_ms", width_percent=7, least_starts=6, confidence=0.95, warm_up_trials=0, attempts=3
    )
    cells = tuple(
        Narrowing(treatment={"nodes": nodes}, n=6, mean=1.0, half_width_percent=half, state="narrow enough")
        for nodes, half in enumerate((0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0), start=1)
    )
    decision = Decision(rule=rule, go_on=False, why="narrow", blocks=6, cap=9, needed=6, hours=1.0, cells=cells)
    assert "7 nodes ±6.00%" in decision_line(decision)
    assert "1 node ±0.00%" not in decision_line(decision)


def busy(waited_s: float) -> QuietAwaited | StillBusy:
    detail = "other programs on this machine kept 1.60 of 2 cores busy, among them java 1.50"
    reason = Reason(kind=ReasonKind.STEAL, measured=0.8, threshold=0.2, unit="of all CPU time", detail=detail)
    if waited_s:
        return StillBusy([reason], waited_s, 1800.0)
    return QuietAwaited(reasons=(reason,), wait_s=1800.0)


BUSY_WORDS = (
    "waiting for a quiet machine", "30 min (limits.quiet_wait_s)", "background load: 80% of all CPU time, limit 20%",
    "limits.background_cpu_fraction", "java 1.50",
)  # fmt: skip


def test_plain_lines_say_who_is_busy_and_do_not_flood() -> None:
    clock, lines = Clock(), list[str]()
    view = PlainView(lines.append, clock)
    publisher = Publisher(clock, view)
    for second in range(61):
        publisher.tell(busy(float(second)))
        view.beat()
        clock.now_s += 1
    publisher.tell(QuietReached(waited_s=61.0))
    first, *still, last = lines
    assert all(words in first for words in BUSY_WORDS), first
    assert [line.split("machine, ")[1].split(" (")[0] for line in still] == [
        "30 s of at most 30 min",
        "60 s of at most 30 min",
    ]
    assert last.endswith("the machine is quiet: waited 61 s")


def test_the_screen_says_who_is_busy() -> None:
    clock = Clock()
    console = Console(file=io.StringIO(), width=400, force_terminal=True, color_system=None)
    view = LiveView(console, LiveCells(study()), clock)
    publisher = Publisher(clock, view)
    publisher.tell(SessionBegan(study="fake", total=8, todo=8, blocks=2, store="store/fake"))
    publisher.tell(busy(0.0))
    _, now, _ = view.lines()
    assert all(words in now.plain for words in BUSY_WORDS), now.plain
    publisher.tell(QuietReached(waited_s=5.0))
    assert "quiet" not in view.lines()[1].plain
