"""Check of the responses that a study names: whether its probes and its prices can give them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from steelyard.model import power, responses
from steelyard.model.disruption import NONE
from steelyard.model.errors import StudyError
from steelyard.model.policy import KEEPING
from steelyard.model.response import Response
from steelyard.model.responses import cost, disruption, energy, scaling
from steelyard.model.study import Study
from steelyard.plugins.find import Plugins
from steelyard.study.fields import names_of
from steelyard.tomlfile.problems import problem


def named_responses(study: Study) -> Mapping[str, str]:
    """Every response that a study names, by the key that names it."""
    analysis, until = study.analysis, study.design.until
    named = {"analysis.response": analysis.response}
    named |= {f"analysis.responses.{place}": name for place, name in enumerate(analysis.responses)}
    if analysis.limit is not None:
        named["analysis.objective"] = analysis.limit.response
    if until is not None and until.response != "main":
        named["design.until.response"] = until.response
    return named


def response_problems(study: Study, plugins: Plugins) -> list[StudyError]:
    """Problems with responses that no trial of the study could have, each with the key that names the response.

    What depends on the treatments, as capacity does on a search, is checked with the plan: `plan/load_feasibility.py`.
    """
    analysis, until, named = study.analysis, study.design.until, named_responses(study)
    lacks = [(key, name, what) for key, name in named.items() for what in _lacks(study, responses.of(name), plugins)]
    problems = [problem(key, name, what) for key, name, what in lacks]
    twice = [name for place, name in enumerate(analysis.responses) if name in analysis.responses[:place]]
    problems += [problem("analysis.responses", name, "is given twice") for name in dict.fromkeys(twice)]
    if analysis.response in analysis.responses:
        what = "is already the main response: name only further ones"
        problems.append(problem("analysis.responses", analysis.response, what))
    if until is not None and until.response == "main" and responses.of(analysis.response).source == "study":
        what = "no stopping rule can wait for it: choose design.until.response"
        problems.append(problem("analysis.response", analysis.response, what))
    return problems


def _lacks(study: Study, response: Response, plugins: Plugins) -> Iterator[str]:
    measure = response.measure
    metered = measure is not None and measure.power and measures_in(power.UNIT, study, plugins)
    if measure is not None and measure.probe and measure.probe not in study.probes and not metered:
        runs = ", ".join(study.probes) or "none"
        yield f"is read by the probe {measure.probe!r}, which the study does not run: probes has {runs}"
    if response in cost.RESPONSES and study.cost.price_per_node_hour is None:
        yield "needs a price: declare cost.price_per_node_hour and cost.currency"
    if response.name.startswith(energy.MODELLED) and study.cost.node_watts_busy is None:
        yield "needs the power of a node: declare cost.node_watts_idle and cost.node_watts_busy"
    if measure is not None and measure.during == "idle" and not study.measure_idle_s:
        yield "needs an idle time before each trial: set measure_idle_s"
    if measure is not None and measure.above_idle and not study.measure_idle_s:
        if measure.during == "jobs":
            yield "needs the power of an idle node: set measure_idle_s"
        elif study.cost.node_watts_idle is None:
            yield "needs the power of an idle node: set measure_idle_s, or declare cost.node_watts_idle"
    if measure is not None and measure.above_idle and not study.measure_idle_s and study.cost.gain_error_percent:
        yield "needs an idle that the meter itself has read, because of cost.gain_error_percent: set measure_idle_s"
    disrupts = not set(names_of(study)["disruption"]) <= {NONE}
    if response in disruption.RESPONSES and not disrupts:
        yield "needs a disruption: choose disruption.name"
    shared = disrupts and response.name in disruption.SHARED
    if response in scaling.RESPONSES and set(names_of(study)["policy"]) <= set(KEEPING) and not shared:
        yield "needs a cluster that may change its size: choose policy.name"
    if response in scaling.OF_DEMAND and study.analysis.demand is None:
        yield "needs the operations per second that each size carries: declare analysis.demand"


def measures_in(unit: str, study: Study, plugins: Plugins) -> bool:
    """Whether any probe of a study reads metrics in a unit. A probe that cannot be made is reported by the caller."""
    for name in study.probes:
        try:
            module = plugins.find("probe", name)
            model = getattr(module, "Settings", None)
            settings = () if model is None else (model.model_validate(study.probe.get(name, {})),)
        except (StudyError, ValidationError):
            continue
        if any(metric.unit == unit for metric in module.create(*settings).metrics):
            return True
    return False
