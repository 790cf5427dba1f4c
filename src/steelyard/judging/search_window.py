"""Judgement of one window of a search, from its responses. Pure; `verify` judges stored windows again by it."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.model.objective import Limit
from steelyard.model.search import ERROR_FRACTION, MOST_USED, THROUGHPUT_FRACTION, NextWindow, SearchRules, Window
from steelyard.model.trial import Responses

SUSTAINED = Limit(response=THROUGHPUT_FRACTION, comparison=">=", value=0.9)
"""A rate of which the system does not keep up with this share meets no limit, however generous."""
SHOWN = ("response_ms_mean", "response_ms_p50", "response_ms_p99")
"""Responses that every window has, for the curve of response time over rate."""


def window_of(rules: SearchRules, asked: NextWindow, name: str, measured: Responses, generator: str = "", parts: tuple[tuple[float, float], ...] = ()) -> Window:
    """The window. `generator`: what the load generator could not do."""
    values = values_of(rules, asked.window_s, measured)
    binding = binding_limit(rules, values)
    used = binding.used(values[binding.response], MOST_USED)
    spread = 0.0
    if parts:
        used, spread = ratio(parts)
        used = min(used, MOST_USED)
    met = all(limit.is_met(values[limit.response]) for limit in (*rules.limits, SUSTAINED))
    return Window(
        name=name, rate_per_s=asked.rate_per_s, seconds=asked.window_s, operations=measured.operations,
        errors=measured.errors, throughput_per_s=measured.throughput_per_s,
        values=dict(values),
        met=met, used=used, spread=spread, generator=generator,
    )  # fmt: skip


def binding_limit(rules: SearchRules, values: Mapping[str, float | None]) -> Limit:
    """The limit of which a window with these values uses the greatest share: one that it misses, if it misses any.
    `SUSTAINED` counts only where it is missed."""

    def share(limit: Limit) -> tuple[float, bool]:
        """The share; of equal ones, that of a measured value is the greater."""
        value = values.get(limit.response)
        return limit.used(value, MOST_USED), value is not None

    missed = [limit for limit in (*rules.limits, SUSTAINED) if not limit.is_met(values.get(limit.response))]
    return max(missed or rules.limits, key=share)


def values_of(rules: SearchRules, seconds: float, measured: Responses) -> Mapping[str, float | None]:
    """What the limits are about, and what the curve shows."""
    ended = measured.operations + measured.errors
    names = (*(limit.response for limit in rules.limits), *SHOWN)
    values = {name: measured.of(name) for name in names if name not in (ERROR_FRACTION, THROUGHPUT_FRACTION)}
    values[ERROR_FRACTION] = measured.errors / ended if ended else None
    # Operations of the window over how long they took, over those that were due in it per second of its length.
    throughput, due = measured.throughput_per_s, ended + measured.unsent
    values[THROUGHPUT_FRACTION] = throughput * seconds / due if throughput and due else None
    return values


def ratio(parts: tuple[tuple[float, float], ...], batches: int = 5) -> tuple[float, float]:
    """Ratio of sums, and its standard error from batch means."""
    of = [parts[len(parts) * i // batches : len(parts) * (i + 1) // batches] for i in range(batches)]
    sums = [(sum(a for a, _ in b), sum(n for _, n in b)) for b in of]
    whole = sum(n for _, n in sums)
    r = sum(a for a, _ in sums) / whole
    return r, (batches / (batches - 1) * sum((a - r * n) ** 2 for a, n in sums)) ** 0.5 / whole
