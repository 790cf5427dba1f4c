"""Default of `analysis.response`: what the load of a study leaves free to vary.

A load that ends after a number of operations has its execution time as result. One that ends after a duration lasts as
long as the study says, whatever the system does: its execution time is the study's, not the system's. So where every
trial's load ends after a duration and the study names no response, the default is throughput in a closed loop, and a
percentile of the response time where the load is offered, since then the study gives the throughput, too: the 99th, or
the median where trials are too short for a 99th.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steelyard.model.load import Load, Offered
from steelyard.model.named_level import Level
from steelyard.model.percentiles import needed
from steelyard.model.study import ALIASES, Study

EXECUTION_TIME = "execution_time_ms"
"""Default of `analysis.response` in the model, which is kept where a load ends after a number of operations."""
CLOSED, OFFERED, OFFERED_BRIEFLY = "throughput_per_s", "response_ms_p99", "response_ms_p50"
SENT = 0.9
"""Share of the offered operations that a trial is expected to have at least."""


def for_its_load(study: Study, treatments: Iterable[Mapping[str, Level]]) -> Study:
    """The study with the response that suits the loads of all its treatments, if it names none. Pure."""
    suiting = None if named(study) else suiting_response(loads_of(study, treatments))
    return study if suiting is None else _with_response(study, suiting)


def as_begun(study: Study, stored: Study | None) -> Study:
    """The study with the response of its store, if it names none: another default would be another question to the
    same trials. Pure."""
    return study if stored is None or named(study) else _with_response(study, stored.analysis.response)


def named(study: Study) -> bool:
    """Whether a study names its response."""
    return "response" in study.analysis.model_fields_set


def _with_response(study: Study, response: str) -> Study:
    """The study with this response, which it still does not name."""
    further = tuple(name for name in study.analysis.responses if name != response)
    analysis = study.analysis.model_copy(update={"response": response, "responses": further})
    analysis.model_fields_set.discard("response")
    return study.model_copy(update={"analysis": analysis})


def suiting_response(loads: Iterable[Mapping[str, Any]]) -> str | None:
    """The response of loads that all end after a duration, and are all closed or all offered; None for others. A load
    is the fields of `model.load.Load` by name."""
    loads = list(loads)
    if not loads or not all(lasts_as_told(load) for load in loads):
        return None
    schedules = {schedule == "closed" for load in loads for schedule in _schedules(load)}
    if len(schedules) != 1:
        return None
    if schedules == {True}:
        return CLOSED
    return OFFERED_BRIEFLY if any(_brief(load) for load in loads) else OFFERED


def _brief(load: Mapping[str, Any]) -> bool:
    """Whether an offered load has too few operations for a 99th percentile, as far as its rates are known."""
    most = operations_of(load)
    return most is not None and SENT * most < needed(0.99)


def operations_of(load: Mapping[str, Any]) -> float | None:
    """The most operations that a trial of this load can have; None if the system decides, or a trace file."""
    if phases := load.get("phases") or ():
        due = [phase.operations_within(phase.duration_s) for phase in phases]
    elif load.get("duration_s") is not None:
        offered = Offered.model_construct(**{name: load[name] for name in Offered.model_fields if name in load})
        due = [offered.operations_within(load["duration_s"])]
    else:
        due = [None]
    known = [operations for operations in due if operations is not None]
    ends = [] if load.get("operations") is None else [float(load["operations"])]
    return min([*ends, *([sum(known)] if len(known) == len(due) else [])], default=None)


def lasts_as_told(load: Mapping[str, Any]) -> bool:
    """Whether a load lasts as long as the study says: it ends after a duration, and after no number of operations."""
    ends = load.get("duration_s") is not None and load.get("operations") is None
    return bool(load.get("phases")) or (ends and load.get("schedule") != "search")


def _schedules(load: Mapping[str, Any]) -> list[str]:
    phases = load.get("phases") or ()
    return [phase.schedule for phase in phases] if phases else [load.get("schedule", "closed")]


def told_time(study: Study, treatments: Iterable[Mapping[str, Level]]) -> str:
    """Why the execution time of a study's trials is not a result, and what to name instead, as a sentence; empty if it
    is one, or is not the response."""
    loads = loads_of(study, treatments)
    if study.analysis.response != EXECUTION_TIME or not loads or not all(lasts_as_told(load) for load in loads):
        return ""
    field = "load.phases" if study.load.phases else "load.duration_s"
    suiting = suiting_response(loads) or CLOSED
    return (
        f"Each trial lasts as long as {field} says, whatever the system does, so its execution time is not a result: "
        f'analysis.response = "{suiting}" is one'
    )


def loads_of(study: Study, treatments: Iterable[Mapping[str, Level]]) -> list[dict[str, Any]]:
    """The load of each treatment: its fields by name. They need not make sense together, which others check."""
    return [_load_of(study, treatment) for treatment in treatments]


def _load_of(study: Study, treatment: Mapping[str, Level]) -> dict[str, Any]:
    fields = {name: getattr(study.load, name) for name in Load.model_fields}
    for field, level in study.fields_of(treatment).items():
        section, _, name = ALIASES.get(field, field).partition(".")
        if section == "load":
            fields[name] = level
    return fields
