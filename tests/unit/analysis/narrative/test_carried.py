"""Sentence of a search: nodes, rate, limits and interval, and what is said where no search found the rate."""

from __future__ import annotations

import pytest

from steelyard.analysis.narrative.carried import carried, limits_of, procedure, unfinished
from steelyard.analysis.treatments import Treatment
from steelyard.model.estimate import Estimate
from steelyard.model.load import Load
from steelyard.model.search import Search, SearchResult, Window
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from tests.unit.analysis import made

VALUE = Estimate(value=15_667.0, low=11_729.0, high=20_926.0, n=3, unit="operations/s", method="t")
ENDED = {
    "found": SearchResult(outcome="found", rate_per_s=15_667.0, windows=9, reason="precise"),
    "at-least": SearchResult(outcome="at-least", rate_per_s=25_000.0, windows=9, reason="the highest rate meets them"),
    "no-rate": SearchResult(outcome="no-rate", windows=3, reason="misses"),
    "not-found": SearchResult(outcome="not-found", windows=3, reason="out of windows"),
}


def load(*objective: str) -> Load:
    return Load.model_validate({"schedule": "search", "objective": objective, "threads": 64})


def searches(*outcomes: str, objective: tuple[str, ...] = ("response_ms_p99 < 20", "error_fraction <= 0.001"),
             nodes: int = 1) -> list[TrialRecord]:  # fmt: skip
    rules = load(*objective).search_rules()
    values = {"response_ms_p99": 31.4, "error_fraction": 0.0, "throughput_fraction": 1.0}
    window = Window(name="w1", rate_per_s=25, seconds=5, values=values, met=False, used=2, spread=0)
    settings = TrialSettings({"site": {"name": "local", "nodes": nodes}})
    return [
        made.record(1.0, start=start).model_copy(
            update={"search": Search(rules=rules, windows=(window,), result=ENDED[outcome]), "settings": settings}
        )
        for start, outcome in enumerate(outcomes, start=1)
    ]


def said(records: list[TrialRecord], value: Estimate | None = None, treatment: Treatment | None = None) -> str:
    found = sum(one.search is not None and one.search.result == ENDED["found"] for one in records)
    return carried(treatment or {}, records, value, found, found)


def test_a_rate_has_its_nodes_limits_and_interval() -> None:
    text = (
        "1 node carries 15,667 operations/s [11,729, 20,926] with p99 < 20 ms and errors <= 0.1% (95% interval; "
        "geometric mean of 3 trials from 3 starts)."
    )
    assert said(searches("found", "found", "found"), VALUE) == text
    assert said(searches("found", nodes=3), VALUE, {"nodes": 3}).startswith("3 nodes carry 15,667 operations/s")


def test_other_factors_come_first() -> None:
    text = said(searches("found"), VALUE, {"nodes": 1, "mix": "reads"})
    assert text.startswith("Mix reads: 1 node carries 15,667 operations/s")


def test_searches_that_found_no_rate_are_named_beside_those_that_did() -> None:
    text = said(searches("found", "at-least", "no-rate"), VALUE)
    assert "; 1 of 3 searches found only a lower bound (at least 25,000 operations/s)" in text
    assert text.endswith("; 1 of 3 searches found no rate.")


@pytest.mark.parametrize(
    ("outcomes", "text"),
    [
        (("at-least", "at-least"), "1 node carries at least 25,000 operations/s with p99 < 20 ms and errors <= 0.1%; 2 "
         "searches ended there: the highest rate meets them."),
        (("no-rate",), "1 node carries no rate with p99 < 20 ms and errors <= 0.1%: at 25 operations/s, the lowest "
         "rate tried, p99 was 31.4 ms."),
        (("not-found", "no-rate"), "It is not known which rate 1 node carries with p99 < 20 ms and errors <= 0.1%: at "
         "25 operations/s, the lowest rate tried, p99 was 31.4 ms."),
    ],
)  # fmt: skip
def test_without_a_rate_the_bounds_are_said(outcomes: tuple[str, ...], text: str) -> None:
    assert said(searches(*outcomes)) == text


def test_a_repeated_attempt_replaces_the_one_before() -> None:
    (voided,) = searches("at-least")
    again = searches("found")[0].model_copy(update={"attempt": 2})
    assert "lower bound" not in said([voided, again], VALUE)


def test_trials_without_a_search_say_nothing() -> None:
    assert carried({}, [made.record(1.0)], VALUE, 1, 1) == ""


def test_searches_that_used_all_windows_are_named_with_the_widest() -> None:
    records = searches("found", "found", "found")
    for record, low, windows in zip(records, (15_000.0, 10_000.0, 0.0), (20, 20, 9), strict=True):
        assert record.search is not None
        ended = ENDED["found"].model_copy(update={"low_per_s": low, "high_per_s": 16_000.0, "windows": windows})
        object.__setattr__(record, "search", record.search.model_copy(update={"result": ended}))
    (text,) = unfinished(records)
    assert text == (
        "1 of 3 searches used all windows before half of the interval was within 5% of the rate; the widest is "
        "15,667 operations/s [10,000, 16,000] after 20 windows. Raise load.most_windows, or load.first_rate_per_s."
    )
    assert unfinished(searches("at-least", "no-rate")) == []


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (("response_ms_p95 <= 2.5",), "with p95 <= 2.5 ms"),
        (("service_ms_p99 <= 5",), "with p99 of service time <= 5 ms"),
        (("response_ms_mean < 3", "response_ms_max <= 1500"), "with mean response time < 3 ms and longest response "
         "time <= 1,500 ms"),
        (("error_fraction <= 0.01",), "with errors <= 1%"),
        (("saturation",), "at saturation"),
    ],
)  # fmt: skip
def test_limits_are_named_by_what_they_limit(objective: tuple[str, ...], words: str) -> None:
    assert limits_of(load(*objective).search_rules()) == words


def test_a_procedure_names_limits_first_rate_windows_and_end() -> None:
    text = procedure(load("response_ms_p99 <= 20").search_rules())
    for part in ("with p99 <= 20 ms: from 500 operations/s", "within 5%", "20 windows", "10 s", "up to 40 s", "2 s"):
        assert part in text, part
