"""Lag: time from when an operation was due until it was sent."""

from __future__ import annotations

from steelyard.model.outcome import ANSWERED, Outcome
from steelyard.model.response import Response, by_quantile_ms

P99 = 0.99

RESPONSES = (
    Response(
        name="lag_ms_p99",
        label="99th percentile of lag",
        unit="ms",
        definition="Lag (sent later than due) that 99% of the operations did not exceed.",
        compute=by_quantile_ms(P99, "lag", (*ANSWERED, Outcome.TIMEOUT.value)),
        percentile=P99,
        less_is_better=True,
        on_page=False,
        order=60,
    ),
)
