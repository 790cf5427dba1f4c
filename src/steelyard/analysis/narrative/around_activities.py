"""What joins and leaves cost clients, and for how long, in a sentence for each activity of each treatment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from steelyard.analysis.results import Results
from steelyard.analysis.statistics.activity_response import ActivityResponse
from steelyard.analysis.statistics.time_to_event import EventTime
from steelyard.analysis.treatments import label
from steelyard.analysis.wording import change_text
from steelyard.format import count, number
from steelyard.model.estimate import Estimate
from steelyard.model.responses import label_of

Kind = Literal["scale-out", "scale-in"]
OTHERWISE: Final = ("response_ms_p99", "response_ms_mean")
"""Responses that a sentence is about where the main one has no ratio to before."""
MOST_ACTIVITIES: Final = 4
"""With more activities than this, the answer leaves the others to the table."""
CHANGES: Final = {"scale-out": ("a node joined", "nodes joined"), "scale-in": ("a node left", "nodes left")}


def around_activities(results: Results) -> list[str]:
    """The sentences of the first activities, and how many more the table has."""
    groups: dict[tuple[str, int, Kind], list[ActivityResponse]] = {}
    for row in results.of(ActivityResponse):
        groups.setdefault((label(row.treatment), row.activity, row.kind), []).append(row)
    several = len({name for name, *_ in groups}) > 1, len({activity for _, activity, _ in groups}) > 1
    times = results.of(EventTime)
    returns = {(label(row.treatment), row.activity, row.kind): row for row in times if row.event == "back"}
    sentences = list(_not_scaled_out([row for row in times if row.event == "scaled out"]))
    for key, rows in list(groups.items())[:MOST_ACTIVITIES]:
        which = [*([key[0]] if several[0] else []), *([f"activity {key[1]}"] if several[1] else [])]
        if changed := _changed(rows, which, results.response):
            sentences.append(" ".join((changed, *_back(returns.get(key)))))
    more = len(groups) - MOST_ACTIVITIES
    rest = [f"The table has {count(more, 'more activity', 'more activities')}."] if more > 0 else []
    return [*sentences, *rest]


def _changed(rows: Sequence[ActivityResponse], which: Sequence[str], response: str) -> str:
    """The response during an activity, while data were streamed, and after it, against before and the control: the
    first response that has a change in every trial, otherwise the first that has one. Empty if none has."""
    during = {row.response: row for row in rows if row.window == "during" and row.ratio is not None}
    named = [during[name] for name in dict.fromkeys((response, *OTHERWISE)) if name in during]
    shown = next((row for row in named if row.compared == row.trials), named[0] if named else None)
    if shown is None or shown.ratio is None:
        return ""
    name = shown.response
    text = f"{label_of(name)} {change_text(shown.ratio, name)} against before"
    if shown.against_control is not None:
        text += f", {change_text(shown.against_control, name)} against the control"
    if shown.compared < shown.trials:
        text += f" (in {shown.compared} of {count(shown.trials, 'trial')})"
    words = {"streaming": "while data were streamed", "after": "afterwards"}
    for row in rows:
        if row.response != name or row.window not in words or row.ratio is None:
            continue
        # A ratio to before has the drift of every trial in it: where a control is known, only the ratio to that.
        ratio, to = (row.ratio, "before") if row.against_control is None else (row.against_control, "the control")
        text += f"; {words[row.window]} {change_text(ratio, name)} against {to}"
    who = CHANGES[shown.kind][0 if shown.one_node else 1]
    length = f"{number(shown.seconds.value, digits=3)} s"
    return f"While {who} ({', '.join([*which, length])}): {text}."


def _not_scaled_out(rows: Sequence[EventTime]) -> Iterator[str]:
    """When trials scaled out, of treatments of which some trial did not."""
    for row in [row for row in rows if row.lacking][:MOST_ACTIVITIES]:
        who = f" of {name}" if (name := label(row.treatment)) and len(rows) > 1 else ""
        yield f"{row.happened} of {count(row.n, 'trial')}{who} scaled out ({share_words(row.share)}); {row.mean_words}."


def _back(row: EventTime | None) -> Iterator[str]:
    """When the mean response time was back, and in how many trials it was not."""
    if row is None:
        return
    trials, what = count(row.n, "trial"), "The mean response time of a second"
    if row.never_left == row.n:
        yield f"{what} stayed in the range of before (in all of {trials})."
    elif not row.happened:
        yield f"{what} was not back in the range of before within the trial (in {row.lacking} of {trials})."
    elif row.median_s is None:
        yield (
            f"{what} was back in the range of before within the trial in {row.happened} of {trials}, too few for a "
            f"median; {row.mean_words}."
        )
    else:
        yield (
            f"{what} was back in the range of before after {row.median_s:.0f} s (median; {row.happened} of {trials} "
            "were back within the trial)."
        )


def share_words(share: Estimate) -> str:
    """`80% [28, 99]`: a share in whole percent."""
    ends = "" if share.low is None or share.high is None else f" [{share.low:.0f}, {share.high:.0f}]"
    return f"{share.value:.0f}%{ends}"
