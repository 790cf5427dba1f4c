"""Probes that a system cannot be read by: refused before a start, where the system knows its ways in by then."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.judging.settings_hash import canonical
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.plan.abilities import Abilities
from steelyard.plugin_factory import make_probe
from steelyard.probe.base import ReadsWay, no_way
from steelyard.system.base import Offers


def refusals(study: Study, plan: Plan, abilities: Abilities) -> Iterator[StudyError]:
    """An error for each probe whose way in a system of the plan does not offer."""
    distinct = {canonical(trial.settings.part("system")): trial.settings for trial in plan.trials}
    systems = [abilities.system(settings) for settings in distinct.values()]
    for name in study.probes:
        probe = make_probe(abilities.plugins, name, study.probe.get(name, {}))
        for system in systems:
            if isinstance(probe, ReadsWay) and isinstance(system, Offers) and probe.way not in system.offers:
                what = no_way(name, probe.way, system.offers)
                yield StudyError(f"probes: {what}", f"leave {name!r} out of `probes`", key="probes", read=name)
