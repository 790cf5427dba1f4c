"""Link program: what it moved while the load of trials ran, how late, and what it could not keep up with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from steelyard.analysis.row import Column, Row
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.statistics.link import label
from steelyard.model.link import LinkChoice
from steelyard.model.moved_frames import MovedFrames
from steelyard.model.trial import TrialRecord


class LinkProgramRow(Row):
    """Work of the link program for one link, in all attempts at its trials, valid or not, by the clock also where time
    was stretched. Trials in which it fell behind are void and repeated (`limits.link_late_ms`,
    `limits.link_stalled_fraction`, `limits.link_unread_fraction`)."""

    link: str
    """Name of the link; with its fields where a study has several of one name."""
    attempts: int
    """Attempts at trials over this link."""
    frames: int
    """Frames that nodes sent while the load ran."""
    late_ms_mean: Annotated[float | None, Column(unit="ms", head="late, mean (ms)")] = None
    """How much later than the link says frames were delivered, mean over all; none if none was."""
    late_ms_worst: Annotated[float | None, Column(unit="ms", head="late, worst mean (ms)")] = None
    """The same mean in the attempt in which it was largest: what is judged."""
    late_ms_max: Annotated[float, Column(unit="ms", head="latest (ms)")]
    """The latest of all frames."""
    stalled_percent_worst: Annotated[float | None, Column(unit="%", head="stood still, worst (%)")] = None
    """Part of the time for which the program stood still, in the attempt in which that was most: what is judged."""
    unread: int
    """Frames that the kernel dropped because the program did not read them in time: no part of the link."""
    dropped: int
    """Receivers whose frame met a full queue of the link."""
    lost: int
    """Receivers whose frame the link lost, as it was asked to or because its medium gave them up."""
    cpu_cores: Annotated[float | None, Column(unit="cores", head="cores busy")] = None
    """Cores that the program kept busy."""


def link_programs(records: Sequence[TrialRecord]) -> Iterator[LinkProgramRow]:
    """A row for each link that a program made; none if the kernel made all."""
    groups: dict[LinkChoice, list[MovedFrames]] = {}
    for record in records:
        if record.moved_frames is not None:
            groups.setdefault(record.settings.link, []).append(record.moved_frames)
    for link, moved in groups.items():
        delivered = sum(each.delivered for each in moved)
        means = [(each.late_ms_mean, each.delivered) for each in moved if each.late_ms_mean is not None]
        stalls = [each.stalled_fraction for each in moved]
        seconds = sum(each.seconds for each in moved)
        yield LinkProgramRow(
            link=label(link, list(groups)),
            attempts=len(moved),
            frames=sum(each.frames for each in moved),
            late_ms_mean=sum(mean * frames for mean, frames in means) / delivered if delivered else None,
            late_ms_worst=max((mean for mean, _ in means), default=None),
            late_ms_max=max(each.late_ms_max for each in moved),
            stalled_percent_worst=max((100 * part for part in stalls if part is not None), default=None),
            unread=sum(each.unread for each in moved),
            dropped=sum(each.dropped for each in moved),
            lost=sum(each.lost for each in moved),
            cpu_cores=sum(each.cpu_s for each in moved) / seconds if seconds > 0 else None,
        )


STATISTIC = Statistic(
    name="link_program",
    row=LinkProgramRow,
    title="Frames that the link program moved",
    section=Section.VALIDITY,
    compute=lambda context: link_programs(context.records),
    order=27,
    of_records=True,
)
