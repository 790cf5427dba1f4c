"""The noise floor that a study on this machine will be judged against."""

from __future__ import annotations

from steelyard.analysis.comparisons import identical_systems
from steelyard.analysis.comparisons.level_pairs import Shared
from steelyard.format import confidence_text, number
from steelyard.judging.noise_floor import FoundFloor, circumstances, in_words, unlike
from steelyard.model.plan import Plan
from steelyard.model.responses import label_of
from steelyard.model.study import Study
from steelyard.node import machine_facts
from steelyard.node import noise_floor as kept
from steelyard.node.folders import state_folder
from steelyard.plan.abilities import Abilities
from steelyard.site.base import on_this_machine


def floor_for(study: Study, plan: Plan, abilities: Abilities) -> tuple[FoundFloor, str]:
    """The kept floor for a study on this machine (with server warm-up on or off, as preflight decided), and a sentence
    on what its verdicts will be judged against."""
    if study.design.kind == "same":
        return FoundFloor(why=""), "measured by this study and kept for later studies on this machine"
    treatments = {trial.id.partition("-")[0]: trial.settings for trial in plan.trials}
    warmed_up = study.server_warm_up.mode == "on"
    of = [circumstances(one, [machine_facts.facts()], warmed_up=warmed_up) for one in treatments.values()]
    floor_found = kept.find(state_folder(), of)
    clauses = []
    if study.design.control is not None:
        clauses.append("the study's own control cells, if sufficient")
    if floor_found.floor is not None:
        floor = identical_systems.Floors(stored=floor_found, confidence=study.analysis.confidence)
        clauses.append(_floor_sentence(floor, study, plan))
        if differing := unlike(floor_found.floor, of):
            clauses.append(f"measured with {in_words(differing)}, which this study does not use")
    else:
        clauses.append(f"none: {floor_found.why}")
    sites = [site for settings in treatments.values() for site in abilities.sites(settings)]
    if not all(on_this_machine(site) and "kernel" in site.shares for site in sites):
        clauses.append("if its nodes are like this machine")
    return floor_found, "; ".join(clauses)


def _floor_sentence(floors: identical_systems.Floors, study: Study, plan: Plan) -> str:
    """`±4.2% (study noise-floor of ...)`, for this study's numbers of starts and trials."""
    response = study.analysis.response
    level = [max(1, study.design.trials - study.analysis.warm_up_trials)] * study.design.starts
    varied = {factor for factor, levels in plan.factors.items() if len(levels) > 1}
    ways: list[tuple[Shared, str]] = [("block", "over starts")] if varied & set(plan.hard) else []
    ways += [("start", "within starts")] if varied - set(plan.hard) else []
    estimates = [(floors.of(response, level, level, shared), what) for shared, what in ways]
    phrases = [f"{number(one.percent.value, digits=2)}% {what}" for one, what in estimates if one is not None]
    where = next((one.words for one, _ in estimates if one is not None), "")
    if not phrases:
        return "none: the kept one has no such response, or no factor varies"
    share = f"{confidence_text(study.analysis.confidence)}"
    return f"{label_of(response)} of identical systems stays below {' and '.join(phrases)} at {share} ({where})"
