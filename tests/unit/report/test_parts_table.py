"""The table of equal parts says which cut it lacks, and why."""

from __future__ import annotations

from typing import cast

from steelyard.analysis.statistics.parts import PartMean, mean_values
from steelyard.report.data.presentation import View
from steelyard.report.tables.time_courses import parts


class Results:
    confidence = 0.95

    def __init__(self, rows: tuple[PartMean, ...]) -> None:
        self._rows = rows

    def of(self, kind: type[PartMean]) -> tuple[PartMean, ...]:
        assert kind is PartMean
        return self._rows


class Shown:
    def __init__(self, seconds: dict[int, int]) -> None:
        rows = [
            row
            for nodes, whole in seconds.items()
            for row in mean_values([("b1", [1.0] * whole)], "throughput_per_s", "1/s", treatment={"nodes": nodes})
        ]
        self.results = Results(tuple(rows))


def caption(seconds: dict[int, int]) -> str:
    table = parts(cast(View, Shown(seconds)))
    assert table is not None
    return table.caption


def test_a_cut_that_trials_are_too_short_for_is_named() -> None:
    assert caption({1: 8, 2: 9}).endswith("suggest a steady state.")
    assert caption({1: 8, 2: 4}).endswith(
        "Not cut into 8: 2 nodes. Each part needs at least one whole second of a trial."
    )
    assert "Not cut into 4: 2 nodes. Not cut into 8: 1 node; 2 nodes." in caption({1: 4, 2: 3})
