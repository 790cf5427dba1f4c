"""Capacity: the highest rate that meets the limits of a search.

The capacity of each number of nodes, C(n), is read as any response is: `TrialFrame.values(CAPACITY)` and the factor
`nodes`.
"""

from __future__ import annotations

from steelyard.model.response import Direction, Recomputable, Response

CAPACITY = "capacity_per_s"

RESPONSES = (
    Response(
        name=CAPACITY,
        label="capacity",
        unit="operations/s",
        definition=(
            "Highest offered rate at which the limits of load.objective are met, as found by the search of a trial; "
            "for saturation the highest throughput. A search that ended before a limit was missed has none: its "
            "lower bound is shown with the trial, and averaged with nothing."
        ),
        compute=lambda measured: measured.capacity_per_s,
        direction=Direction.MORE_IS_FASTER,
        kept=Recomputable.NOT,
        main=True,
        on_page=False,
        order=35,
        source="search",
    ),
)
