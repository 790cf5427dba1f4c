"""Service time: time from when an operation was sent until its answer."""

from __future__ import annotations

from steelyard.model.response import Direction, Response, by_quantile_ms, mean_ms

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
LABELS = {"p50": "median service time"}

RESPONSES = (
    Response(
        name="service_ms_mean",
        label="mean service time",
        unit="ms",
        definition="Mean service time: from when an operation was sent to its answer.",
        compute=mean_ms("service"),
        direction=Direction.LESS_IS_FASTER,
        on_page=False,
        order=50,
    ),
    *(
        Response(
            name=f"service_ms_{name}",
            label=LABELS.get(name, f"{100 * q:g}th percentile of service time"),
            unit="ms",
            definition=f"Service time that {100 * q:g}% of the answered operations did not exceed.",
            compute=by_quantile_ms(q, "service"),
            percentile=q,
            less_is_better=True,
            head=f"service {name}",
            on_page=name == "p99",
            order=51 + place,
        )
        for place, (name, q) in enumerate(PERCENTILES.items())
    ),
)
