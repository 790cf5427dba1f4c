"""Whether the offered rate and the generator kept up, in one sentence.

By Little's law n operations in flight at a mean service time s carry at most n / s per second (Little 1961, "A proof
for the queuing formula: L = λW", Operations Research 9(3), pages 383 to 387). Offering more builds a queue.
"""

from __future__ import annotations

import math
from typing import Final

from steelyard.dropin.agent_run import PhaseOutcome
from steelyard.dropin.shortfall import due, least_per_s, rate_words
from steelyard.format import number, percent
from steelyard.wire.record import Done
from steelyard.wire.schedule import Closed, Schedule, Steady

NS_PER_S: Final = 1e9
NS_PER_MS: Final = 1e6
BUSY: Final = 0.9
"""A generator whose busiest thread takes more of its core limits the load."""


def kept_up(phase: PhaseOutcome, schedule: Schedule | None) -> str:
    """Sentence on a phase. Carried is what was answered: an error, fast or never sent, is not.

    `8 in flight at 2.4 ms carry at most 3,300/s: the offered 20,000/s was not kept up`; empty if the
    schedule's rate varies, or nothing was sent.
    """
    totals = phase.totals
    if not totals.operations + totals.errors or totals.execution_s <= 0:
        return ""
    busiest = f"its busiest thread at {percent(totals.busiest_thread_fraction)} of a core"
    if isinstance(schedule, Closed):
        if totals.busiest_thread_fraction > BUSY:
            return f"The generator limited the load, {busiest}: more --workers may carry more."
        return f"The generator kept up, {busiest}. No rate was offered: each thread waits for its answer."
    return _of_offered(phase, schedule, busiest) if isinstance(schedule, Steady) else ""


def _of_offered(phase: PhaseOutcome, schedule: Steady, busiest: str) -> str:
    totals, rate_per_s, places = phase.totals, schedule.rate_per_s, schedule.in_flight
    ended = totals.operations + totals.errors
    least = least_per_s(totals, rate_per_s)
    offered = f"the offered {rate_words(rate_per_s)}/s"
    lost = _lost(totals)
    if totals.rate_per_s >= least:
        answered = f"{rate_words(totals.rate_per_s)}/s of {offered}"
        if lost:
            return f"The generator kept up, {busiest}: {answered} were answered; {lost}."
        return f"The generator kept up, {busiest}, and so did the cluster: {answered}."
    so = f"{offered} was not kept up ({rate_words(totals.rate_per_s)}/s{f'; {lost}' if lost else ''})"
    mean_ns = phase.histogram("service", outcomes=None).mean_ns
    carried_per_s = places * NS_PER_S / mean_ns if mean_ns else math.inf
    if totals.busiest_thread_fraction > BUSY:
        return f"The generator limited the load, {busiest}: {so}. More --workers may carry more."
    if carried_per_s < rate_per_s and mean_ns:
        ms = number(mean_ns / NS_PER_MS, digits=2, trim=True)
        return f"{places:,} in flight at {ms} ms carry at most {rate_words(carried_per_s)}/s: {so}."
    if ended / totals.execution_s >= least:
        return f"{so[:1].upper()}{so[1:]}: the rest are errors."
    return f"{so[:1].upper()}{so[1:]}, although {places:,} in flight could carry more: the answers came unevenly."


def _lost(totals: Done) -> str:
    """`of 100,000 operations 5 failed and 70,000 were due and not sent`; empty without either."""
    parts = [f"{totals.errors:,} failed"] if totals.errors else []
    parts += [f"{totals.unsent:,} were due and not sent"] if totals.unsent else []
    return f"of {due(totals):,} operations {' and '.join(parts)}" if parts else ""
