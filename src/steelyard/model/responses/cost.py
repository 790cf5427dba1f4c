"""Cost per million operations, from the price of a node that the study declares."""

from __future__ import annotations

from steelyard.model.response import Response

NAME = "cost_per_million_operations"

RESPONSES = (
    Response(
        name=NAME,
        label="cost per million operations",
        unit="of the study's currency",
        definition=(
            "Price of the nodes, `cost.price_per_node_hour`, for a million operations at the trial's throughput; load "
            "nodes count with `cost.count_load_nodes`. Computed when a store is read: a price changes no trial."
        ),
        source="study",
        less_is_better=True,
        on_page=False,
        order=172,
    ),
)
