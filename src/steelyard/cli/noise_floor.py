"""The machine's noise floor on the command line: the one a study will be judged against, and keeping a new one."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from steelyard.analysis.comparisons import identical_systems
from steelyard.analysis.comparisons.level_pairs import Shared
from steelyard.analysis.frame import frame_of
from steelyard.analysis.statistics import noise_floor
from steelyard.cli.terminal.output import say
from steelyard.format import confidence_text, number
from steelyard.judging.noise_floor import FoundFloor, circumstances, in_words, unlike
from steelyard.model.plan import Plan
from steelyard.model.responses import label_of
from steelyard.model.study import Study
from steelyard.node import machine_facts
from steelyard.node import noise_floor as kept
from steelyard.node.folders import state_folder
from steelyard.store import Store

LOCAL = "local"
"""The site whose nodes are made of this machine."""


def floor_for(study: Study, plan: Plan) -> tuple[FoundFloor, str]:
    """The kept floor for a study on this machine (with server warm-up on or off, as preflight decided), and a sentence
    on what its verdicts will be judged against."""
    if study.design.kind == "same":
        return FoundFloor(why=""), "this study measures it: it is kept for later studies on this machine"
    treatments = {trial.id.partition("-")[0]: trial.settings for trial in plan.trials}
    warmed_up = study.server_warm_up.mode == "on"
    of = [circumstances(one, [machine_facts.facts()], warmed_up=warmed_up) for one in treatments.values()]
    floor_found = kept.find(state_folder(), of)
    clauses = []
    if study.design.control is not None:
        clauses.append("the study's own control cells, where they suffice")
    if floor_found.floor is not None:
        floor = identical_systems.Floors(stored=floor_found, confidence=study.analysis.confidence)
        clauses.append(_floor_sentence(floor, study, plan))
        if differing := unlike(floor_found.floor, of):
            clauses.append(f"measured with {in_words(differing)}, which this study has nowhere")
    else:
        clauses.append(f"none: {floor_found.why}")
    if any(one.site != LOCAL for one in of):
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
    told_ways = [f"{number(one.percent.value, digits=2)}% {what}" for one, what in estimates if one is not None]
    where = next((one.words for one, _ in estimates if one is not None), "")
    if not told_ways:
        return "none: the kept one has no such response, or no factor varies"
    share = f"{confidence_text(study.analysis.confidence)}"
    return f"{label_of(response)} of identical systems stays below {' and '.join(told_ways)} at {share} ({where})"


def keep(folder: Path, console: Console, *, scaled: bool = False) -> None:
    """Keep what a study of identical systems found, and say so; say why not, if it is too little. One that was tried
    with `--scale` (`scaled`) says nothing of the trials that studies have."""
    if scaled:
        say(console, "no noise floor is kept of a study with --scale")
        return
    store = Store(folder)
    records, study = store.trials(), store.study
    frame = frame_of(records, study)
    of = store.circumstances(records)
    measured = identical_systems.measured(frame, study.study.name, of[0]) if of else None
    if measured is None:
        least = identical_systems.LEAST_DEGREES
        words = f"no noise floor is kept: it needs {least + 1} starts or more with two used trials or more in some"
    else:
        where = kept.write(state_folder(), measured)
        floors = identical_systems.floors_of(frame, None, study.analysis.confidence, study)
        words = noise_floor.noise_floor(frame, study.analysis.response, floors, study).sentence
        words += f"\nkept in {where}: later studies here are judged against it"
    say(console, words)
