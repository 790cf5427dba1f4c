"""Utilisation of simulated nodes, from samples of the probe `simulated`: what the planted law says it must be."""

from __future__ import annotations

from steelyard.model.measure import Measure
from steelyard.model.response import Response

RESPONSES = (
    Response(
        name="simulated_utilisation_percent_mean",
        label="utilisation of a simulated node",
        unit="%",
        definition=(
            "Time that the planted servers of a simulated node were busy, in percent of all of its servers; the mean "
            "over time and nodes."
        ),
        source="samples",
        measure=Measure(metrics=("node_simulated_utilisation_percent",), probe="simulated"),
        less_is_better=True,
        on_page=False,
        order=180,
    ),
)
