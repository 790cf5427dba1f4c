"""Order of starts within blocks, balanced over blocks, and how far a plan keeps place and level apart. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import fmean, pvariance

from steelyard.model.named_level import Level, level_key
from steelyard.model.plan import Plan

ORDINALS = ("first", "second", "third", "fourth")
MOST_SHARE = 0.5
"""Share of the differences in place that levels may account for. Over three blocks or more, balanced orders stay below
0.12; two levels that always come in the same order have 1."""


def balanced(items: int, block: int) -> list[int]:
    """Order of `items` labels, from 0, in a block, from 1: a row of a Williams design (Williams 1949).

    Each run of `items` blocks is a Latin square. A whole design is one run for an even number and two for an odd one,
    the second with all rows reversed; in it each label follows each other one equally often. It is repeated. Every
    other row is shifted by half a square, which reverses the row before, or nearly so: thus the labels' mean places
    stay close after any number of blocks. Two labels alternate.
    """
    run, row = divmod(block - 1, items)
    shift = row // 2 + (row % 2) * ((items + 1) // 2)
    zigzag = [(place + 1) // 2 if place % 2 else -(place // 2) for place in range(items)]
    order = [(step + shift) % items for step in zigzag]
    return order[::-1] if items % 2 and run % 2 else order


def sentences(plan: Plan) -> Iterator[str]:
    """Places of each level of each factor that varies over starts: `nodes 1: first in 2 of 3 blocks, second in 1`."""
    blocks = plan.blocks
    for factor, levels in _places(plan).items():
        most = max(map(max, levels.values()))
        for level, places in levels.items():
            text = f"place {fmean(places):.1f} of {most} on average"
            if most <= len(ORDINALS) and len(places) == blocks:
                counts = [(ordinal, places.count(place)) for place, ordinal in enumerate(ORDINALS, start=1)]
                named = [f"{ordinal} in {times}" for ordinal, times in counts if times]
                text = ", ".join([f"{named[0]} of {blocks} blocks", *named[1:]])
            yield f"{factor} {level_key(level)}: {text}"


def share_of_places(plan: Plan) -> dict[str, float]:
    """Factor to the share of the variance of places that its levels account for (eta squared, Fisher 1925): 0 if all
    have the same mean place, 1 if every level always has the same place."""
    shares: dict[str, float] = {}
    for factor, levels in _places(plan).items():
        means = [fmean(places) for places in levels.values() for _ in places]
        shares[factor] = pvariance(means) / pvariance([place for places in levels.values() for place in places])
    return shares


def _places(plan: Plan) -> dict[str, dict[Level, list[int]]]:
    """Factor that varies over starts, to level, to the places within their blocks of its starts, from 1."""
    starts = {trial.start: trial for trial in plan.trials}
    served: Counter[int] = Counter()
    places = {factor: {level: list[int]() for level in plan.factors[factor]} for factor in plan.hard}
    for trial in starts.values():
        served[trial.block] += 1
        for factor, levels in places.items():
            levels.setdefault(trial.treatment[factor], []).append(served[trial.block])
    known = {factor: {level: at for level, at in levels.items() if at} for factor, levels in places.items()}
    return {factor: levels for factor, levels in known.items() if len(levels) > 1}
