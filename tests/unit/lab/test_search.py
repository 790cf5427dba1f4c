"""Search for the highest rate that meets a limit, without machines: windows, store, verdict, verification."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from steelyard.judging.search_window import used_beyond, window_of
from steelyard.lab.search import described, verdict
from steelyard.model.errors import StudyError
from steelyard.model.load import Load
from steelyard.model.objective import parse
from steelyard.model.search import NextWindow, SearchResult
from steelyard.model.trial import Responses, TrialRecord
from steelyard.plan import engines, load_feasibility
from steelyard.plan.abilities import Abilities
from steelyard.store import layout
from steelyard.verify.store import verification
from tests.unit.lab.fakes import Script, plan_of, study, without_waiting
from tests.unit.lab.test_conductor import conduct, stored
from tests.unit.wire import made

LOAD = {"schedule": "search", "objective": ["response_ms_p99 <= 10", "error_fraction <= 0.001"], "threads": 64}
TRUE_PER_S = 1000 - 460.0


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    without_waiting(monkeypatch)
    return Script(tmp_path, milliseconds=lambda rate: min(5000.0, 4600 / (1000 - rate)) if rate < 1000 else 5000.0)


def searching(**changes: Any) -> Any:
    load = {**LOAD, "first_rate_per_s": 100, **changes}
    design = {"starts": 1, "trials": 1}
    return study(load=load, factors={"nodes": [1]}, design=design, analysis={"response": "capacity_per_s"})


def searched(script: Script, **changes: Any) -> TrialRecord:
    conduct(script, searching(**changes))
    (record,) = stored(script).trials()
    return record


def test_a_search_is_one_load_whose_windows_and_result_are_stored(script: Script) -> None:
    record = searched(script)
    assert record.verdict.outcome == "valid"
    assert record.search is not None
    assert record.search.result is not None
    assert record.search.result.outcome == "found"
    assert (
        record.responses.of("capacity_per_s") == record.search.result.rate_per_s == pytest.approx(TRUE_PER_S, rel=0.02)
    )
    driven = [order for order in script.driven if order.action == "load"]
    assert [order.words for order in driven] == [True], "one set of connections"
    names = [window.name for window in record.search.windows]
    assert names == [word.name for word in script.words] == [f"w{n + 1}" for n in range(len(names))]
    assert set(record.phase_responses) == set(names)
    assert {word.settle_s for word in script.words} == {2.0}
    assert record.offered_rate_per_s is None
    assert sorted(stored(script).intervals(record)["phase"].unique()) == sorted(names)


def test_verification_searches_again(script: Script) -> None:
    searched(script)
    sound = verification(stored(script))
    assert [finding.words() for finding in sound.findings if finding.kind in ("search", "response", "verdict")] == []
    assert sound.made["search"] > 20
    path = next(script.folder.rglob(layout.TRIAL_JSON))
    trial = json.loads(path.read_text())
    trial["search"]["windows"][4]["used"] *= 1.5
    trial["search"]["result"]["rate_per_s"] += 1
    path.write_text(json.dumps(trial))
    found = {finding.what for finding in verification(stored(script)).findings if finding.kind == "search"}
    assert {"search: window w5", "search: result", "search: capacity_per_s"} <= found


def test_a_window_uses_operations_beyond_the_limit_and_its_spread_is_that_of_batches() -> None:
    """1,000 operations in each of 5 s, of which 0, 0, 10, 20 and 20 are beyond 10 ms: 1% in all, as allowed; the
    standard error of a mean of five."""
    beyond = (0, 0, 10, 20, 20)
    intervals = [
        made.interval(
            made.counts([(1_000_000, 1_000_000, 1000 - k), (11_000_000, 11_000_000, k)], measure="response"),
            t_s=100.0 + second, seconds=1.0,
        )
        for second, k in enumerate(beyond)
    ]  # fmt: skip
    used, spread = used_beyond(parse("response_ms_p99 <= 10"), intervals) or (0.0, 0.0)
    assert used == pytest.approx(1.0)
    assert spread == pytest.approx(statistics.stdev(k / 10 for k in beyond) / math.sqrt(5))
    assert used_beyond(parse("response_ms_mean <= 10"), intervals) is None
    assert used_beyond(parse("response_ms_p99 <= 10"), []) is None


def test_a_limit_that_no_rate_meets_is_a_result_and_says_what_was_measured(script: Script) -> None:
    record = searched(script, objective=["response_ms_p99 <= 0.001"])
    assert record.verdict.final
    assert record.responses.of("capacity_per_s") is None
    (reason,) = record.verdict.reasons
    assert reason.kind.name == "NO_RATE"
    assert reason.detail.startswith("the lowest rate tried misses response_ms_p99 <= 0.001: 25/s, ")


def test_a_search_out_of_windows_is_final_and_no_fault_of_the_system(script: Script) -> None:
    record = searched(script, objective=["response_ms_p99 <= 4.7"], first_rate_per_s=900, most_windows=4)
    assert record.search is not None
    assert record.search.rules.lowest_rate_per_s < min(window.rate_per_s for window in record.search.windows)
    assert record.verdict.final
    assert not record.responses.has("capacity_per_s")
    (reason,) = record.verdict.reasons
    assert reason.kind.name == "NONE_FOUND"
    assert "raise load.most_windows or lower load.first_rate_per_s" in reason.detail
    sound = verification(stored(script))
    assert [finding.words() for finding in sound.findings if finding.kind in ("search", "verdict")] == []


@pytest.mark.parametrize(
    ("measured", "words", "used"),
    [
        (Responses(operations=9900, errors=100, throughput_per_s=990.0, response_ms_p99=5.0),
         "1,000/s misses error_fraction <= 0.001 (0.01000)", 10.0),
        (Responses(operations=10_000, throughput_per_s=500.0, response_ms_p99=9.0),
         "1,000/s misses throughput_fraction >= 0.9 (0.5000)", 1.8),
        (Responses(operations=10_000, throughput_per_s=1000.0, response_ms_p99=25.0),
         "1,000/s misses response_ms_p99 <= 10 (25)", 2.5),
        (Responses(operations=10_000, throughput_per_s=1000.0, response_ms_p99=5.0),
         "1,000/s meets response_ms_p99 <= 10 (5)", 0.5),
        (Responses(operations=9_991, errors=9, throughput_per_s=1000.0, response_ms_p99=1.0),
         "1,000/s meets error_fraction <= 0.001 (0.0009000)", 0.9),
        (Responses(errors=10), "1,000/s misses error_fraction <= 0.001 (1)", 20.0),
    ],
)  # fmt: skip
def test_the_live_line_names_the_limit_that_binds(measured: Responses, words: str, used: float) -> None:
    rules = Load.model_validate(LOAD).search_rules()
    window = window_of(rules, NextWindow(rate_per_s=1000, window_s=10, settle_s=2), "w1", measured)
    assert verdict(rules, window) == words
    assert window.used == pytest.approx(used, rel=1e-3)


def test_a_search_longer_than_the_limit_of_a_trial_is_refused_by_its_windows() -> None:
    chosen = searching(window_s=600)
    (error,) = load_feasibility.refusals(chosen, plan_of(chosen), (), Abilities())
    assert "the 20 windows of a search, with the warm-up, take about 24040 s" in error.message
    assert (error.key, chosen.load.measured_s) == ("load.most_windows", 20 * (2 * 600 + 2))


def test_a_search_without_any_usable_window_names_no_rate() -> None:
    ended = SearchResult(outcome="at-least", windows=3, reason="the load generator could not do 100/s: late")
    assert described(ended) == "no rate is known to meet the limits: the load generator could not do 100/s: late"


def test_the_highest_rate_allowed_is_a_lower_bound_and_no_response(script: Script) -> None:
    record = searched(script, highest_rate_per_s=300)
    assert record.verdict.final
    assert not record.responses.has("capacity_per_s")
    (reason,) = record.verdict.reasons
    assert reason.kind.name == "LOWER_BOUND"
    assert reason.detail.startswith("at least 300 operations/s: ")
    sound = verification(stored(script))
    assert [finding.words() for finding in sound.findings if finding.kind in ("search", "verdict")] == []


def test_a_window_that_is_not_kept_up_with_misses_every_limit() -> None:
    rules = Load.model_validate({**LOAD, "objective": ["response_ms_p99 <= 60000"]}).search_rules()
    asked = NextWindow(rate_per_s=1000, window_s=10, settle_s=2)
    slow = Responses(operations=10_000, throughput_per_s=500.0, response_ms_p99=9000.0)
    window = window_of(rules, asked, "w1", slow)
    assert (window.met, window.used) == (False, pytest.approx(1.8))
    empty = window_of(rules, asked, "w1", Responses(errors=10))
    assert (empty.met, math.isfinite(empty.used)) == (False, True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": []}, "schedule search needs objective"),
        ({"objective": ["response_ms_p98 <= 1"]}, "no response 'response_ms_p98'; allowed: response_ms_mean"),
        ({"objective": ["p99 10"]}, "'p99 10' is not a limit"),
        ({"objective": ["response_ms_p99 >= 1"]}, "a limit of a search is an upper one"),
        ({"objective": ["saturation", "error_fraction <= 0.1"]}, "saturation must be the only entry"),
        ({"rate_per_s": 100}, "rate_per_s applies only to schedule constant or poisson, but this is search"),
        ({"duration_s": 100}, "schedule search has windows: no phases, operations or duration_s"),
        ({"threads": 1}, "with 1 it would find one operation per service time"),
        ({"first_rate_per_s": 10, "highest_rate_per_s": 5}, "first_rate_per_s must be at most"),
        ({"schedule": "closed", "operations": 5}, "objective applies only to schedule search, but this is closed"),
        (
            {"schedule": "closed", "operations": 5, "objective": [], "precision": 0.1},
            "precision applies only to schedule",
        ),
    ],
)
def test_what_is_no_search_is_refused_with_what_is_allowed(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        Load.model_validate({**LOAD, **changes})


def test_a_phase_cannot_search() -> None:
    with pytest.raises(ValueError, match="belongs to the whole load"):
        Load.model_validate({"phases": [{"name": "a", "duration_s": 1, "schedule": "search"}]})


def test_an_engine_that_takes_no_words_is_refused_by_name() -> None:
    plan = plan_of(searching(engine="latte"))
    (error, *_) = engines.refused(plan, Abilities())
    assert isinstance(error, StudyError)
    assert "engine latte cannot search" in error.message


@pytest.mark.parametrize(
    ("response", "load", "message"),
    [
        ("execution_time_ms", LOAD, "over windows of all its rates"),
        ("capacity_per_s", {"operations": 10}, "only a search finds one"),
    ],
)
def test_a_main_response_that_does_not_fit_is_refused(response: str, load: dict[str, Any], message: str) -> None:
    chosen = study(load=load, analysis={"response": response})
    (error,) = load_feasibility.refusals(chosen, plan_of(chosen), (), Abilities())
    assert message in error.message
