"""Objective of each cell as `status` says it: the verdicts of the report, without a frame."""

from __future__ import annotations

import numpy as np

from steelyard.analysis.analyse import analyse
from steelyard.analysis.cells import objective_cells
from steelyard.analysis.statistics.objective import ObjectiveLevel
from steelyard.analysis.treatments import label
from tests.unit.analysis import made


def test_the_cells_of_status_have_the_verdicts_of_the_report() -> None:
    means = {1: 80.0, 3: 100.0, 5: 130.0}
    records = made.drawn(np.random.default_rng(2), means, starts=4, trials=2, start_cv=0.01, trial_cv=0.01)
    study = made.study(
        analysis={"objective": "execution_time_ms < 100"}, factors={"nodes": (1, 3, 5), "workload": ("A",)}
    )
    rows = analyse(records, study, seed=1).of(ObjectiveLevel)
    assert objective_cells(records, study) == {label(row.treatment): (row.verdict, row.why) for row in rows}
    assert [row.verdict for row in rows] == ["met", "undecided", "not met"]
    assert objective_cells(records, made.study()) == {}
