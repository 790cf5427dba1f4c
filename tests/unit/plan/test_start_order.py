"""Order of starts within blocks: balanced over blocks, whatever the number of blocks."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from steelyard.cli.terminal.check_output import _order
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.plan import expand, warnings
from steelyard.plan.start_order import balanced, sentences, share_of_places
from tests.unit.plan.test_expand import factorial

SECOND = 1.06
"""How much longer the second start of a block takes, though both systems are alike."""


def sizes(levels: int, starts: int, seed: int = 1, **more: str) -> Study:
    return factorial(list(range(1, levels + 1)), [1], starts=starts, trials=1, seed=seed, **more)


def orders(plan: Plan) -> list[list[int]]:
    """Cluster sizes in the order of each block."""
    blocks: dict[int, list[int]] = {}
    for trial in plan.trials:
        blocks.setdefault(trial.block, []).append(int(trial.treatment["nodes"]))
    return list(blocks.values())


@pytest.mark.parametrize("items", range(1, 10))
def test_after_any_block_each_label_was_in_each_place_equally_often_or_once_more(items: int) -> None:
    counts = np.zeros((items, items), dtype=int)
    for block in range(1, 4 * items + 1):
        order = balanced(items, block)
        assert sorted(order) == list(range(items))
        counts[order, range(items)] += 1
        assert counts.max() - counts.min() <= (block % items > 0)


@pytest.mark.parametrize("items", range(2, 10))
def test_in_a_whole_design_each_label_follows_each_other_equally_often(items: int) -> None:
    blocks = items * (1 + items % 2)
    pairs = Counter(pair for block in range(1, blocks + 1) for pair in itertools.pairwise(balanced(items, block)))
    assert pairs == dict.fromkeys(itertools.permutations(range(items), 2), 1 + items % 2)


def test_four_labels_are_the_square_of_the_textbook() -> None:
    """Of Williams (1949)."""
    assert {"".join("ABCD"[one] for one in balanced(4, block)) for block in range(1, 5)} == {
        "ABDC", "BCAD", "CDBA", "DACB",
    }  # fmt: skip


@pytest.mark.parametrize("items", range(2, 13))
def test_no_two_labels_keep_their_order_over_three_blocks_and_mean_places_stay_close(items: int) -> None:
    places = np.argsort([balanced(items, block) for block in range(1, 11)], axis=1)
    for first, second in itertools.combinations(range(items), 2):
        gaps = places[:, first] - places[:, second]
        assert all(len(set(np.sign(gaps[:blocks]))) == 2 for blocks in range(3, 11))
    share = [_share(places[:blocks]) for blocks in range(3, 11)]
    assert max(share) < 0.12


def _share(places: np.ndarray) -> float:
    return float(places.mean(axis=0).var() / places.var())


def test_two_levels_alternate_from_a_beginning_that_the_seed_draws() -> None:
    first = Counter(tuple(order[0] for order in orders(expand(sizes(2, 5, seed)))) for seed in range(40))
    assert set(first) == {(1, 2, 1, 2, 1), (2, 1, 2, 1, 2)}
    assert 10 <= first[1, 2, 1, 2, 1] <= 30


@pytest.mark.parametrize("levels", [2, 3, 4, 5])
def test_more_blocks_leave_the_order_of_those_before(levels: int) -> None:
    few, many = orders(expand(sizes(levels, 3))), orders(expand(sizes(levels, 12)))
    assert many[:3] == few


def test_no_study_of_two_levels_and_three_blocks_has_one_level_always_first() -> None:
    """79 of these 300 had, when each block was shuffled by itself."""
    firsts = [{order[0] for order in orders(expand(sizes(2, 3, seed)))} for seed in range(300)]
    assert sum(len(first) == 1 for first in firsts) == 0


@pytest.mark.parametrize("blocks", range(3, 11))
def test_an_effect_of_place_makes_no_difference_between_identical_systems(blocks: int) -> None:
    """Paired t tests by block on logarithms, of 2,000 studies: starts differ by 2%, the second of a block by 6%. Blocks
    that are shuffled one by one give 12% with three blocks, 10% with four, 7% with five."""
    r, studies, plans = np.random.default_rng(blocks), 2_000, 50
    second = np.array([[order[1] == 2 for order in orders(expand(sizes(2, blocks, seed)))] for seed in range(plans)])
    place = math.log(SECOND) * np.repeat(np.where(second, 1, -1), studies // plans, axis=0)
    differences = place + r.normal(0, 0.02 * math.sqrt(2), place.shape)
    assert np.mean(stats.ttest_1samp(differences, 0, axis=1).pvalue < 0.05) <= 0.05


def test_check_says_how_often_each_level_has_which_place() -> None:
    plan = expand(sizes(2, 3))
    ones = sum(order[0] == 1 for order in orders(plan))
    words = [
        f"nodes {n}: first in {first} of 3 blocks, second in {3 - first}" for n, first in [(1, ones), (2, 3 - ones)]
    ]
    assert list(sentences(plan)) == words
    console = Console(width=200)
    with console.capture() as printed:
        console.print(_order(plan, everything=False))
    assert [line.strip() for line in printed.get().splitlines()][-2:] == words
    assert list(sentences(expand(sizes(6, 1)))) == [f"nodes {n}: place {p:.1f} of 6 on average" for n, p in _one(6)]
    assert list(sentences(expand(sizes(1, 3)))) == []


def _one(levels: int) -> list[tuple[int, int]]:
    (order,) = orders(expand(sizes(levels, 1)))
    return sorted((level, place) for place, level in enumerate(order, start=1))


def test_levels_that_go_with_a_place_are_noted_in_numbers() -> None:
    published, three = sizes(2, 3, order="published"), sizes(3, 5, order="published")
    for asked in (published, three):
        assert share_of_places(expand(asked)) == {"nodes": pytest.approx(1)}
        (note,) = [one for one in warnings(asked, expand(asked)) if "place of a start" in one]
        assert "nodes varies with the place of a start within its block: its levels account for 100%" in note
    for levels, blocks, share in ((2, 3, 1 / 9), (2, 4, 0), (3, 3, 0), (4, 5, 0.04)):
        asked = sizes(levels, blocks)
        assert share_of_places(expand(asked))["nodes"] == pytest.approx(share)
        assert "place of a start" not in "\n".join(warnings(asked, expand(asked)))
