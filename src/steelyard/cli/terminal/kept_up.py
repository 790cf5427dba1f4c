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
from steelyard.model.outcome import Outcome
from steelyard.wire.record import Done

NS_PER_S: Final = 1e9
NS_PER_MS: Final = 1e6
LEAST_SHARE: Final = 0.99
"""From this share of the offered rate on it was kept up."""
CHANCE: Final = 3.0
"""Standard deviations of a Poisson count that chance explains."""
BUSY: Final = 0.9
"""A generator whose busiest thread takes more of its core limits the load."""


def kept_up(phase: PhaseOutcome, schedule: Mapping[str, Any]) -> str:
    """Sentence on a phase. Carried is what was answered: an error, fast or never sent, is not.

    `8 in flight at 2.4 ms carry at most 3,300/s: the offered 20,000/s was not kept up`; empty where the
    schedule's rate varies, or nothing was sent.
    """
    totals = phase.totals
    if not totals.operations + totals.errors or totals.execution_s <= 0:
        return ""
    busiest = f"its busiest thread at {percent(totals.busiest_thread_fraction)} of a core"
    if schedule.get("kind") == "closed":
        if totals.busiest_thread_fraction > BUSY:
            return f"The generator limited the load, {busiest}: more --workers may carry more."
        return f"The generator kept up, {busiest}. No rate was offered: each thread waits for its answer."
    rate_per_s = schedule.get("rate_per_s")
    return _of_offered(phase, schedule, float(rate_per_s), busiest) if isinstance(rate_per_s, int | float) else ""


def _of_offered(phase: PhaseOutcome, schedule: Mapping[str, Any], rate_per_s: float, busiest: str) -> str:
    totals = phase.totals
    ended = totals.operations + totals.errors
    least_per_s = rate_per_s * (LEAST_SHARE - CHANCE / math.sqrt(ended))
    offered = f"the offered {_rate(rate_per_s)}/s"
    lost = _lost(totals)
    if totals.rate_per_s >= least_per_s:
        answered = f"{_rate(totals.rate_per_s)}/s of {offered}"
        if lost:
            return f"The generator kept up, {busiest}: {answered} were answered; {lost}."
        return f"The generator kept up, {busiest}, and so did the cluster: {answered}."
    so = f"{offered} was not kept up ({_rate(totals.rate_per_s)}/s{f'; {lost}' if lost else ''})"
    places = int(schedule.get("in_flight") or 1)
    mean_ns = phase.histogram("service", outcomes=None).mean_ns
    carried_per_s = places * NS_PER_S / mean_ns if mean_ns else math.inf
    if totals.busiest_thread_fraction > BUSY:
        return f"The generator limited the load, {busiest}: {so}. More --workers may carry more."
    if carried_per_s < rate_per_s and mean_ns:
        ms = number(mean_ns / NS_PER_MS, digits=2, trim=True)
        return f"{places:,} in flight at {ms} ms carry at most {_rate(carried_per_s)}/s: {so}."
    if ended / totals.execution_s >= least_per_s:
        return f"{so[:1].upper()}{so[1:]}: the rest are errors."
    return f"{so[:1].upper()}{so[1:]}, although {places:,} in flight could carry more: the answers came unevenly."


def _lost(totals: Done) -> str:
    """`of 100,000 operations 5 failed and 70,000 were never sent`; empty without errors."""
    never_sent = totals.errors_by_kind.get(Outcome.BACKLOG, 0)
    failed = totals.errors - never_sent
    parts = [f"{failed:,} failed"] if failed else []
    parts += [f"{never_sent:,} were never sent"] if never_sent else []
    return f"of {totals.operations + totals.errors:,} operations {' and '.join(parts)}" if parts else ""


def _rate(per_s: float) -> str:
    """Two digits, for a figure that is a bound; whole numbers stay whole."""
    return number(per_s, digits=2 if per_s != round(per_s) else 9, trim=True) if per_s < 100 else f"{_rounded(per_s):,}"


def _rounded(per_s: float) -> int:
    step = int(10 ** max(0, math.floor(math.log10(per_s)) - 2))
    return int(round(per_s / step) * step)
