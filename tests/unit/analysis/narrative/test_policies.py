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
        node_seconds=paid, others=others,
    )  # fmt: skip


def said(rows: Sequence[Elasticity]) -> list[str]:
    return policies(cast("Results", SimpleNamespace(of=lambda kind: rows)))


def test_the_best_in_each_respect_those_beaten_by_none_and_those_whose_intervals_overlap() -> None:
    first, second = said(
        [
            row("none", 16.7, 60.0, 540, None), row("static-max", 0.0, 187.0, 900, None),
            row("threshold", 4.95, 140.0, 800), row("hpa", 4.88, 99.0, 700, 0.2), row("oracle", 1.74, 52.0, 650),
        ]
    )  # fmt: skip
    assert first == (
        "Smallest shortage of nodes (theta under, of the demand, mean over time): static-max 0%, oracle 1.74% "
        "[1.64, 1.84], hpa 4.88% [4.68, 5.08]. Smallest excess (theta over): oracle 52% [51.90, 52.10], none 60%, hpa "
        "99% [98.80, 99.20]. Cheapest, in node-seconds: none 540, oracle 650, hpa 700."
    )
    assert second == (
        "On mean values no other policy beats static-max or oracle on both. Too close to call, as intervals overlap: "
        "hpa and threshold on shortage."
    )


def test_other_levels_are_ranked_apart() -> None:
    sentences = said([row(name, place, place, 100, nodes=nodes) for nodes in (3, 5) for place, name in enumerate("ab")])
    assert [sentence.partition(":")[0] for sentence in sentences if "Cheapest" in sentence] == [
        "3 nodes",
        "5 nodes",
    ]


def test_one_treatment_has_nobody_to_be_better_than() -> None:
    assert said([row("threshold", 4.95, 140.0, 800)]) == []
    assert said([]) == []
