"""Response time: time from when an operation was due until its answer."""

from __future__ import annotations

from steelyard.model.response import Direction, Response, by_quantile_ms, mean_ms

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
LABELS = {"p50": "median response time"}

RESPONSES = (
    Response(
        name="response_ms_mean",
        label="mean response time",
        unit="ms",
        definition=(
            "Mean response time: from when an operation was due to its answer. In a closed loop an operation is due "
            "when the last is answered, so a slow answer delays the next request instead of making it wait."
        ),
        compute=mean_ms("response"),
        direction=Direction.LESS_IS_FASTER,
        from_due=True,
        head="mean",
        order=40,
    ),
    *(
        Response(
            name=f"response_ms_{name}",
            label=LABELS.get(name, f"{100 * q:g}th percentile of response time"),
            unit="ms",
            definition=f"Response time that {100 * q:g}% of the answered operations did not exceed.",
            compute=by_quantile_ms(q, "response"),
            from_due=True,
            percentile=q,
            less_is_better=True,
            head=name,
            order=41 + place,
        )
        for place, (name, q) in enumerate(PERCENTILES.items())
    ),
    Response(
        name="response_ms_max",
        label="longest response time",
        unit="ms",
        definition="Longest response time of the trial.",
        compute=by_quantile_ms(1.0, "response"),
        from_due=True,
        less_is_better=True,
        head="max",
        order=44,
    ),
)
