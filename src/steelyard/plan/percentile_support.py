"""Percentiles that trials cannot support: a trial with fewer operations than a percentile needs has no value of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.judging.load_response import operations_of
from steelyard.judging.settings_hash import canonical
from steelyard.model import responses
from steelyard.model.errors import StudyError
from steelyard.model.load import Load
from steelyard.model.percentiles import needed
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.plan.abilities import Abilities, load_of
from steelyard.plan.limited_times import limited_times
from steelyard.plan.phase_times import closed_per_s


def refusals(study: Study, plan: Plan, history: Sequence[TrialRecord]) -> Iterator[StudyError]:
    """Errors for percentiles of which no trial of a treatment can have a value, by operations or by rate and duration;
    none in a study that has begun, which must be able to continue, and none in a scaled one, which is a rehearsal."""
    if history or "-scale-" in study.study.name:
        return
    for load in {canonical(trial.settings.part("load")): load_of(trial.settings) for trial in plan.trials}.values():
        most = operations_of({name: getattr(load, name) for name in Load.model_fields})
        for name, least in _needed(study):
            if most is not None and most < least:
                key = "operations" if load.operations is not None else "phases" if load.phases else "duration_s"
                yield StudyError(
                    f"{name} needs {least:,} operations per trial, and load.{key} gives {most:,.0f}: no trial would "
                    "have a value",
                    f"longer trials, or a lower percentile: with {most:,.0f} operations up to "
                    f"p{100 * max(0.0, 1 - 10 / most):.3g}",
                    key=f"load.{key}",
                )


def notes(study: Study, plan: Plan, abilities: Abilities, cores: int) -> Iterator[str]:
    """Sentences on closed loops that end by time, of which the number of operations is only estimated."""
    for settings in {canonical(trial.settings.root): trial.settings for trial in plan.trials}.values():
        load = load_of(settings)
        if load.schedule != "closed" or load.phases or load.operations is not None or load.duration_s is None:
            continue
        about = load.duration_s * closed_per_s(load, limited_times(settings, abilities, cores, warm=True))
        for name, least in _needed(study):
            if about < least:
                yield (
                    f"{name} needs {least:,} operations per trial, and in load.duration_s = {load.duration_s:g} about "
                    f"{about:,.0f} are expected: such trials have no value of it"
                )


def _needed(study: Study) -> Iterator[tuple[str, int]]:
    """Each percentile of operations that the study analyses, with the operations that it needs."""
    for name in study.analysis.needed:
        q = responses.of(name).percentile
        if q is not None and responses.of(name).source == "records":
            yield name, needed(q)
