"""Judgement of one window of a search, from its responses. Pure; `verify` judges stored windows again by it."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.model.search import ERROR_FRACTION, MOST_USED, THROUGHPUT_FRACTION, NextWindow, SearchRules, Window
from steelyard.model.trial import Responses

SUSTAINED = 0.9
"""A rate of which the system does not keep up with this share meets no limit, however generous."""
SHOWN = ("response_ms_mean", "response_ms_p50", "response_ms_p99")
"""Responses that every window has, for the curve of response time over rate."""


def window_of(rules: SearchRules, asked: NextWindow, name: str, measured: Responses, generator: str = "") -> Window:
    """The window. `generator`: what the load generator could not do."""
    values = values_of(rules, asked.window_s, measured)
    kept_up = values[THROUGHPUT_FRACTION] or 0.0
    shares = [limit.used(values[limit.response], MOST_USED) for limit in rules.limits]
    if kept_up < SUSTAINED:
        shares.append(min(MOST_USED, SUSTAINED / kept_up) if kept_up else MOST_USED)
    used = max(shares)
    met = all(limit.is_met(values[limit.response]) for limit in rules.limits) and kept_up >= SUSTAINED
    return Window(
        name=name, rate_per_s=asked.rate_per_s, seconds=asked.window_s, operations=measured.operations,
        errors=measured.errors, throughput_per_s=measured.throughput_per_s,
        values=dict(values),
        met=met, used=used, generator=generator,
    )  # fmt: skip


def values_of(rules: SearchRules, seconds: float, measured: Responses) -> Mapping[str, float | None]:
    """What the limits are about, and what the curve shows."""
    ended = measured.operations + measured.errors
    names = (*(limit.response for limit in rules.limits), *SHOWN)
    values = {name: measured.of(name) for name in names if name not in (ERROR_FRACTION, THROUGHPUT_FRACTION)}
    values[ERROR_FRACTION] = measured.errors / ended if ended else None
    # Operations of the window over how long they took, over those that ended in it per second of its length.
    throughput = measured.throughput_per_s
    values[THROUGHPUT_FRACTION] = throughput * seconds / ended if throughput and ended else None
    return values
