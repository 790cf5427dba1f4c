"""Caveats of the answer: from the study and its load, then from the statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steelyard.analysis import dilated, statistics
from steelyard.analysis.inference.estimates import FEWEST_STARTS
from steelyard.analysis.narrative import first_trials, stand_ins
from steelyard.analysis.results import Results
from steelyard.analysis.statistics import server_warm_up, stopping, trend
from steelyard.analysis.statistics.exclusions import Exclusion
from steelyard.analysis.statistics.law_choice import SIMULATED
from steelyard.analysis.statistics.main_effect import MainEffect
from steelyard.analysis.statistics.server_warm_up import WarmedStart
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.statistics.trend import Trend
from steelyard.analysis.statistics.trials import Point
from steelyard.analysis.treatments import NODES, label
from steelyard.format import count, listed
from steelyard.judging import load_response
from steelyard.model import responses
from steelyard.model.node_limits import NodeLimits
from steelyard.model.study import Study

OF_SIMULATED: Final = "The cluster is simulated: this says what the laboratory finds, nothing about any database."

OF_PLANTED: Final = "Its times are planted: they do not follow the limits of nodes."
OF_EMULATED: Final = (
    "The processors of virtual machines were emulated (QEMU without KVM): times are those of the emulation, which "
    "slows some work far more than other, and of no hardware."
)


def caveats(study: Study, results: Results, *, emulated: bool = False) -> list[str]:
    """Caveats, most important first. `emulated`: whether processors of nodes were."""
    told_time = load_response.told_time(study, [summary.treatment for summary in results.main(Summary)])
    sentences = [f"{told_time}."] if told_time else []
    sentences += _cold(study, results)
    sentences += trend.first_rank(results.of(Trend)) or first_trials.sentences(
        results.of(Point), results.response, study.analysis.warm_up_trials
    )
    stretched = dilated.sentence(dilated.dilations_of_study(study))
    sentences += [stretched] if stretched else []
    if study.system.name == SIMULATED:
        sentences.append(OF_SIMULATED)
        limited = study.node != NodeLimits() or any(name.startswith("node.") for name in study.factors)
        sentences += [OF_PLANTED] if limited else []
    sentences += [OF_EMULATED] if emulated else []
    stand_in = stand_ins.sentence(study)
    sentences += [stand_in] if stand_in else []
    sentences += server_warm_up.cold_starts(results.of(WarmedStart))
    shared = [thing for thing in ("cpu", "memory", "disk", "clock", "kernel") if thing in results.shares]
    if shared:
        named = listed(["processor" if thing == "cpu" else thing for thing in shared])
        scaling = ": adding a node adds no hardware, so this says nothing about scaling out on separate machines"
        sentences.append(
            f"The nodes share one {named}{scaling if 'cpu' in shared and results.size_factor in NODES else ''}."
        )
    published = study.design.order == "published"
    sentences += stopping.caveats(results.stopping)
    faults = sum(summary.system_faults for summary in results.main(Summary))
    if faults:
        sentences.append(
            f"The system under test failed in {count(faults, 'trial')}; they have no place in means or medians."
        )
    gone = [label(summary.treatment) for summary in results.main(Summary) if not summary.n]
    if gone:
        sentences.append(f"No valid trial of: {'; '.join(gone)}.")
    if results.main(Summary) and any(0 < summary.starts < 2 for summary in results.main(Summary)):
        what = ", ".join(results.hard) or "the cluster"
        sentences.append(
            "Some treatments rest on one start: trials within it are repeated measures of it, so there is no error "
            f"term for {what}."
        )
    elif results.hard and any(summary.starts == 2 for summary in results.main(Summary)):
        sentences.append(
            "With two starts per level the intervals are wide; more starts narrow them, more trials hardly do."
            if results.of(MainEffect)
            else f"Two starts of a level give no interval: one takes {FEWEST_STARTS}, however many trials."
        )
    if results.of(Exclusion):
        sentences.append(_left_out(results.of(Exclusion), results.trials))
    if published:
        sentences.append(
            "All trials of a treatment came one after another, as published: drift would look like an effect."
        )
    if not study.load.is_open and responses.of(results.response).from_due:
        sentences.append(
            "The load is a closed loop: a slow answer delays the next request, so response times leave out the waiting "
            "that independent users would see."
        )
    for statistic in sorted(statistics.every(), key=lambda one: one.sentence_order):
        if statistic.sentences is not None:
            sentences += statistic.sentences(results.of(statistic.row), results.response)
    return sentences


def _cold(study: Study, results: Results) -> list[str]:
    """That the servers were not warmed up, and what follows from it; empty where they were, or need it not."""
    if not _may_be_cold(study):
        return []
    published = ", as published" if study.design.order == "published" else ""
    colder = (
        ": the nodes of a larger cluster serve fewer operations each, so that they were colder"
        if results.size_factor in NODES
        else ": they may have become faster from trial to trial, so that a level depends on how many a start has"
    )
    return [f"The servers were not warmed up before the trials{published}{colder}."]


def _may_be_cold(study: Study) -> bool:
    """Whether the servers may have got faster during the trials: they were not warmed up, and may compile code.

    A store says "off" also where its system needs no server warm-up. That of a simulated cluster is planted.
    """
    planted = study.system.settings.get("warm_up") or "system.warm_up" in study.factors
    return study.server_warm_up.mode == "off" and (study.system.name != SIMULATED or bool(planted))


def _left_out(exclusions: Sequence[Exclusion], trials: int) -> str:
    total = sum(one.trials for one in exclusions)
    why = "; ".join(f"{one.trials} {one.reason}" for one in exclusions)
    return f"{total} of {count(trials, 'attempt')} {'was' if total == 1 else 'were'} left out: {why}."
