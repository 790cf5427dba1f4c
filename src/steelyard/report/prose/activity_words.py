"""Words of the page on changes of size: how many, whose clock their times are by, under which policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from steelyard.analysis.wording import capital
from steelyard.format import count, listed
from steelyard.judging.disruptions import marked_s
from steelyard.model.activity import HEALED
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings

SOURCES: Final = {
    "log": "a mark from a node's log is exact to 1 ms of that node's clock, whose offset is corrected",
    "seen": "a mark that the conductor saw is late by its reaction, mostly some milliseconds",
    "load": "a mark of the load client is the time at which it sent its first operation to the node",
}
"""Source of a mark to the resolution of its time."""


def activity_words(records: Sequence[TrialRecord]) -> Iterator[str]:
    """How many activities there were and how they ended, then clock and resolution of their times."""
    every = [activity for record in records for activity in record.activities]
    outcomes = [
        f"{number} {outcome}"
        for outcome in ("done", "failed", "unfinished")
        if (number := sum(activity.outcome == outcome for activity in every))
    ]
    trials = sum(bool(record.activities) for record in records)
    yield (
        f"{count(len(every), 'activity', 'activities')} in {count(trials, 'attempt')}: {listed(outcomes)}. A trial is "
        "one observation, however many nodes joined or left in it."
    )
    sources = {mark.by for activity in every for mark in activity.marks}
    if sources:
        exact = capital("; ".join(text for source, text in SOURCES.items() if source in sources))
        yield f"Times are on the conductor's clock. {exact}."


def changes_of_size(records: Sequence[TrialRecord]) -> str:
    """A sentence on policies under which clusters changed their size; empty without any."""
    changing = [record.settings for record in records if record.settings.policy.changes]
    if not changing:
        return ""
    sizes = dict.fromkeys(_sizes(settings) for settings in changing)
    rest = "" if len(changing) == len(records) else "; in the others it kept its size"
    return (
        " While the load ran, nodes joined or left one after the other, so that the cluster was to have "
        f"{listed(list(sizes), 'or')}{rest}."
    )


def disruptions(records: Sequence[TrialRecord]) -> str:
    """A sentence on what was done to nodes; empty if nothing was."""
    choices = [record.settings.disruption for record in records if record.settings.disruption.disrupts]
    if not choices:
        return ""
    done = dict.fromkeys(f"{choice.words} from {choice.at_s:g} s on" for choice in choices)
    rest = "" if len(choices) == len(records) else "; in the others, none was"
    healed = [record for record in records if any(marked_s(one, HEALED) is not None for one in record.disruptions)]
    cut_off = sum("recovery_s" not in record.measures for record in healed)
    censored = (
        f" In {cut_off} of {count(len(healed), 'such attempt')}, clients had not recovered when the load, or the time "
        "to the next disruption, ended: their recovery time is censored, and longer than what was watched."
    )
    return (
        f" While the load ran, nodes were disrupted and healed again ({listed(list(done), 'or')}){rest}. Errors from "
        "the beginning until every target had recovered, and operations in flight then had timed out, are the result, "
        "and make no trial invalid."
        f"{censored if cut_off else ''}"
    )


def _sizes(settings: TrialSettings) -> str:
    """The sizes that a policy may ask for."""
    policy, nodes = settings.policy, settings.site.nodes
    if policy.times:
        at = listed([f"{size} nodes at {at_s:g} s" for at_s, size in policy.times])
        return f"{at} of the measured phase"
    return f"the {policy.least(nodes)} to {policy.most(nodes)} nodes that policy {policy.name} desired"
