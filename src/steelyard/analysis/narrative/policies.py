"""What the policies of a study paid and lacked, in the sentences of its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from steelyard.analysis.results import Results
from steelyard.analysis.statistics.elasticity import Elasticity
from steelyard.analysis.treatments import label
from steelyard.format import interval, listed, number
from steelyard.model.estimate import Estimate

BEST: Final = 3
"""Treatments that a sentence names in each respect."""
FEWEST: Final = 2
"""With fewer treatments there is nothing to rank."""


def policies(results: Results) -> list[str]:
    """The best treatments in each respect, which no other beats in both, and whose intervals overlap; of each
    combination of the levels that are not of the policy. Empty without measures of elasticity."""
    groups: dict[str, list[Elasticity]] = {}
    for row in results.of(Elasticity):
        groups.setdefault(label(row.others) if row.others else "", []).append(row)
    sentences: list[str] = []
    for name, rows in groups.items():
        if len(rows) >= FEWEST:
            first, *rest = _of_group(rows)
            sentences += [f"{name}: {first}" if name else first[0].upper() + first[1:], *rest]
    return sentences


def name_of(row: Elasticity) -> str:
    """The levels of a row that are of its policy: a single one without its factor."""
    levels = {name: level for name, level in row.treatment.items() if name not in row.others}
    return str(next(iter(levels.values()))) if len(levels) == 1 else label(levels)


def _of_group(rows: Sequence[Elasticity]) -> Iterator[str]:
    chosen = [row for row in rows if row.measures]
    compared, ranked = [row for row in rows if not row.measures], chosen or list(rows)
    short = _ranked(ranked, lambda row: row.theta_under_percent)
    excess = _ranked(ranked, lambda row: row.theta_over_percent)
    paid = sorted(ranked, key=lambda row: row.node_seconds)[:BEST]
    cheapest = ", ".join(f"{name_of(row)} {number(row.node_seconds, digits=3)}" for row in paid)
    of_these = (
        f"of the policies that follow what they measure ({listed([name_of(row) for row in chosen])}), the "
        if chosen
        else ""
    )
    yield (
        f"{of_these}smallest shortage of nodes (theta under, of the demand, mean over time): {_best(short)}. Smallest "
        f"excess (theta over): {_best(excess)}. Cheapest, in node-seconds: {cheapest}."
    )
    if chosen and compared:
        yield f"For comparison, in the same order: {'; '.join(map(_all_of, compared))}."
    overlaps = [*_not_apart(short, "shortage"), *_not_apart(excess, "excess")]
    close = f"Too close to call, as intervals overlap: {'; '.join(overlaps)}." if overlaps else ""
    front = [name_of(row) for row in chosen if not any(_beats(other, row) for other in chosen)]
    if len(chosen) < FEWEST:
        best = ""
    elif len(front) == 1:
        best = f"On mean values {front[0]} has both the least shortage and the least excess of them. "
    else:
        best = f"On mean values none of them has both less shortage and less excess than {listed(front, 'or')}. "
    if best or close:
        yield f"{best}{close}".strip()


def _all_of(row: Elasticity) -> str:
    under, over = _percent(row.theta_under_percent), _percent(row.theta_over_percent)
    return f"{name_of(row)} {under}, {over}, {number(row.node_seconds, digits=3)}"


def _ranked(rows: Sequence[Elasticity], of: Callable[[Elasticity], Estimate]) -> list[tuple[str, Estimate]]:
    return sorted(((name_of(row), of(row)) for row in rows), key=lambda ranked: ranked[1].value)


def _best(ranked: Sequence[tuple[str, Estimate]]) -> str:
    return ", ".join(f"{name} {_percent(value)}" for name, value in ranked[:BEST])


def _percent(estimate: Estimate) -> str:
    return f"{number(estimate.value, digits=3)}% {interval(estimate)}".strip()


def _beats(other: Elasticity, row: Elasticity) -> bool:
    """Whether one lacked and had in excess no more than the other, and less of one of them."""
    sides = [(each.theta_under_percent.value, each.theta_over_percent.value) for each in (other, row)]
    return sides[0] != sides[1] and all(first <= second for first, second in zip(*sides, strict=True))


def _not_apart(ranked: Sequence[tuple[str, Estimate]], of: str) -> Iterator[str]:
    """Neighbours in rank whose intervals overlap: not shown to differ."""
    for (name, less), (other, more) in pairwise(ranked):
        if less.high is not None and more.low is not None and more.low <= less.high:
            yield f"{name} and {other} on {of}"
