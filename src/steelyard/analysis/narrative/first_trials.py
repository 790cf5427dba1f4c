"""First trials of starts that were plainly slower than the next ones, where a study has too few trials for a test.

A test for a trend (`statistics.trend`) takes more trials than two a start. That every start begins in the same way is
seen without one: it is described here, with the least and the greatest factor, and called no more than that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard.analysis.inference.steadiness import STEADY_FACTOR
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.treatments import label
from steelyard.format import listed, number
from steelyard.model import responses
from steelyard.model.response import Direction

ENOUGH_STARTS = 2
MOST_NAMED = 3


def sentences(points: Sequence[Point], response: str, left_out: int = 0) -> list[str]:
    """A sentence if every start of a treatment was faster in its second used trial than in its first, by
    `steadiness.STEADY_FACTOR` or more each time; empty if none was. `left_out`: first trials that the analysis drops
    already."""
    direction = responses.of(response).direction
    if direction is Direction.NEITHER:
        return []
    factors = {name: _factors(series, direction) for name, series in _series(points).items()}
    plain = {
        name: values
        for name, values in factors.items()
        if len(values) >= ENOUGH_STARTS and min(values) >= STEADY_FACTOR
    }
    if not plain:
        return []
    least, most = min(map(min, plain.values())), max(map(max, plain.values()))
    how_much = number(least, digits=2) if least == most else f"{number(least, digits=2)} to {number(most, digits=2)}"
    names = [name for name in plain if name][:MOST_NAMED]
    whose = f" of {listed(names)}" if names else ""
    more = f" and {len(plain) - MOST_NAMED} more" if len(plain) > MOST_NAMED else ""
    return [
        f"In every start{whose}{more} the second trial (where there was one) was faster than the first, by a factor of "
        f"{how_much} ({responses.label_of(response)}): the means depend on how many trials a start has. Warm the "
        f"servers up, or leave out {'more' if left_out else 'first'} trials (analysis.warm_up_trials)."
    ]


def _series(points: Sequence[Point]) -> Mapping[str, list[list[float]]]:
    """Treatment in words to the values of its used trials in each start, in order of time."""
    series: dict[str, dict[str, list[float]]] = {}
    for point in sorted(points, key=lambda each: each.begun_s):
        if point.used and not point.control:
            name = label(point.treatment) if point.treatment else ""
            series.setdefault(name, {}).setdefault(point.start, []).append(point.value)
    return {name: list(starts.values()) for name, starts in series.items()}


def _factors(starts: Sequence[Sequence[float]], direction: Direction) -> list[float]:
    """By how much each start was faster in its second trial than in its first; below 1 where it was slower. Starts with
    fewer than two trials, or with a value that is not positive, say nothing."""
    pairs = [values[:2] for values in starts if len(values) > 1 and min(values[:2]) > 0]
    up = direction is Direction.MORE_IS_FASTER
    return [second / first if up else first / second for first, second in pairs]
