"""When trials under a policy scaled out: censored where they did not, and compared between policies."""

from __future__ import annotations

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.time_to_event import EventTime
from steelyard.study.read import read_text
from tests.unit.report import growing

POLICIES = """
[levels.rule.none]
policy.name = "none"
[levels.rule.early]
policy.name = "threshold"
policy.max_nodes = 5
policy.threshold = 50.0
[levels.rule.late]
policy.name = "threshold"
policy.max_nodes = 5
policy.threshold = 90.0
[levels.rule.set]
policy.name = "scheduled"
"""
STUDY = (
    growing.STUDY.replace("starts = 4", "starts = 5").replace(
        '"policy.name" = ["none", "scheduled"]', 'rule = ["none", "early", "late", "set"]'
    )
    + POLICIES
)
AT_S = {"early": (6.0, 7.0, 8.0, 9.0, 10.0), "late": (30.0, 40.0, 50.0, None, 55.0), "set": (20.0,) * 5}


def found(at_s: dict[str, tuple[float | None, ...]]) -> Results:
    study, records = read_text(STUDY), []
    for record in growing.records(STUDY):
        after_s = at_s.get(str(record.treatment["rule"]), (None,) * 5)[record.block - 1]
        activities = () if after_s is None else (growing.growth(record.begun_s + after_s),)
        records.append(record.model_copy(update={"activities": activities}))
    return analyse(records, study, seed=1)


def test_a_trial_that_did_not_scale_out_is_censored() -> None:
    early, late = found(AT_S).of(EventTime)
    assert (early.treatment, early.n, early.happened, early.share.value) == ({"rule": "early"}, 5, 5, 100.0)
    assert early.share.low == pytest.approx(47.8, abs=0.1)
    assert (early.median_s, early.restricted_mean.value) == (pytest.approx(8.0), pytest.approx(8.0))
    assert (late.n, late.happened, late.of_s) == (5, 4, pytest.approx(60.0))
    assert (late.share.low, late.share.high) == (pytest.approx(28.4, abs=0.1), pytest.approx(99.5, abs=0.1))
    assert (late.median_s, late.restricted_mean.value) == (pytest.approx(50.0), pytest.approx(47.0))
    assert late.restricted_mean.low is not None


def test_policies_are_compared_by_permutation_of_starts() -> None:
    early, late = found(AT_S).of(EventTime)
    assert (early.against, early.difference) == ("", None)
    assert (late.against, late.p, late.p_holm) == ("rule early", pytest.approx(2 / 252), pytest.approx(2 / 252))
    assert late.difference is not None
    assert late.difference.value == pytest.approx(39.0)


def test_the_answer_names_those_of_which_a_trial_did_not() -> None:
    (sentence,) = [one for one in found(AT_S).answer if "scaled out" in one]
    assert sentence.startswith("4 of 5 trials of rule late scaled out (80% [28, 99]); restricted mean 47 s [")
    assert sentence.endswith("] of 60 s.")
    none = found({"set": (20.0,) * 5})
    assert [one for one in none.answer if "scaled out" in one] == [
        f"0 of 5 trials of rule {name} scaled out (0% [0, 52]); restricted mean 60 s of 60 s."
        for name in ("early", "late")
    ]
    assert {row.median_s for row in none.of(EventTime)} == {None}
