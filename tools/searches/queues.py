"""Queues on virtual time: response times of M/M/1, M/D/c and M/G/1 with pauses, and the rate that meets a limit."""

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


@dataclass(frozen=True)
class PausedQueue:
    """M/G/1: hyperexponential service with balanced means, and pauses that arrive as jobs of their own."""

    service_s: float
    variation: float = 1.0
    """Squared coefficient of variation of service time, at least 1 (exponential)."""
    pause_s: float = 0.0
    """Length of a pause, always the same."""
    pauses_per_s: float = 0.0
    """Pauses come at random, as a Poisson process."""

    @property
    def name(self) -> str:
        """The name in the table."""
        service = "M/M/1" if self.variation == 1 else f"M/H2/1, cv² {self.variation:g}"
        return (
            f"{service}, a pause of {1e3 * self.pause_s:g} ms every {1 / self.pauses_per_s:g} s"
            if self.pause_s
            else service
        )

    @property
    def _branches(self) -> tuple[Array, Array]:
        """Probabilities and rates of the two exponentials: p / mu is the same for both."""
        share = (1 + math.sqrt((self.variation - 1) / (self.variation + 1))) / 2
        shares = np.array([share, 1 - share])
        return shares, 2 * shares / self.service_s

    def responses_s(self, rate_per_s: float, length_s: float, random: np.random.Generator) -> tuple[Array, Array]:
        """Arrival and response times of the operations that arrive within `length_s`, from an empty queue."""
        shares, rates = self._branches
        count, pauses = random.poisson(rate_per_s * length_s), random.poisson(self.pauses_per_s * length_s)
        arrivals = random.uniform(0.0, length_s, count + pauses)
        slow = (random.uniform(size=count) < shares[1]).astype(int)
        services = np.concatenate((random.exponential(1 / rates[slow]), np.full(pauses, self.pause_s)))
        order = np.argsort(arrivals)
        operations = order < count
        responses = _single(arrivals[order], services[order])
        return arrivals[order][operations], responses[operations]

    def beyond(self, rate_per_s: float, limit_s: float) -> float:
        """The stationary share of response times beyond a limit: the formula of Pollaczek and Khinchine (L. Kleinrock,
        *Queueing Systems I*, 1975, section 5.7), inverted numerically (J. Abate and W. Whitt 1995, *Numerical inversion
        of Laplace transforms of probability distributions*, ORSA Journal on Computing 7: EULER)."""
        shares, rates = self._branches
        load = rate_per_s * self.service_s + self.pauses_per_s * self.pause_s
        if load >= 1:
            return 1.0

        def tail(s: Array) -> Array:
            service = (shares * rates / (rates + s[:, None])).sum(axis=1)
            paused = self.pauses_per_s * (1 - np.exp(-s * self.pause_s))
            waiting = (1 - load) * s / (s - rate_per_s * (1 - service) - paused)
            return (1 - waiting * service) / s

        terms, last = 400, 12
        k = np.arange(terms + last + 1)
        a = 18.4
        real = tail((a + 2j * math.pi * k) / (2 * limit_s)).real * np.where(k, (-1.0) ** k, 0.5)
        sums = np.cumsum(real)[terms:]
        binomial = np.array([math.comb(last, j) for j in range(last + 1)]) / 2.0**last
        return float(math.exp(a / 2) / limit_s * (sums * binomial).sum())

    def rate_at(self, limit_s: float, q: float) -> float:
        """The rate at which the percentile `q` is `limit_s`."""
        most = (1 - self.pauses_per_s * self.pause_s) / self.service_s
        return float(optimize.brentq(lambda rate: self.beyond(rate, limit_s) - (1 - q), 0.01 * most, 0.98 * most))


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
