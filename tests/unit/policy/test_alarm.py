"""Alarms as CloudWatch evaluates them: the tables of its user guide, golden series, and what changes no state."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from steelyard.policy._alarm import Alarm, AlarmSettings, WhenMissing, adjusted
from tests.unit.policy.series import points

TREATMENTS: tuple[WhenMissing, ...] = ("missing", "ignore", "breaching", "not-breaching")
SIGNS = {"X": 90.0, "0": 10.0, "-": None}
KEPT, NO_DATA = "Retain current state", "INSUFFICIENT_DATA"


def alarm(needed: int, periods: int, when_missing: WhenMissing = "missing", held: int = 0) -> Alarm:
    return Alarm("cpu", 60.0, 80.0, ">=", operator.ge, periods, needed, when_missing, held)


def series(text: str) -> list[float | None]:
    """Values of a row of the tables: X breaches, 0 does not, - is missing."""
    return [SIGNS[sign] for sign in text.split()]


@pytest.mark.parametrize(
    ("needed", "text", "states"),
    [
        (3, "0 - X - X", ("OK", "OK", "OK", "OK")),
        (3, "0 - - - -", ("OK", "OK", "OK", "OK")),
        (3, "- - - - -", (NO_DATA, KEPT, "ALARM", "OK")),
        (3, "0 X X - X", ("ALARM", "ALARM", "ALARM", "ALARM")),
        (3, "- - X - -", ("ALARM", KEPT, "ALARM", "OK")),
        (2, "0 - X - X", ("ALARM", "ALARM", "ALARM", "ALARM")),
        (2, "0 0 X 0 X", ("ALARM", "ALARM", "ALARM", "ALARM")),
        (2, "0 - X - -", ("OK", "OK", "ALARM", "OK")),
        (2, "- - - - 0", ("OK", "OK", "ALARM", "OK")),
        (2, "- - - X -", ("ALARM", KEPT, "ALARM", "OK")),
    ],
)
def test_tables_of_the_user_guide(needed: int, text: str, states: Sequence[str]) -> None:
    """ "Configuring how CloudWatch alarms treat missing data", both tables: 3 periods, an evaluation range of 5."""
    before = {"ALARM": series("X X X X X"), "OK": series("0 0 0 0 0")}
    for when_missing, state in zip(TREATMENTS, states, strict=True):
        found = {
            name: alarm(needed, 3, when_missing).is_on(points([*earlier, *series(text)], 60.0))
            for name, earlier in before.items()
        }
        kept = {"ALARM": True, "OK": False}
        assert found == (kept if state == KEPT else dict.fromkeys(kept, state == "ALARM")), (when_missing, text)


@pytest.mark.parametrize("text", ["- - - - X", "- - - X -"])
def test_no_premature_alarm(text: str) -> None:
    assert not alarm(3, 3).is_on(points(series(text), 60.0))


def states(values: Sequence[float | None], needed: int, periods: int, when_missing: WhenMissing = "missing") -> str:
    """The state after each point: A or o."""
    rule = alarm(needed, periods, when_missing)
    return "".join("A" if rule.is_on(points(values[: end + 1], 60.0)) else "o" for end in range(len(values)))


def test_three_of_five_fires_at_the_fifth() -> None:
    assert states([81, 79, 82, 70, 83], 3, 5) == "ooooA"


def test_it_needs_no_more_than_m_points_at_the_beginning() -> None:
    assert states([81, 82, 83, 10, 10, 10], 3, 5) == "ooAAAo"
    assert states([81, 82, 83], 3, 5, "breaching") == "ooA", "before the beginning nothing is missing"


@pytest.mark.parametrize(
    ("when_missing", "expected"),
    [("missing", "ooooAA"), ("breaching", "ooooAA"), ("not-breaching", "oooooA"), ("ignore", "oooooA")],
)
def test_five_of_five_with_the_third_missing(when_missing: WhenMissing, expected: str) -> None:
    """`missing` does not wait for a sixth: no point speaks against it, and the oldest is five periods old."""
    assert states(series("X X - X X X"), 5, 5, when_missing) == expected


@pytest.mark.parametrize(
    ("when_missing", "expected"),
    [("missing", "oooooA"), ("breaching", "ooooAA"), ("not-breaching", "oooooA"), ("ignore", "oooooA")],
)
def test_five_of_five_with_the_first_missing(when_missing: WhenMissing, expected: str) -> None:
    assert states(series("- X X X X X"), 5, 5, when_missing) == expected


def test_ignore_keeps_an_alarm() -> None:
    assert states(series("X X X - - - - - 0 0 0"), 3, 3, "ignore") == "ooAAAAAAooo"
    assert states(series("X X X - - - - - 0 0 0"), 3, 3, "missing") == "ooAAAAAoooo"


@pytest.mark.parametrize(("last", "fires"), [(80.0, True), (79.9, False), (None, False)])
def test_held_for_300_s_of_1_s_points(last: float | None, fires: bool) -> None:
    rule = AlarmSettings(period_s=1, held_seconds=300).alarm(80.0)
    values = [80.0] * 299
    assert not rule.is_on(points(values, 1.0))
    assert rule.is_on(points([*values, last], 1.0)) == fires


def test_held_is_not_five_means_of_a_minute() -> None:
    """A second below ends the time; a mean of a minute does not show it."""
    seconds = [90.0] * 310
    seconds[150] = 70.0
    minutes = [sum(seconds[begin : begin + 60]) / 60 for begin in range(0, 300, 60)]
    assert not AlarmSettings(period_s=1, held_seconds=300).alarm(80.0).is_on(points(seconds, 1.0))
    assert AlarmSettings(period_s=60, evaluation_periods=5).alarm(80.0).is_on(points(minutes, 60.0))


@pytest.mark.parametrize(
    ("when_missing", "fires"), [("missing", False), ("not-breaching", False), ("breaching", True), ("ignore", False)]
)
def test_held_with_a_gap(when_missing: WhenMissing, fires: bool) -> None:
    rule = alarm(1, 1, when_missing, held=4)
    assert rule.is_on(points(series("X X - X"), 60.0)) == fires
    assert rule.is_on(points(series("X X - X X"), 60.0)) == (fires or when_missing == "ignore")


@pytest.mark.parametrize(
    ("operator_name", "fires"),
    [
        ("greater-than-or-equal-to-threshold", [False, True, True]),
        ("greater-than-threshold", [False, False, True]),
        ("less-than-or-equal-to-threshold", [True, True, False]),
        ("less-than-threshold", [True, False, False]),
    ],
)
def test_operators(operator_name: str, fires: list[bool]) -> None:
    rule = AlarmSettings.model_validate({"comparison_operator": operator_name, "evaluation_periods": 1}).alarm(80.0)
    assert [rule.is_on(points([value], 60.0)) for value in (79.9, 80.0, 80.1)] == fires


def test_it_says_why() -> None:
    assert alarm(3, 5).reason(points([81, 79.5, None], 60.0)) == "cpu >= 80 in 3 of 5 periods of 60 s, last 79.5"
    assert alarm(1, 1, held=5).reason(points([None], 60.0)) == "cpu >= 80 for 300 s on end, no reading"


values = st.lists(st.sampled_from([10.0, 79.9, 80.0, 90.0, None]), max_size=14)


@given(values, st.integers(1, 5), st.integers(0, 4), st.sampled_from(TREATMENTS), st.integers(0, 4))
def test_more_of_the_same_side_changes_no_state(
    seen: list[float | None], needed: int, more: int, when_missing: WhenMissing, held: int
) -> None:
    """But for `missing`: CloudWatch takes back an alarm that rested on few points, see `test_no_premature_alarm`."""
    assume(when_missing != "missing" or held or None not in seen)
    rule = alarm(needed, needed + more, when_missing, held)
    on = rule.is_on(points(seen, 60.0))
    same = 80.0 if on else 79.9
    assert rule.is_on(points([*seen, same], 60.0)) == on


@given(st.lists(st.sampled_from([10.0, 90.0]), max_size=14), st.integers(1, 5), st.integers(0, 4))
def test_without_gaps_it_is_m_of_n(seen: list[float], needed: int, more: int) -> None:
    expected = sum(value >= 80 for value in seen[-(needed + more) :]) >= needed
    for when_missing in TREATMENTS:
        assert alarm(needed, needed + more, when_missing).is_on(points(seen, 60.0)) == expected


@pytest.mark.parametrize(
    ("nodes", "percent", "least", "size"),
    [(3, 50, 1, 4), (3, 10, 1, 4), (10, 127, 1, 22), (11, 30, 1, 14), (14, -10, 1, 13), (13, -30, 1, 10),
     (3, -10, 1, 2), (4, 25, 2, 6), (4, -25, 2, 2), (10, 100, 1, 20), (10, 0, 1, 10), (10, 29, 1, 12)],
)  # fmt: skip
def test_percentages_are_rounded_as_aws_does(nodes: int, percent: float, least: int, size: int) -> None:
    """Examples of "Step and simple scaling policies" (EC2 Auto Scaling User Guide) among them."""
    assert adjusted(nodes, "percent-change-in-capacity", percent, least) == size


def test_other_adjustments() -> None:
    assert adjusted(3, "change-in-capacity", 5) == 8
    assert adjusted(3, "exact-capacity", 5) == 5
