"""The plan of a study of identical systems: two labels on starts of their own, in random order within blocks."""

from __future__ import annotations

from collections import Counter

import pytest

from steelyard.judging.settings_hash import settings_hash
from steelyard.model.errors import StudyError
from steelyard.plan import expand, warnings
from tests.unit.study.paper import study

SAME = '[design]\nkind = "same"\nstarts = {starts}\ntrials = 2\nseed = {seed}\n'


def same(starts: int = 6, seed: int = 1, more: str = ""):
    return study(SAME.format(starts=starts, seed=seed) + more)


def test_each_block_has_a_start_of_either_label_with_the_same_settings_and_operations():
    plan = expand(same())
    assert plan.factors == {"label": ("A", "B")}
    assert plan.hard == ("label",)
    assert len(plan.trials) == 24
    starts = {trial.start: (trial.block, trial.treatment["label"]) for trial in plan.trials}
    assert Counter(starts.values()) == {(block, label): 1 for block in range(1, 7) for label in "AB"}
    assert len({settings_hash(trial.settings.root) for trial in plan.trials}) == 1
    assert len({trial.id for trial in plan.trials}) == 24
    assert all("label" not in trial.settings for trial in plan.trials)
    seeds = {(trial.block, trial.replicate, trial.treatment["label"]): trial.seed for trial in plan.trials}
    assert all(seeds[block, replicate, "A"] == seeds[block, replicate, "B"] for block, replicate, _ in seeds)


def test_ids_are_of_settings_and_start_numbers_and_a_wider_study_keeps_them():
    narrow, wide = expand(same(3)), expand(same(6))
    for trial in narrow.trials:
        assert trial.id == f"{settings_hash(trial.settings.root)}-s{trial.start_replicate}-t{trial.replicate}"
    treatments = {trial.id: (trial.treatment["label"], trial.seed) for trial in wide.trials}
    assert all(treatments[trial.id] == (trial.treatment["label"], trial.seed) for trial in narrow.trials)


def test_which_label_comes_first_is_random():
    first = Counter()
    for seed in range(40):
        by_block = {}
        for trial in expand(same(5, seed)).trials:
            by_block.setdefault(trial.block, trial.treatment["label"])
        first.update(by_block.values())
    assert 70 <= first["A"] <= 130


def test_one_pair_has_no_error_term_and_says_so():
    assert any("no error term for label" in one for one in warnings(same(1), expand(same(1))))


@pytest.mark.parametrize(
    "more", ["control = {}\n", "base = { nodes = 1 }\n", 'order = "published"\n', "[factors]\nnodes = [1, 3]\n"]
)
def test_nothing_may_make_them_differ(more: str):
    with pytest.raises(StudyError, match="compares a treatment with itself"):
        same(more=more)


def test_a_label_is_no_factor_of_other_studies():
    with pytest.raises(StudyError, match="label"):
        study('[factors]\nlabel = ["A", "B"]\n')
