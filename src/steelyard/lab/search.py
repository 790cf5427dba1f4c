"""Search for the highest rate that meets a limit, as a trial carries it out: windows on one set of connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from steelyard import engine_order
from steelyard.format import number
from steelyard.judging.capacity_search import decide
from steelyard.judging.search_window import binding_limit, window_of
from steelyard.judging.trial_responses import responses
from steelyard.model.load import Load, window_name
from steelyard.model.search import NextWindow, Search, SearchResult, SearchRules, Window
from steelyard.wire.record import Done, Interval, Record
from steelyard.wire.schedule import Steady
from steelyard.wire.word import PhaseWord

Generator = Callable[[Sequence[Interval], Sequence[Done]], str]
"""Reason why the load generator could not keep up in a window; empty if it could."""


class SearchInProgress:
    """A search: asks for windows, takes their records, decides."""

    def __init__(self, load: Load, load_nodes: int, of_generator: Generator, say: Callable[[str], None]) -> None:
        self._load = load
        self._load_nodes = load_nodes
        self._of_generator = of_generator
        self._say = say
        self.rules = load.search_rules()
        self.windows: list[Window] = []
        self.result: SearchResult | None = None
        self._intervals: list[Interval] = []
        self._dones: list[Done] = []
        self._ended = asyncio.Event()

    @property
    def search(self) -> Search:
        """The search so far."""
        return Search(rules=self.rules, windows=tuple(self.windows), result=self.result)

    def take(self, record: Record) -> None:
        """Take in a record of a load node."""
        name = window_name(len(self.windows) + 1)
        if isinstance(record, Interval | Done) and record.phase == name:
            if isinstance(record, Interval):
                self._intervals.append(record)
                return
            self._dones.append(record)
            if len(self._dones) == self._load_nodes:
                self._ended.set()

    async def phases(self) -> AsyncIterator[PhaseWord]:
        """The windows, each decided when the one before has ended; ends with the result."""
        while isinstance(decision := decide(self.rules, self.windows), NextWindow):
            self._say(self._state(decision))
            self._intervals, self._dones = [], []
            self._ended.clear()
            name = window_name(len(self.windows) + 1)
            yield PhaseWord(
                name=name,
                schedule=self._schedule(decision.rate_per_s),
                duration_s=decision.window_s,
                settle_s=decision.settle_s,
                in_s=decision.rest_s,
            )
            await self._ended.wait()
            measured = responses(self._intervals, self._dones)
            generator = self._of_generator(self._intervals, self._dones)
            self.windows.append(window_of(self.rules, decision, name, measured, generator, self._intervals))
        self.result = decision
        self._say(f"search: {described(decision)}")

    def _schedule(self, rate_per_s: float) -> Steady:
        return engine_order.search_schedule(self._load, rate_per_s)

    def _state(self, next_window: NextWindow) -> str:
        """The window in progress and the verdict on the previous one, for views."""
        place = f"window {len(self.windows) + 1} of at most {self.rules.most_windows}"
        text = f"search: {place} at {number(next_window.rate_per_s)}/s"
        return f"{text}; {verdict(self.rules, self.windows[-1])}" if self.windows else text


def verdict(rules: SearchRules, window: Window) -> str:
    """Result of a window in words: `1,600/s misses response_ms_p99 <= 10 (12.1)`."""
    if window.generator:
        return f"at {number(window.rate_per_s)}/s the generator failed: {window.generator}"
    limit = binding_limit(rules, window.values)
    value = window.values.get(limit.response)
    measured = "" if value is None else f" ({number(value)})"
    return f"{number(window.rate_per_s)}/s {'meets' if window.met else 'misses'} {limit.text}{measured}"


def described(result: SearchResult) -> str:
    """A result in words."""
    match result.outcome:
        case "found":
            interval = f"{number(result.low_per_s)} to {number(result.high_per_s)}"
            return f"{number(result.rate_per_s)}/s ({interval}) after {result.windows} windows"
        case "at-least" if result.rate_per_s is None:
            return f"no rate is known to meet the limits: {result.reason}"
        case "at-least":
            return f"at least {number(result.rate_per_s)}/s: {result.reason}"
    return result.reason
