"""Trials drawn over time: which of them the page has room for, and which it only names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from steelyard.analysis.treatments import label
from steelyard.format import count
from steelyard.reading.report_input import ReportInput
from steelyard.reading.server_metrics import pauses_watched
from steelyard.reading.time_courses import FEWEST_WINDOWS, STEPS_S, Timeline
from steelyard.report.drawing import Drawing, paragraphs
from steelyard.report.figures import timelines

TOO_SHORT: Final = "too short to plot over time"
NO_ROOM: Final = "left out for the page's size"
CONTROL: Final = "control"
TIMELINE_BYTES: Final = 500_000
"""Size limit of the pictures of single trials; the rest of a page with 1,000 trials takes five times as much."""


@dataclass(frozen=True)
class NotDrawn:
    """Attempts of one treatment that have no time course on the page, and the reason."""

    treatment: str
    why: str
    trials: tuple[str, ...]


def over_time(page: Drawing) -> Markup:
    """Time courses that fit into the page, by treatment, and the names of the trials that do not."""
    page_input = page.page_input
    room = TIMELINE_BYTES
    fitting: list[Timeline] = []
    for timeline in page_input.timelines:
        room -= timelines.bytes_of(timeline)
        if room > 0 or not fitting:
            fitting.append(timeline)
    choices = timelines.choices(page.this, fitting)
    if not choices:
        return Markup()
    lost = page_input.results.trials - len(fitting)
    note = (
        "The middle trial of each treatment by the main response comes first, then its fastest and its slowest; "
        "attempts that no number rests on come last."
    )
    if lost > 0:
        note += (
            f" {len(fitting):,} of {count(page_input.results.trials, 'attempt')} are drawn; the others are named "
            "below; the store has them all."
        )
    html = paragraphs([note])
    for choice in choices:
        drawn = list(zip(choice.names, map(page.figure, choice.figures), strict=True))
        html += page.block("chosen", choice.treatment, drawn, choice is choices[0])
    left = _not_drawn(page_input, fitting)
    return html + (page.block("not_drawn", left) if left else "")


def pauses_note(page_input: ReportInput) -> str:
    """Note that no trial is long enough for a worst window, if a probe recorded pauses; otherwise empty."""
    short = set(page_input.too_short)
    lost = [trace for trace in page_input.traces if (trace.record.id, trace.record.attempt) in short]
    watched = any(pauses_watched(trace.samples) for trace in page_input.traces)
    if not watched or len(lost) < len(page_input.traces):
        return ""
    return (
        f"Pauses for garbage collection were recorded, but no trial is long enough for a time course ({FEWEST_WINDOWS} "
        f"windows of at least {STEPS_S[0]:g} s), so none shows which node paused in its worst window: "
        "use longer trials (load.duration_s, load.operations)."
    )


def _not_drawn(page_input: ReportInput, fitting: Sequence[Timeline]) -> tuple[NotDrawn, ...]:
    """Attempts without a time course, by treatment and reason, in order of time."""
    drawn = {(one.record.id, one.record.attempt) for one in fitting}
    short = set(page_input.too_short)
    groups: dict[tuple[str, str], list[str]] = {}
    for record in page_input.records:
        key = record.key
        if key in drawn:
            continue
        why = TOO_SHORT if key in short else CONTROL if record.control else NO_ROOM
        name = record.id + (f" (attempt {record.attempt})" if record.attempt > 1 else "")
        groups.setdefault((label(record.treatment), why), []).append(name)
    return tuple(NotDrawn(treatment, why, tuple(names)) for (treatment, why), names in groups.items())
