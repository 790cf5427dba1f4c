"""Queues on virtual time: response times of M/M/1 and M/D/c, and the rate at which their percentile meets a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, stats

Array = Any


@dataclass(frozen=True)
class Queue:
    """A queue with Poisson arrivals and `servers` servers."""

    servers: int
    service_s: float
    """Mean service time; exponential (`servers` is 1) or always the same."""
    exponential: bool

    @property
    def name(self) -> str:
        """The name by Kendall's notation."""
        return "M/M/1" if self.exponential else f"M/D/{self.servers}"

    def responses_s(self, rate_per_s: float, length_s: float, random: np.random.Generator) -> tuple[Array, Array]:
        """Arrival and response times of the operations that arrive within `length_s`, from an empty queue."""
        count = random.poisson(rate_per_s * length_s)
        arrivals = np.sort(random.uniform(0.0, length_s, count))
        if self.exponential:
            services = random.exponential(self.service_s, count)
            return arrivals, _single(arrivals, services)
        responses = np.empty(count)
        # Equal service times: operations leave in order, so each server takes every c-th of them.
        for server in range(self.servers):
            own = arrivals[server :: self.servers]
            responses[server :: self.servers] = _single(own, np.full(len(own), self.service_s))
        return arrivals, responses

    def percentile_s(self, rate_per_s: float, q: float) -> float:
        """The stationary percentile of response time; infinite for a queue without a stationary state."""
        if rate_per_s * self.service_s >= self.servers:
            return math.inf
        if self.exponential:
            return -math.log(1 - q) / (1 / self.service_s - rate_per_s)
        return self.service_s + _waiting_percentile_s(rate_per_s, self.service_s, self.servers, q)

    def rate_at(self, limit_s: float, q: float) -> float:
        """The rate at which that percentile is `limit_s`."""
        most = self.servers / self.service_s
        return float(optimize.brentq(lambda rate: self.percentile_s(rate, q) - limit_s, 0.01 * most, 0.98 * most))


def _single(arrivals: Array, services: Array) -> Array:
    """Response times of one server, first come, first served: Lindley's recursion as a running maximum."""
    if not len(arrivals):
        return np.empty(0)
    before = np.concatenate(([0.0], np.cumsum(services)[:-1]))
    start = before + np.maximum.accumulate(arrivals - before)
    return start + services - arrivals


def _waiting_percentile_s(rate_per_s: float, service_s: float, servers: int, q: float) -> float:
    """The percentile of waiting time in M/D/c: Franx 2001, *A simple solution for the M/D/c waiting time distribution*,
    Operations Research Letters 29."""
    at_most = np.cumsum(_in_system(rate_per_s * service_s, servers))

    def waits_at_most(seconds: float) -> float:
        k = math.floor(seconds / service_s) + 1
        left = rate_per_s * (k * service_s - seconds)
        j = np.arange(k * servers)
        # Waiting operations at most m: in the system at most c + m.
        places = np.minimum(servers + k * servers - 1 - j, len(at_most) - 1)
        return float(np.sum(at_most[places] * stats.poisson.pmf(j, left)))

    if waits_at_most(0.0) >= q:
        return 0.0
    high = service_s
    while waits_at_most(high) < q:
        high *= 2
    return float(optimize.brentq(lambda seconds: waits_at_most(seconds) - q, 0.0, high))


def _in_system(load: float, servers: int) -> Array:
    """Stationary probabilities of the number in the system: of the chain that looks once a service time (Crommelin
    1932)."""
    size = 500
    shares = np.zeros(size)
    shares[: servers + 1] = 1 / (servers + 1)
    arriving = stats.poisson.pmf(np.arange(size), load)
    arriving = arriving[: int(np.searchsorted(np.cumsum(arriving), 1 - 1e-15)) + 2]
    for _ in range(200_000):
        after = np.zeros(size)
        after[0] = shares[: servers + 1].sum()
        rest = shares[servers + 1 :]
        after[1 : 1 + len(rest)] = rest
        after = np.convolve(after, arriving)[:size]
        after /= after.sum()
        change = np.abs(after - shares).max()
        shares = after
        if change < 1e-13:
            break
    return shares
