"""Dilation: a study run in stretched time, and its results in the time of the hardware that it models. Pure.

With k = `node.dilation`, limits and offered rates are divided by k and durations, timeouts and delays multiplied when
a study is run: everything happens k times as slowly. Trials keep what the clock said. `modelled` takes them back:
times divided by k, rates multiplied by it. What is counted (operations, errors, bytes in all, hits), what is processor
work (CPU time) and what is a share stays as it is. The table is in docs/explanation/dilation.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from steelyard.model import responses as registered
from steelyard.model.link import LinkChoice
from steelyard.model.load import Load, LoadPhase, Offered
from steelyard.model.node_limits import NodeLimits
from steelyard.model.objective import Limit, parse
from steelyard.model.plausible import number_in
from steelyard.model.search import SATURATION, Search, Window
from steelyard.model.trial import Capacity, PhaseTime, Responses, TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.model.value import Value

COVARIATE: Final = "dilation"
"""The covariate, and the fact of a node, that mark a dilated trial."""
OF_SEVERAL: Final = "(_(min|mean|max|p50|p99|least|after))*"
"""Ends of names that say which of several values it is."""
PER_SECOND: Final = re.compile(rf"(_per_s|_watts|_mbit|(^|_)cores){OF_SEVERAL}$")
"""Names of fields, metrics, covariates and facts that count something per second; cores are processor seconds per
second."""
SECONDS: Final = re.compile(rf"(_(s|ms|us|ns)|^seconds){OF_SEVERAL}$")
"""Names that are times."""
Fields = TypeVar("Fields", bound=Value)


def effective_limits(limits: NodeLimits) -> NodeLimits:
    """The limits that a site puts in force: processors and rates of the disk divided by the dilation. What they give is
    dilated no further."""
    k = limits.dilation
    if k == 1:
        return limits
    divided: dict[str, Any] = {"dilation": 1.0}
    for name, value in limits:
        if value is not None and (name == "cpus" or PER_SECOND.search(name)):
            divided[name] = max(1, round(value / k)) if isinstance(value, int) else value / k
    return limits.model_copy(update=divided)


def effective_link(link: LinkChoice, dilation: float) -> LinkChoice:
    """The link as it is made: its rate divided by the dilation, its delays multiplied. Airtimes of 802.11 are stretched
    by the program that plays it."""
    return link.model_copy(update={**_stretched_numbers(dict(link), dilation), "ack_rate_mbit": link.ack_rate_mbit})


def effective_load(settings: TrialSettings) -> Load:
    """The load as it is offered: rates divided by the dilation, durations, timeouts and limits in ms multiplied."""
    load, k = settings.load, settings.node.dilation
    return load if k == 1 else load.model_copy(update=_stretched_load(load, k))


def _stretched_load(load: Load, k: float) -> dict[str, Any]:
    update = _stretched(load, k)
    update["timeout_ms"] = round(load.timeout_ms * k)
    update["phases"] = tuple(phase.model_copy(update=_stretched(phase, k)) for phase in load.phases)
    update["objective"] = tuple(text if text == SATURATION else _limit(parse(text), k).text for text in load.objective)
    return update


def _stretched(offered: Offered | LoadPhase, k: float) -> dict[str, Any]:
    update: dict[str, Any] = dict(_stretched_numbers(dict(offered), k))
    if offered.rates_per_s is not None:
        update["rates_per_s"] = tuple(rate / k for rate in offered.rates_per_s)
    if offered.schedule == "trace":
        update["speed"] = (offered.speed or 1.0) / k
    return update


def _limit(limit: Limit, factor: float) -> Limit:
    """A limit of an objective whose times are multiplied; shares stay."""
    known = registered.every().get(limit.response)
    dilates = "" if known is None else known.dilates
    if not dilates:
        return limit
    return limit.model_copy(update={"value": limit.value * factor if dilates == "time" else limit.value / factor})


def modelled(record: TrialRecord) -> TrialRecord:
    """The record in the time of the hardware that it models, marked by a covariate; unchanged if it is not
    dilated, or is in that time already. Times of
    the day (when it began and ended) stay those of the clock; its phases are counted from when it began."""
    k = record.settings.node.dilation
    if k == 1 or COVARIATE in record.covariates:
        return record
    rate_per_s, capacity, search = record.offered_rate_per_s, record.capacity, record.search
    return record.model_copy(
        update={
            "responses": _responses(record.responses, k),
            "phase_responses": {name: _responses(part, k) for name, part in record.phase_responses.items()},
            "measures": {name: _response(name, value, k) for name, value in record.measures.items()},
            "covariates": {
                **{name: modelled_value(name, value, k) for name, value in record.covariates.items()},
                COVARIATE: k,
            },
            "phases": tuple(_phase(record, phase) for phase in record.phases),
            "offered_rate_per_s": None if rate_per_s is None else rate_per_s * k,
            "capacity": None if capacity is None else _capacity(capacity, k),
            "search": None if search is None else _search(search, k),
        }
    )


def modelled_s(record: TrialRecord, t_s: float) -> float:
    """A time within a trial (seconds since the epoch) in modelled time, counted from when the trial began; a time
    before it stays."""
    since_s = t_s - record.begun_s
    return t_s if since_s <= 0 else record.begun_s + since_s / record.settings.node.dilation


def modelled_value(name: str, value: float, k: float) -> float:
    """A metric, covariate or fact in modelled time, by what its name says it is."""
    if PER_SECOND.search(name):
        return value * k
    return value / k if SECONDS.search(name) else value


def _modelled(value: Fields, k: float) -> Fields:
    """A value in modelled time: its numbers, by what their names say."""
    return value.model_copy(update={name: modelled_value(name, one, k) for name, one in _timed(dict(value)).items()})


def _stretched_numbers(values: Mapping[str, Any], k: float) -> dict[str, float]:
    """The numbers that are per second, divided, and those that are times, multiplied."""
    return {name: one / k if PER_SECOND.search(name) else one * k for name, one in _timed(values).items()}


def _timed(values: Mapping[str, Any]) -> dict[str, float]:
    """The numbers whose names say that they are per second, or times."""
    numbers = {name: one for name, one in values.items() if isinstance(one, int | float) and not isinstance(one, bool)}
    return {name: one for name, one in numbers.items() if PER_SECOND.search(name) or SECONDS.search(name)}


def modelled_facts(facts: Mapping[str, str], k: float) -> dict[str, str]:
    """Facts of a node: its limits in modelled time, and the dilation."""
    changed = {
        name: f"{modelled_value(name, number, k):g}"
        for name, text in facts.items()
        if name.startswith("limit_") and (name == "limit_cpus" or PER_SECOND.search(name))
        if (number := number_in(text)) is not None
    }
    if "limit_cpus" in changed:
        changed["limit_cpus"] = f"{float(facts['limit_cpus']) * k:g}"
    return {**facts, **changed, COVARIATE: f"{k:g}"}


def modelled_links(links: Sequence[Mapping[str, Any]], k: float) -> list[dict[str, Any]]:
    """Measured paths in modelled time."""
    return [{**link, **{name: modelled_value(name, one, k) for name, one in _timed(link).items()}} for link in links]


def _responses(values: Responses, k: float) -> Responses:
    names = [name for name in registered.every() if values.has(name)]
    known = {name: values.of(name) for name in names}
    return values.model_copy(
        update={name: _response(name, value, k) for name, value in known.items() if value is not None}
    )


def _response(name: str, value: float, k: float) -> float:
    known = registered.every().get(name)
    match "" if known is None else known.dilates:
        case "time":
            return value / k
        case "rate":
            return value * k
    return value


def _phase(record: TrialRecord, phase: PhaseTime) -> PhaseTime:
    left_s = None if phase.left_s is None else modelled_s(record, phase.left_s)
    return phase.model_copy(update={"entered_s": modelled_s(record, phase.entered_s), "left_s": left_s})


def _capacity(capacity: Capacity, k: float) -> Capacity:
    return _modelled(capacity, k).model_copy(update={"measured_s": capacity.measured_s})


def _search(search: Search, k: float) -> Search:
    limits = tuple(_limit(limit, 1 / k) for limit in search.rules.limits)
    rules = _modelled(search.rules, k).model_copy(update={"limits": limits})
    windows = tuple(_window(window, k) for window in search.windows)
    result = None if search.result is None else _modelled(search.result, k)
    if result is not None and result.reason:
        reason = f"{result.reason} (numbers of the clock, not of the hardware modelled)"
        result = result.model_copy(update={"reason": reason})
    return search.model_copy(update={"rules": rules, "windows": windows, "result": result})


def _window(window: Window, k: float) -> Window:
    values = {name: None if value is None else _response(name, value, k) for name, value in window.values.items()}
    return _modelled(window, k).model_copy(update={"values": values})
