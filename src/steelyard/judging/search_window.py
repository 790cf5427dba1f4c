"""Judgement of one window of a search, from its responses. Pure; `verify` judges stored windows again by it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from steelyard.model import responses
from steelyard.model.objective import Limit
from steelyard.model.outcome import ANSWERED
from steelyard.model.response import NS_PER_MS
from steelyard.model.search import ERROR_FRACTION, MOST_USED, THROUGHPUT_FRACTION, NextWindow, SearchRules, Window
from steelyard.model.trial import Responses

if TYPE_CHECKING:
    from steelyard.wire.record import Interval

SUSTAINED = Limit(response=THROUGHPUT_FRACTION, comparison=">=", value=0.9)
"""A rate of which the system does not keep up with this share meets no limit, however generous."""
SHOWN = ("response_ms_mean", "response_ms_p50", "response_ms_p99")
"""Responses that every window has, for the curve of response time over rate."""
BATCHES = 5
"""Parts of a window, of two seconds or more each, so that what lasts from one second into the next counts as spread."""


def window_of(
    rules: SearchRules,
    asked: NextWindow,
    name: str,
    measured: Responses,
    generator: str = "",
    intervals: Sequence[Interval] = (),
) -> Window:
    """The window. `generator`: what the load generator could not do; `intervals`: its seconds on all load nodes."""
    values = values_of(rules, asked.window_s, measured)
    binding = binding_limit(rules, values)
    used = binding.used(values[binding.response], MOST_USED)
    used, spread = used_beyond(binding, intervals) or (used, 0.0)
    met = all(limit.is_met(values[limit.response]) for limit in (*rules.limits, SUSTAINED))
    return Window(
        name=name, rate_per_s=asked.rate_per_s, begun_at=min((interval.t_s for interval in intervals), default=None),
        seconds=asked.window_s, operations=measured.operations,
        errors=measured.errors, throughput_per_s=measured.throughput_per_s,
        values=dict(values),
        met=met, used=min(used, MOST_USED), spread=spread, generator=generator,
    )  # fmt: skip


def used_beyond(limit: Limit, intervals: Sequence[Interval]) -> tuple[float, float] | None:
    """Operations beyond a percentile's limit over those that it allows, and the standard error of that ratio by batch
    means (A. M. Law 2015, *Simulation Modeling and Analysis*, 9.5.3; of a ratio: W. G. Cochran 1977, *Sampling
    Techniques*, 6.3). None for other limits, and without operations. Unlike a percentile it has no bias in short
    windows."""
    response = responses.every().get(limit.response)
    allowed = 1 - response.percentile if response is not None and response.percentile is not None else 0.0
    if allowed <= 0 or not intervals:
        return None
    measure = limit.response.partition("_")[0]
    begun_s = min(interval.t_s for interval in intervals)
    length_s = max(interval.t_s + interval.seconds for interval in intervals) - begun_s or 1.0
    beyond, counted = [0] * BATCHES, [0] * BATCHES
    for interval in intervals:
        batch = min(int(BATCHES * (interval.t_s + interval.seconds / 2 - begun_s) / length_s), BATCHES - 1)
        for counts in interval.counts:
            if counts.measure == measure and counts.outcome in ANSWERED:
                counted[batch] += sum(n for _, _, n in counts.buckets)
                missed = (n for low, high, n in counts.buckets if not limit.is_met((low + high) / 2 / NS_PER_MS))
                beyond[batch] += sum(missed)
    whole = sum(counted)
    if not whole:
        return None
    share = sum(beyond) / whole
    squares = math.fsum((k - share * n) ** 2 for k, n in zip(beyond, counted, strict=True))
    return share / allowed, math.sqrt(squares * BATCHES / (BATCHES - 1)) / whole / allowed


def binding_limit(rules: SearchRules, values: Mapping[str, float | None]) -> Limit:
    """The limit of which a window with these values uses the largest share: one that it misses, if it misses any.
    `SUSTAINED` counts only where it is missed."""

    def share(limit: Limit) -> tuple[float, bool]:
        """The share; of equal ones, that of a measured value is the greater."""
        value = values.get(limit.response)
        return limit.used(value, MOST_USED), value is not None

    missed = [limit for limit in (*rules.limits, SUSTAINED) if not limit.is_met(values.get(limit.response))]
    return max(missed or rules.limits, key=share)


def values_of(rules: SearchRules, seconds: float, measured: Responses) -> Mapping[str, float | None]:
    """Quantities of the limits, and of the curve."""
    ended = measured.operations + measured.errors
    names = (*(limit.response for limit in rules.limits), *SHOWN)
    values = {name: measured.of(name) for name in names if name not in (ERROR_FRACTION, THROUGHPUT_FRACTION)}
    values[ERROR_FRACTION] = measured.errors / ended if ended else None
    # Operations of the window over how long they took, over those that were due in it per second of its length.
    throughput, due = measured.throughput_per_s, ended + measured.unsent
    values[THROUGHPUT_FRACTION] = throughput * seconds / due if throughput and due else None
    return values
