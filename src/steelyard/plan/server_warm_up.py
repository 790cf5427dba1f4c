"""Whether the servers of a study are warmed up: decided before its first trial, kept for all that follow."""

from __future__ import annotations

from steelyard.model.plan import Plan
from steelyard.model.server_warm_up import ServerWarmUp
from steelyard.model.study import Study
from steelyard.plan.abilities import Abilities
from steelyard.plugin import Plugins
from steelyard.system.base import warms_up


def as_begun(study: Study, plan: Plan, stored: ServerWarmUp | None, plugins: Plugins) -> Study:
    """The study with `mode` on or off. One whose store has trials goes on as these were made (`stored`); a change that
    its file asks for is refused by `changed_study`. Otherwise auto is on if a system of the plan compiles code while it
    runs."""
    if stored is not None:
        return study.model_copy(update={"server_warm_up": stored})
    abilities = Abilities(plugins)
    settings = {trial.settings.system.name: trial.settings for trial in plan.trials}
    on = any(warms_up(study.server_warm_up, abilities.system(one)) for one in settings.values())
    decided = study.server_warm_up.model_copy(update={"mode": "on" if on else "off"})
    return study.model_copy(update={"server_warm_up": decided})
