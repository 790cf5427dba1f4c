"""What policies paid and lacked, in the sentences of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from steelyard.analysis.narrative.policies import policies
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.elasticity import Elasticity
from steelyard.model.estimate import Estimate


def mean(value: float, half: float | None) -> Estimate:
    ends = None if half is None else (value - half, value + half)
    return Estimate.of(value, ends, "%", 0.95, 3, "t over starts")


def row(policy: str, under: float, over: float, paid: float, half: float | None = 0.1, **others: Any) -> Elasticity:
    none = mean(0.0, None)
    return Elasticity(
        treatment={"policy": policy, **others}, theta_under_percent=mean(under, half),
        theta_over_percent=mean(over, half), tau_under_percent=none, tau_over_percent=none, jitter_per_min=none,
        instability_percent=none, n=3, starts=3, never_under=0, never_over=0, beyond_scale_percent=0.0,
        node_seconds=paid, others=others, measures=policy not in ("none", "static-max", "oracle"),
    )  # fmt: skip


def said(rows: Sequence[Elasticity]) -> list[str]:
    return policies(cast("Results", SimpleNamespace(of=lambda kind: rows)))


def test_the_best_in_each_respect_those_beaten_by_none_and_those_whose_intervals_overlap() -> None:
    rows = [
        row("none", 16.7, 60.0, 540, None), row("static-max", 0.0, 187.0, 900, None),
        row("threshold", 4.95, 140.0, 800), row("hpa", 4.88, 99.0, 700, 0.2), row("oracle", 1.74, 52.0, 650),
    ]  # fmt: skip
    first, second, third = said(rows)
    assert first == (
        "Of the policies that follow what they measure (threshold and hpa), the smallest shortage of nodes (theta "
        "under, of the demand, mean over time): hpa 4.88% [4.68, 5.08], threshold 4.95% [4.850, 5.050]. Smallest "
        "excess (theta over): hpa 99% [98.80, 99.20], threshold 140% [139.900, 140.100]. Cheapest, in node-seconds: "
        "hpa 700, threshold 800."
    )
    assert second == (
        "For comparison, in the same order: none 16.7%, 60%, 540; static-max 0%, 187%, 900; oracle 1.74% [1.64, 1.84], "
        "52% [51.90, 52.10], 650."
    )
    assert third == (
        "On mean values hpa has both the least shortage and the least excess of them. Too close to call, as intervals "
        "overlap: hpa and threshold on shortage."
    )
    *_, third = said([*rows, row("pid", 4.0, 150.0, 900)])
    assert third.startswith("On mean values none of them has both less shortage and less excess than hpa or pid.")


def test_other_levels_are_ranked_apart() -> None:
    sentences = said([row(name, place, place, 100, nodes=nodes) for nodes in (3, 5) for place, name in enumerate("ab")])
    assert [sentence.partition(":")[0] for sentence in sentences if "Cheapest" in sentence] == [
        "3 nodes",
        "5 nodes",
    ]


def test_one_treatment_has_nobody_to_be_better_than() -> None:
    assert said([row("threshold", 4.95, 140.0, 800)]) == []
    assert said([]) == []
