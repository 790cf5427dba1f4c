"""Searches on virtual time: the laboratory's own search on windows drawn from a queue, and what else might be done."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from steelyard.judging.capacity_search import decide
from steelyard.judging.search_window import window_of
from steelyard.model.load import Load
from steelyard.model.response import NS_PER_MS
from steelyard.model.search import NextWindow, SearchResult, SearchRules, Window
from steelyard.model.trial import Responses
from steelyard.wire.record import NO_SUMMARY, Counts, Interval
from tools.searches.queues import PausedQueue, Queue

AnyQueue = Queue | PausedQueue
Q = 0.99
FIRST_PER_S = (50.0, 400.0)
"""Bounds of the first rate, which is drawn: the answer must not depend on where doubling happens to come by."""


@dataclass(frozen=True)
class Outcome:
    """One search: the truth, its estimate, its interval, its windows."""

    true_per_s: float
    rate_per_s: float
    low_per_s: float
    high_per_s: float
    windows: int

    @property
    def holds(self) -> bool:
        """Whether the true rate lies in the interval."""
        return self.low_per_s <= self.true_per_s <= self.high_per_s

    @property
    def error(self) -> float:
        """Estimate over truth, less 1."""
        return self.rate_per_s / self.true_per_s - 1


def rules(limit_ms: float, first_per_s: float) -> SearchRules:
    """The rules that a study has by default, with this limit."""
    load = Load(
        schedule="search",
        objective=(f"response_ms_p99 <= {limit_ms:g}",),
        arrivals="poisson",
        threads=512,
        first_rate_per_s=first_per_s,
    )
    return load.search_rules()


def measured(queue: AnyQueue, asked: NextWindow, search_rules: SearchRules, random: np.random.Generator) -> Window:
    """One window: the queue from empty, its settle time left out."""
    arrivals, responses_s = queue.responses_s(asked.rate_per_s, asked.settle_s + asked.window_s, random)
    counted = arrivals >= asked.settle_s
    if not counted.any():
        return window_of(search_rules, asked, "w", Responses())
    counted_ms = 1e3 * responses_s[counted]
    lasts_s = float((arrivals + responses_s)[counted].max() - arrivals[counted].min())
    answered = Responses(
        operations=len(counted_ms),
        throughput_per_s=len(counted_ms) / lasts_s,
        response_ms_mean=float(counted_ms.mean()),
        response_ms_p99=float(np.quantile(counted_ms, Q)),
    )
    seconds = np.minimum((arrivals[counted] - asked.settle_s).astype(int), int(asked.window_s) - 1)
    size, limit_ms = int(asked.window_s), search_rules.limits[0].value
    beyond = np.bincount(seconds[counted_ms > limit_ms], minlength=size)
    within = np.bincount(seconds, minlength=size) - beyond
    limit_ns = int(limit_ms * NS_PER_MS)
    intervals = [
        Interval(
            phase="w", t_s=float(second), seconds=1.0, sent=0, done=0, errors=0, backlog=0, cpu_fraction=0.0,
            summary=NO_SUMMARY,
            counts=(
                Counts(
                    operation="read", outcome="ok", measure="response",
                    buckets=((0, 0, int(within[second])), (2 * limit_ns, 2 * limit_ns, int(beyond[second]))),
                ),
            ),
        )
        for second in range(size)
    ]  # fmt: skip
    return window_of(search_rules, asked, "w", answered, intervals=intervals)


def search(queue: AnyQueue, limit_ms: float, true_per_s: float, seed: int) -> Outcome:
    """One search as the laboratory does it."""
    random = np.random.default_rng(seed)
    asked = rules(limit_ms, math.exp(random.uniform(math.log(FIRST_PER_S[0]), math.log(FIRST_PER_S[1]))))
    windows: list[Window] = []
    while isinstance(decision := decide(asked, windows), NextWindow):
        windows.append(measured(queue, decision, asked, random))
    return _outcome(decision, true_per_s)


def _outcome(result: SearchResult, true_per_s: float) -> Outcome:
    none = math.nan
    ends = (result.rate_per_s or none, result.low_per_s or 0.0, result.high_per_s or math.inf)
    return Outcome(true_per_s, *ends, result.windows)


GRID = 400
SPREADS = (0.01, 0.02, 0.05, 0.1)
SLIP = 0.02


def bisect_by_outcome(queue: AnyQueue, limit_ms: float, true_per_s: float, seed: int) -> Outcome:
    """For comparison: probabilistic bisection, which learns from each window only whether it met the limit. 20 windows,
    each at the posterior's median; met with probability 1 / (1 + (rate / limit rate)^(1 / spread)), the spread
    unknown."""
    random = np.random.default_rng(seed)
    grid = np.linspace(math.log(20.0), math.log(4000.0), GRID)
    posterior = np.ones((len(SPREADS), GRID))
    spreads = np.array(SPREADS)[:, None]
    asked = rules(limit_ms, FIRST_PER_S[0])
    for _ in range(20):
        share = np.cumsum(posterior.sum(axis=0)) / posterior.sum()
        rate = math.exp(grid[int(np.searchsorted(share, 0.5))])
        window = measured(queue, NextWindow(rate_per_s=rate, window_s=10.0, settle_s=2.0), asked, random)
        meets = SLIP / 2 + (1 - SLIP) / (1 + np.exp(np.clip((math.log(rate) - grid) / spreads, -500, 500)))
        posterior = posterior * (meets if window.met else 1 - meets)
        posterior /= posterior.sum()
    share = np.cumsum(posterior.sum(axis=0))
    low, middle, high = (math.exp(grid[int(np.searchsorted(share, p))]) for p in (0.025, 0.5, 0.975))
    return Outcome(true_per_s, middle, low, high, 20)


Method = Callable[[AnyQueue, float, float, int], Outcome]
