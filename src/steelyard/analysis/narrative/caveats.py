"""What the answer does not say, and why: of the study and its load, then what the statistics warn of."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis import statistics
from steelyard.analysis.results import Results
from steelyard.analysis.statistics import stopping
from steelyard.analysis.statistics.exclusions import Exclusion
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.treatments import NODES, label
from steelyard.format import count, listed
from steelyard.model import responses
from steelyard.model.study import Study


def caveats(study: Study, results: Results) -> list[str]:
    """What the answer does not say and why, most important first."""
    found: list[str] = []
    shared = [thing for thing in ("cpu", "memory", "disk", "clock", "kernel") if thing in results.shares]
    if shared:
        named = listed(["processor" if thing == "cpu" else thing for thing in shared])
        scaling = ": adding a node adds no hardware, so nothing is said about scaling out on separate machines"
        found.append(
            f"The nodes share one {named}{scaling if 'cpu' in shared and results.size_factor in NODES else ''}."
        )
    found += stopping.caveats(results.stopping)
    faults = sum(summary.system_faults for summary in results.main(Summary))
    if faults:
        found.append(
            f"The system under test failed in {count(faults, 'trial')}; they have no place in means or medians."
        )
    gone = [label(summary.treatment) for summary in results.main(Summary) if not summary.n]
    if gone:
        found.append(f"No valid trial of: {'; '.join(gone)}.")
    if results.main(Summary) and any(0 < summary.starts < 2 for summary in results.main(Summary)):
        what = ", ".join(results.hard) or "the cluster"
        found.append(
            "Some treatments rest on one start: trials within it are repeated measures of it, so there is no error "
            f"term for {what}."
        )
    elif results.hard and any(summary.starts == 2 for summary in results.main(Summary)):
        found.append("With two starts a level the intervals are wide; more starts narrow them, more trials hardly do.")
    if results.of(Exclusion):
        found.append(_left_out(results.of(Exclusion), results.trials))
    if study.design.order == "published":
        found.append("All trials of a treatment came one after another, as published: drift would look like an effect.")
    if not study.load.is_open and responses.of(results.response).from_due:
        found.append(
            "The load is a closed loop: a slow answer delays the next request, so response times leave out the waiting "
            "that independent users would see."
        )
    for statistic in sorted(statistics.every(), key=lambda one: one.said):
        if statistic.sentences is not None:
            found += statistic.sentences(results.of(statistic.row), results.response)
    return found


def _left_out(exclusions: Sequence[Exclusion], trials: int) -> str:
    total = sum(one.trials for one in exclusions)
    why = "; ".join(f"{one.trials} {one.reason}" for one in exclusions)
    return f"{total} of {count(trials, 'trial')} (attempts counted) {'was' if total == 1 else 'were'} left out: {why}."
