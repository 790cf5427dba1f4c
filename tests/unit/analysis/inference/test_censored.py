"""Censored times: the survival function by hand, medians that do not exist, restricted means and their permutation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from steelyard.analysis.inference import censored
from steelyard.analysis.inference.censored import Watched


def watched(*times: float | None, until_s: float = 900.0, name: str = "s") -> list[Watched]:
    """A start each; None: the event did not happen."""
    return [Watched(f"{name}{place}", until_s, after_s) for place, after_s in enumerate(times)]


def test_the_survival_function_falls_at_events_and_loses_what_is_censored_before() -> None:
    trials = [*watched(0.0, 100.0, 400.0, None), Watched("early", 300.0, None)]
    steps = [(0.0, 1.0), (0.0, 0.8), (100.0, 0.6), (300.0, 0.6), (400.0, 0.3), (900.0, 0.3)]
    assert censored.survival(trials) == [tuple(map(pytest.approx, step)) for step in steps]
    assert censored.restricted(trials, 900.0) == pytest.approx(80 + 0.6 * 300 + 0.3 * 500)
    assert censored.restricted(trials, 50.0) == pytest.approx(40.0)
    assert censored.restricted(watched(*[500 * math.log(100 / k) for k in range(1, 100)]), 900.0) == pytest.approx(
        500 * (1 - math.exp(-900 / 500)), abs=5
    ), "of exponential times"


def test_a_median_is_undefined_where_half_or_more_did_not() -> None:
    assert censored.median(watched(20.0, 30.0, 90.0)) == 30.0
    assert censored.median(watched(20.0, 25.0, 30.0, None)) == 27.5, "as of times that are all known"
    assert censored.median(watched(20.0, 30.0, None, None)) is None
    assert censored.median(watched(20.0, 30.0, None, None, None)) is None, "2 of 5"
    assert censored.median(watched(20.0, 30.0, 40.0, None, None)) == 40.0
    assert censored.median(watched(None, None)) is None


def test_a_restricted_mean_counts_those_that_did_not_as_long_as_they_were_watched() -> None:
    trials = watched(100.0, 300.0, 500.0, 700.0, None)
    assert censored.watched_by_half(trials) == 900.0
    mean = censored.restricted_mean(trials, 900.0, 0.95)
    assert mean.value == pytest.approx(500.0)
    logit, half = math.log(5 / 4), 2.7764451 * np.std([1, 3, 5, 7, 9], ddof=1) / math.sqrt(5) / 9 / (5 / 9 * 4 / 9)
    assert (mean.low, mean.high) == (
        pytest.approx(900 / (1 + math.exp(half - logit))), pytest.approx(900 / (1 + math.exp(-half - logit))),
    )  # fmt: skip
    assert censored.restricted_mean(trials[:4], 900.0, 0.95).method.endswith("no interval below 5 starts")
    never = censored.restricted_mean(watched(*[None] * 5), 900.0, 0.95)
    assert (never.value, never.low) == (900.0, None)
    assert never.method.endswith("nothing varies")


def test_trials_of_one_start_are_one_unit() -> None:
    trials = [Watched(f"s{place // 2}", 900.0, 100.0 + 10 * place) for place in range(10)]
    assert censored.start_means(trials, 900.0) == {f"s{k}": pytest.approx(105.0 + 20 * k) for k in range(5)}
    assert censored.restricted_mean(trials, 900.0, 0.95).n == 5


def test_the_mean_is_taken_up_to_where_half_were_watched_and_the_function_is_known() -> None:
    lengths = [Watched(f"s{until}", float(until), None) for until in (100, 200, 300)]
    assert censored.watched_by_half(lengths) == 200.0
    early = [Watched("a", 900.0, 20.0), Watched("b", 900.0, 30.0), Watched("c", 50.0, None)]
    assert censored.watched_by_half(early) == 50.0, "beyond 50 s nothing is known of the share that remains"
    assert censored.watched_by_half([*early[:2], Watched("c", 50.0, 40.0)]) == 900.0


def test_five_against_five_have_252_arrangements() -> None:
    fast, slow = watched(10.0, 20.0, 30.0, 40.0, 50.0, name="a"), watched(500.0, 600.0, 700.0, None, None, name="b")
    tested = censored.difference(slow, fast, np.random.default_rng(1))
    assert tested is not None
    assert tested[0].value == pytest.approx(720.0 - 30.0)
    assert tested[1] == pytest.approx(2 / 252)
    assert "all 252 arrangements" in tested[0].method
    same = censored.difference(watched(*[None] * 5, name="c"), watched(*[None] * 5), np.random.default_rng(1))
    assert same is not None
    assert (same[0].value, same[1]) == (0.0, 1.0)
    assert censored.difference(slow, slow, np.random.default_rng(1)) is None, "the same starts"
    assert censored.difference(watched(10.0, name="c"), fast, np.random.default_rng(1)) is None, "one start"
