"""Answer of a search in words: `1 node carries 15,700 operations/s [11,700, 20,900] with p99 < 20 ms`.

Page, terminal, `status`, `serve` and exports print this sentence, one for each treatment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steelyard.analysis.treatments import NODES, Treatment, label, part
from steelyard.analysis.wording import capital
from steelyard.format import confidence_text, count, listed, number, percent
from steelyard.judging.search_window import binding_limit
from steelyard.model import responses
from steelyard.model.estimate import Estimate
from steelyard.model.objective import Limit
from steelyard.model.responses.capacity import CAPACITY
from steelyard.model.search import ERROR_FRACTION, THROUGHPUT_FRACTION, Search, SearchResult, SearchRules
from steelyard.model.trial import TrialRecord

AT_SATURATION: Final = "at saturation"
DIGITS: Final = 3
MOST_RATES: Final = 4
"""Rates that are listed where there is no interval."""


def _named(limit: Limit) -> str:
    """What is limited: `p99`, `p95 of service time`, `mean response time`, `errors`."""
    if limit.response == ERROR_FRACTION:
        return "errors"
    if limit.response == THROUGHPUT_FRACTION:
        return "throughput over offered rate"
    response = responses.of(limit.response)
    if response.percentile is None or not 0 < response.percentile < 1:
        return response.label
    return f"{limit.response.rpartition('_')[2]}{' of service time' if limit.response.startswith('service_') else ''}"


def _quantity(limit: Limit, value: float) -> str:
    """A value of what is limited: `20 ms`, `0.1%`."""
    if limit.response in (ERROR_FRACTION, THROUGHPUT_FRACTION):
        return percent(value)
    return f"{number(value, digits=DIGITS, trim=True)} {responses.of(limit.response).unit}"


def limits_of(rules: SearchRules) -> str:
    """`with p99 <= 20 ms and errors <= 0.1%`; of saturation `at saturation`."""
    return AT_SATURATION if rules.saturation else f"with {listed([_in_words(limit) for limit in rules.limits])}"


def _in_words(limit: Limit) -> str:
    return f"{_named(limit)} {limit.comparison} {_quantity(limit, limit.value)}"


def procedure(rules: SearchRules) -> str:
    """What a search does: its first rate, its windows, the next rates, its end."""
    longest = f" (at low rates and near the limit up to {rules.longest_window_s:g} s)"
    settle = f" after {rules.settle_s:g} s at the same rate" if rules.settle_s else ""
    then = "averages the throughput beyond it" if rules.saturation else "places windows on both sides of the estimate"
    rises = "doubles the rate" if rules.step_per_s is None else f"raises the rate by {rules.step_per_s:,.6g}"
    return (
        f"for the highest rate {limits_of(rules)}: from {rules.first_rate_per_s:,.6g} operations/s it {rises} "
        f"until a window misses a limit, halves the bracket and {then}, until half of the interval is within "
        f"{percent(rules.precision)} of the rate or {rules.most_windows} windows are measured. A window lasts "
        f"{rules.window_s:g} s{longest}{settle}"
    )


def carried(treatment: Treatment, records: Sequence[TrialRecord], value: Estimate | None, n: int, starts: int) -> str:
    """The rate that a treatment carries within the limits of its searches; where none was found, the bounds; empty
    without a search.

    `records`: the treatment's attempts; `value`: its capacity over `n` used trials.
    """
    searched = [(record, record.search) for record in _last_attempts(records) if record.search is not None]
    if not searched:
        return ""
    record, search = searched[-1]
    limits, nodes = limits_of(search.rules), record.settings.site.nodes
    others = {name: level for name, level in treatment.items() if name not in NODES}
    line = f"{label(others)}: " if others else ""
    who = f"{part('nodes', nodes)} {'carries' if nodes == 1 else 'carry'}"
    ended = [search for _, search in searched if search.result is not None and search.result.outcome != "found"]
    if value is None:
        return capital(f"{line}{_without_a_rate(who, limits, ended)}.")
    means = f"geometric mean of {count(n, 'trial')} from {count(starts, 'start')}"
    rates = [record.responses.of(CAPACITY) for record, _ in searched if record.verdict.outcome == "valid"]
    each = [_rounded(rate) for rate in rates if rate is not None]
    alone = f"{means}: {listed(each)}" if 1 < len(each) <= MOST_RATES else means
    basis = f"{confidence_text(value.confidence)} interval; {means}" if value.low is not None else alone
    rest = "".join(f"; {clause}" for clause in _outcomes(ended, of=len(searched)))
    return capital(f"{line}{who} {_rate(value)} {limits} ({basis}){rest}.")


def unfinished(records: Sequence[TrialRecord]) -> list[str]:
    """Sentence about searches that found a rate and used all their windows before its interval was narrow."""
    searches = [record.search for record in _last_attempts(records) if record.search is not None]
    rated = [(search.rules, result) for search in searches if (result := search.result) and result.outcome == "found"]
    wide = [
        (half, rules, result)
        for rules, result in rated
        if result.windows >= rules.most_windows and (half := _half(result)) > rules.precision
    ]
    if not wide:
        return []
    _, rules, result = max(wide, key=lambda one: one[0])
    return [
        f"{len(wide)} of {count(len(rated), 'search', 'searches')} used all windows before half of the interval was "
        f"within {percent(rules.precision)} of the rate; the widest is {_rounded(result.rate_per_s)} operations/s "
        f"[{_rounded(result.low_per_s)}, {_rounded(result.high_per_s)}] after {rules.most_windows} windows. Raise "
        "load.most_windows, or load.first_rate_per_s."
    ]


def _half(result: SearchResult) -> float:
    """Half of the interval of a rate that was found, as a part of it."""
    assert result.rate_per_s is not None
    assert result.low_per_s is not None
    assert result.high_per_s is not None
    return (result.high_per_s - result.low_per_s) / 2 / result.rate_per_s


def _rate(value: Estimate) -> str:
    ends = value.low is not None and value.high is not None
    interval = f" [{_rounded(value.low)}, {_rounded(value.high)}]" if ends else ""
    return f"{_rounded(value.value)} operations/s{interval}"


def _rounded(rate_per_s: float | None) -> str:
    """As the answer's table has it."""
    return number(rate_per_s, digits=DIGITS)


def _without_a_rate(who: str, limits: str, ended: Sequence[Search]) -> str:
    """The sentence where no search found the rate: the least of the lower bounds, or that no rate met the limits."""
    results = [search.result for search in ended if search.result is not None]
    bounds = {result.rate_per_s: result.reason for result in results if result.rate_per_s is not None}
    if bounds:
        least, amount = min(bounds), sum(result.rate_per_s is not None for result in results)
        searches = count(amount, "search", "searches")
        return f"{who} at least {_rounded(least)} operations/s {limits}; {searches} ended there: {bounds[least]}"
    if not results:
        return f"it is not known which rate {who} {limits}: no search has ended"
    never = all(result.outcome == "no-rate" for result in results)
    what = f"{who} no rate {limits}" if never else f"it is not known which rate {who} {limits}"
    return f"{what}: at {_lowest(ended)}"


def _lowest(ended: Sequence[Search]) -> str:
    """`25 operations/s, the lowest rate tried, p99 was 4.7 ms`."""
    windows = [(window, search.rules) for search in ended for window in search.windows if not window.generator]
    if not windows:
        return "every rate tried the load generator failed"
    window, rules = min(windows, key=lambda pair: pair[0].rate_per_s)
    limit = binding_limit(rules, window.values)
    value = window.values.get(limit.response)
    measured = "no operation was answered" if value is None else f"{_named(limit)} was {_quantity(limit, value)}"
    return f"{_rounded(window.rate_per_s)} operations/s, the lowest rate tried, {measured}"


def _outcomes(ended: Sequence[Search], *, of: int) -> list[str]:
    """A clause for each way in which searches of the treatment found no rate; they are in no average."""
    words = {
        "at-least": "found only a lower bound", "not-found": "ended before a rate met the limits",
        "no-rate": "found no rate",
    }  # fmt: skip
    clauses = []
    for outcome, how in words.items():
        rates = [search.result.rate_per_s for search in ended if search.result and search.result.outcome == outcome]
        least = min((rate for rate in rates if rate is not None), default=None)
        bound = f" (at least {_rounded(least)} operations/s)" if least is not None else ""
        clauses += [f"{len(rates)} of {count(of, 'search', 'searches')} {how}{bound}"] if rates else []
    return clauses


def _last_attempts(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The last attempt of each trial, controls aside, in order of time."""
    last: dict[str, TrialRecord] = {}
    for record in sorted(records, key=lambda record: record.attempt):
        if not record.control:
            last[record.id] = record
    return sorted(last.values(), key=lambda record: record.begun_s)
