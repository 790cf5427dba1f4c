"""Whether the offered rate and the generator kept up, in one sentence.

By Little's law n operations in flight at a mean service time s carry at most n / s per second (Little 1961, "A proof
for the queuing formula: L = λW", Operations Research 9(3), pages 383 to 387). Whoever offers more builds a queue.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from steelyard.dropin.agent_run import PhaseOutcome
from steelyard.format import number, percent

NS_PER_S: Final = 1e9
NS_PER_MS: Final = 1e6
LEAST_SHARE: Final = 0.99
"""From this share of the offered rate on it was kept up."""
CHANCE: Final = 3.0
"""Standard deviations of a Poisson count that chance explains."""
BUSY: Final = 0.9
"""A generator whose busiest thread takes more of its core limits the load."""


def kept_up(phase: PhaseOutcome, schedule: Mapping[str, Any]) -> str:
    """`8 in flight at 2.4 ms carry at most 3,300/s: the offered 20,000/s was not kept up`; empty where the schedule's
    rate varies, or nothing was sent."""
    totals = phase.totals
    operations = totals.operations + totals.errors
    if not operations or totals.execution_s <= 0:
        return ""
    busiest = f"its busiest thread at {percent(totals.busiest_thread_fraction)} of a core"
    if schedule.get("kind") == "closed":
        if totals.busiest_thread_fraction > BUSY:
            return f"The generator limited the load, {busiest}: more --workers may carry more."
        return f"The generator kept up, {busiest}. No rate was offered: each thread waits for its answer."
    rate_per_s = schedule.get("rate_per_s")
    return _of_offered(phase, schedule, float(rate_per_s), busiest) if isinstance(rate_per_s, int | float) else ""


def _of_offered(phase: PhaseOutcome, schedule: Mapping[str, Any], rate_per_s: float, busiest: str) -> str:
    operations = phase.totals.operations + phase.totals.errors
    sent_per_s = operations / phase.totals.execution_s
    offered = f"the offered {_rate(rate_per_s)}/s"
    if sent_per_s >= rate_per_s * (LEAST_SHARE - CHANCE / math.sqrt(operations)):
        return f"The generator kept up, {busiest}, and so did the cluster: {_rate(sent_per_s)}/s of {offered}."
    so = f"{offered} was not kept up ({_rate(sent_per_s)}/s)"
    places = int(schedule.get("in_flight") or 1)
    mean_ns = phase.histogram("service", outcomes=None).mean_ns
    carried_per_s = places * NS_PER_S / mean_ns if mean_ns else math.inf
    if phase.totals.busiest_thread_fraction > BUSY:
        return f"The generator limited the load, {busiest}: {so}. More --workers may carry more."
    if carried_per_s < rate_per_s and mean_ns:
        ms = number(mean_ns / NS_PER_MS, digits=2, trim=True)
        return f"{places:,} in flight at {ms} ms carry at most {_rate(carried_per_s)}/s: {so}."
    return f"{so[:1].upper()}{so[1:]}, although {places:,} in flight could carry more: the answers came unevenly."


def _rate(per_s: float) -> str:
    """Two digits, for a figure that is a bound; whole numbers stay whole."""
    return number(per_s, digits=2 if per_s != round(per_s) else 9, trim=True) if per_s < 100 else f"{_rounded(per_s):,}"


def _rounded(per_s: float) -> int:
    step = int(10 ** max(0, math.floor(math.log10(per_s)) - 2))
    return int(round(per_s / step) * step)
