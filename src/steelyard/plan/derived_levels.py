"""Checks of thresholds that trials of a plan give for others of it, before anything starts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from types import ModuleType
from typing import Final

from steelyard.format import count, listed, number
from steelyard.heavy import np
from steelyard.judging.derived import gives
from steelyard.model import responses
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.model.policy import NONE, THRESHOLD_OF
from steelyard.model.scaling import Point, Supply
from steelyard.model.study import Study
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan.abilities import Abilities
from steelyard.policy.base import answers, bounds, policy_of

KEY: Final = f"policy.{THRESHOLD_OF}"
WORLDS: Final = 400
"""Simulated studies, from which a share is known to about 5 points."""
RESEMBLING: Final = 0.8
"""Autocorrelation of periods that resemble one another."""
CONFOUNDED: Final = (
    "the trials that give {} all come before those that use it: what drifts between these phases looks like "
    "an effect of the policy"
)
DRIFT: Final = "; design.control, a treatment without a policy, is measured in both and shows it"


def refusals(study: Study, plan: Plan, abilities: Abilities) -> Iterator[StudyError]:
    """Errors for thresholds that no trial of the plan can give."""
    needing = {trial.id.partition("-")[0]: trial for trial in plan.trials if trial.settings.policy.threshold_of}
    for trial in needing.values():
        settings, name = trial.settings, trial.settings.policy.threshold_of
        level = study.derived.get(name)
        if level is None:
            what = f"no table [derived.{name}]"
            yield StudyError(what, "add it, or state threshold", key=KEY, read=name, allowed=tuple(study.derived))
            continue
        given = [one for one in plan.trials if gives(one.settings, settings) and not one.control]
        metric = abilities.policy(settings).metric
        if not given:
            yield StudyError(
                f"no trial of the plan gives {name} for {trial.treatment}: it needs a treatment whose policy is {NONE} "
                "and whose other settings are the same", f'a level "{NONE}" of factor policy', key=KEY, read=name,
            )  # fmt: skip
        elif len(given) < level.least:
            yield StudyError(
                f"{name} needs {count(level.least, 'valid trial')}, and the plan has {len(given)} without a policy",
                "more design.starts, or a smaller least", key=f"derived.{name}.least", read=level.least,
            )  # fmt: skip
        if responses.of(level.response).percentile is not None:
            yield StudyError(
                f"{level.response} of a trial is not the mean of that of its periods, which the policy sees",
                "a response that is a mean over time", key=f"derived.{name}.response", read=level.response,
            )  # fmt: skip
        if metric != level.response:
            yield StudyError(
                f"policy {settings.policy.name} follows {metric}, and {name} is the mean of {level.response}",
                "use the same response in both", key=f"derived.{name}.response", read=level.response,
            )  # fmt: skip
    changing = next((trial for trial in plan.trials if trial.control and trial.settings.policy.changes), None)
    if needing and changing is not None:
        yield StudyError(
            f"the control has policy {changing.settings.policy.name}, so it is not measured in both phases",
            f'a control whose policy is "{NONE}"', key="design.control", read=changing.settings.policy.name,
        )  # fmt: skip
    if needing and study.design.until is not None:
        yield StudyError(
            "a stopping rule judges whole blocks, and trials that give a threshold all come before those that use it",
            "leave out [design.until]", key="design.until",
        )  # fmt: skip


def notes(study: Study, plan: Plan, abilities: Abilities) -> Iterator[str]:
    """Sentences on how often a policy acts by chance at a derived threshold, and on what the order confounds."""
    using = {trial.settings.policy.threshold_of: trial.settings for trial in reversed(plan.trials)}
    for name in study.derived:
        if name not in using:
            yield f"[derived.{name}] has no use: no policy names it in {THRESHOLD_OF}"
            continue
        settings, level = using[name], study.derived[name]
        seconds = settings.load.measured_s
        if seconds is not None:
            module = abilities.plugins.find("policy", settings.policy.name)
            low, high = (by_chance(settings, module, seconds, level.least, alike) for alike in (0.0, RESEMBLING))
            added = f"; {name} adds {number(level.add)} to it, which changes that" if level.add else ""
            yield (
                f"at the mean of {count(level.least, 'trial')} without a policy, {settings.policy.name} acts by chance "
                f"in about {100 * low:.0f}% of trials (periods independent) to {100 * high:.0f}% (each resembles the "
                f"one before: autocorrelation {RESEMBLING:g}), simulated{added}; `run` says it of those trials "
                "themselves before the first trial with a policy begins"
            )
    if used := study.derived.keys() & using.keys():
        yield CONFOUNDED.format(listed(sorted(used))) + ("" if any(trial.control for trial in plan.trials) else DRIFT)


def by_chance(settings: TrialSettings, module: ModuleType, seconds: float, trials: int, alike: float) -> float:
    """Share of trials of this length in which a policy acts although nothing changes, at a threshold that is the mean
    of other trials. Periods are normal, with the autocorrelation `alike`, and no start differs from another."""
    generator, sizes = np.random.default_rng(0), bounds(settings.policy, settings.site.nodes)
    period_s = policy_of(settings, module, 0.0).period_s
    periods = int(seconds / period_s)
    acted = 0
    for _ in range(WORLDS if periods else 0):
        values = generator.standard_normal((trials + 1, periods))
        for place in range(1, periods):
            values[:, place] = alike * values[:, place - 1] + math.sqrt(1 - alike**2) * values[:, place]
        policy = policy_of(settings, module, float(values[:-1].mean()))
        points = [Point((place + 1) * period_s, float(value), 1) for place, value in enumerate(values[-1])]
        changes = islice(answers(policy, sizes, 1, points, [Supply(0.0, sizes.nodes)], seconds), 1, None)
        acted += next(changes, None) is not None
    return acted / WORLDS
