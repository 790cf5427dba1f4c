"""Checks of a plan whose nodes are disrupted during trials, before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steelyard.disruption.base import Cautions, refused
from steelyard.format import count, listed
from steelyard.judging.activity_windows import CALM_S
from steelyard.judging.disruptions import targets
from steelyard.model.disruption import NONE, SETS
from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.model.policy import NONE as NO_POLICY
from steelyard.model.policy import SCHEDULED
from steelyard.model.responses import disruption as of_disruptions
from steelyard.model.study import Study
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan.abilities import Abilities, distinct
from steelyard.study.named_responses import named_responses


def refusals(study: Study, plan: Plan, abilities: Abilities) -> Iterator[StudyError]:
    """Errors for disruptions that a site, a system or a load cannot follow, and for what their controls cannot have."""
    parts = ("site", "system", "load", "data", "node", "policy", "disruption")
    every = [one for one in distinct(plan, *parts) if one.disruption.disrupts]
    errors = [error for settings in every for error in _of(settings, abilities)]
    yield from {error.message: error for error in errors}.values()
    controls = sum(not trial.settings.disruption.disrupts for trial in plan.trials)
    of_disrupted = {*(one.name for one in of_disruptions.RESPONSES), *of_disruptions.SHARED} - {
        *of_disruptions.OF_CONTROLS
    }
    for key, name in named_responses(study).items() if every and controls else ():
        if name in of_disrupted and not key.startswith("analysis.responses."):
            yield StudyError(
                f"in {controls} of {count(len(plan.trials), 'trial')} nothing is disrupted, so they have no {name}",
                f"allowed with such a control: {', '.join(of_disruptions.OF_CONTROLS)}, and what every trial has. Name "
                f"{name} in analysis.responses: it is compared among disruptions there",
                key=key, read=name,
            )  # fmt: skip


def _of(settings: TrialSettings, abilities: Abilities) -> Iterator[StudyError]:
    choice, load, lasts_s = settings.disruption, settings.load, settings.load.measured_s or 0.0
    nodes = [f"n{number}" for number in range(1, settings.site.nodes + 1)]
    chosen = targets(choice, nodes, 0)
    named = () if choice.on in SETS else tuple(choice.on.split(","))
    unknown = [node for node in named if node not in nodes]
    system, site = abilities.system(settings), abilities.site(settings)
    impossible = refused(abilities.disruption(settings), settings, system, site)
    needed_s = choice.at_s + choice.whole_s
    problems: tuple[tuple[object, str, str, str, Any], ...] = (
        (impossible, f"disruption {choice.name} is not possible: {impossible}", "", "disruption.name", choice.name),
        (
            settings.policy.changes and settings.policy.name != SCHEDULED,
            f"when policy {settings.policy.name} changes the cluster's size is not known before: it may be due to the "
            "disruption",
            f'policy.name = "{SCHEDULED}" or "{NO_POLICY}", or disruption.name = "{NONE}"', "disruption.name",
            choice.name,
        ),
        (
            load.measured_s is None or load.schedule == "search",
            "a disruption has its time in the measured phase, whose length this load does not say",
            "load.duration_s, with another load.schedule than search", "disruption.name", choice.name,
        ),
        (
            settings.data.state == "continue",
            "a trial that is disrupted ends its start, so that none can continue from its data",
            'data.state = "restore"', "data.state", "continue",
        ),
        (
            settings.node.dilation != 1, "a disruption's times are of the clock, which dilation does not slow down",
            "node.dilation = 1", "node.dilation", settings.node.dilation,
        ),
        (unknown, f"there is no node {', '.join(unknown)}", f"{nodes[0]} to {nodes[-1]}", "disruption.on", choice.on),
        (
            not unknown and not chosen,
            f"of {count(len(nodes), 'node')}, none can be missed without the majority", 'on = "one"', "disruption.on",
            choice.on,
        ),
        (
            choice.at_s < CALM_S, f"measures compare with at least {CALM_S} s before the disruption",
            f"disruption.at_s from {CALM_S} on", "disruption.at_s", choice.at_s,
        ),
        (
            lasts_s and needed_s > lasts_s,
            f"the load ends after {lasts_s:g} s, and nodes may take until {needed_s:g} s to recover (at_s + for_s + "
            "recover_s)",
            "a longer load.duration_s, an earlier at_s, or a lower recover_s", "disruption.at_s", choice.at_s,
        ),
        (
            choice.every_s and choice.every_s < choice.whole_s,
            f"every {choice.every_s:g} s, two disruptions may be at once on one node: each takes up to "
            f"{choice.whole_s:g} s (for_s + recover_s)",
            f"disruption.every_s from {choice.whole_s:g} on, or 0 for one", "disruption.every_s", choice.every_s,
        ),
    )  # fmt: skip
    yield from (StudyError(what, hint, key=key, read=read) for wrong, what, hint, key, read in problems if wrong)


def notes(plan: Plan, abilities: Abilities) -> Iterator[str]:
    """Sentences on what is done, and on what it takes."""
    every = [one for one in distinct(plan, "site", "system", "load", "disruption") if one.disruption.disrupts]
    sentences = {}
    for settings in every:
        choice, disruption = settings.disruption, abilities.disruption(settings)
        if isinstance(disruption, Cautions) and (costs := disruption.caution(abilities.system(settings))):
            sentences[f"disruption {choice.name}: {costs}"] = True
        begins = [f"{at_s:g}" for at_s in choice.begins_s(settings.load.measured_s or 0.0)]
        at = listed(begins) if len(begins) < 5 else f"{begins[0]}, {begins[1]} ... {begins[-1]}"
        sentences[f"disruption {choice.words}, at {at} s of the measured phase"] = True
    yield from sentences
    disrupted = [trial for trial in plan.trials if trial.settings.disruption.disrupts]
    starts = {trial.start for trial in disrupted}
    if len(disrupted) > len(starts):
        yield (
            f"a trial that is disrupted ends its start: {len(disrupted)} trials take {len(disrupted)} starts, not "
            f"{len(starts)}"
        )
    if plan.trials and len(disrupted) == len(plan.trials):
        yield (
            f'every treatment is disrupted: without a control (level "{NONE}" of a factor `disruption`), what happens '
            "anyhow cannot be distinguished from the disruption"
        )
