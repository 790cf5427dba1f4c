"""The made-up study of clusters that grow, under a load with steps and with declared capacities."""

from __future__ import annotations

from tests.unit.report import growing

CAPACITY = [[1, 1000], [2, 2000], [3, 3000], [4, 4000], [5, 5000]]
STUDY = (
    growing.STUDY.replace(
        'schedule = "constant"\nrate_per_s = 1000', 'schedule = "steps"\nrates_per_s = [1500, 4500]\nstep_s = 30'
    ).replace("times = [[20, 5]]", "times = [[20, 5], [50, 2]]")
    + f"[analysis.demand]\ncapacity = {CAPACITY}\n"
)
"""2 nodes are needed in the first 30 s, 5 in the others. Clusters have 3 at the beginning, and those that grow get the
fourth after 31 s and the fifth after 42 s, or later."""
