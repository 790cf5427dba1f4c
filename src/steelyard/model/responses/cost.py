"""Cost of a trial and of a million operations, from the price of a node that the study declares."""

from __future__ import annotations

from steelyard.model.response import Response

PER_TRIAL = "cost_per_trial"
PER_MILLION = "cost_per_million_operations"

RESPONSES = (
    Response(
        name=PER_MILLION,
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
    Response(
        name=PER_TRIAL,
        label="cost per trial",
        unit="of the study's currency",
        definition=(
            "Price of the nodes, `cost.price_per_node_hour`, for the time in which the trial measured: node-hours of "
            "database nodes whose server ran; load nodes count with `cost.count_load_nodes`. Filling, warming up and "
            "starting are not in it. Computed when a store is read."
        ),
        source="study",
        less_is_better=True,
        on_page=False,
        order=173,
    ),
)
