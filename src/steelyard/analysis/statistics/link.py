"""Links between the nodes: as asked for and as measured, before and after the trials of each start."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Annotated

from steelyard.analysis.row import Column, Row
from steelyard.analysis.statistic import Section, Statistic
from steelyard.format import count, number
from steelyard.judging.gauge import AFTER, AskedAndMeasured, asked_and_measured
from steelyard.model.link import LinkChoice
from steelyard.model.trial import TrialRecord

IN_UNIT = Column(unit="in the unit of column `unit`")


class LinkNumber(Row):
    """One number of one link. Rate: of one TCP connection, on an otherwise idle cluster, mean over the measured paths;
    asked: what the link's rate leaves for its payload. Least round trip: between load and database nodes; asked: twice
    the delay. Loss: of frames, one way."""

    link: str
    """Name of the link; with its fields where a study has several of one name."""
    quantity: str
    """Quantity measured."""
    unit: str
    """Unit of the numbers."""
    asked: Annotated[float | None, IN_UNIT] = None
    """Value asked for; none if the study does not say, and of a radio channel, whose rate depends on who sends."""
    before: Annotated[float, IN_UNIT]
    """Measured before the first trial of a start, mean over starts."""
    after: Annotated[float | None, IN_UNIT] = None
    """Measured after the last trial, mean over starts; none if no start came so far."""
    least: Annotated[float, IN_UNIT]
    """The smallest of all these, before and after."""
    most: Annotated[float, IN_UNIT]
    """The most."""
    starts: int
    """Starts of clusters with this link."""
    differs: bool
    """Whether it differs by more than 10% in any start from what was asked; a round trip may also be longer by the 0.5
    ms that kernels and programs take. Loss is not judged: too few frames are sent."""


def link_numbers(records: Sequence[TrialRecord]) -> Iterator[LinkNumber]:
    """Rows of every link of which all paths were measured; none in a study that asks for no link."""
    groups: dict[LinkChoice, dict[str, TrialRecord]] = {}
    for record in records:
        groups.setdefault(record.settings.link, {})[record.start] = record
    measured = {
        link: [before for record in starts.values() if (before := _of(record, ""))] for link, starts in groups.items()
    }
    for link, befores in measured.items():
        afters = [after for record in groups[link].values() if (after := _of(record, AFTER))]
        for name in befores[0] if befores else ():
            first = [each[name] for each in befores if name in each]
            last = [each[name] for each in afters if name in each]
            numbers = [each.measured for each in (*first, *last)]
            yield LinkNumber(
                link=label(link, list(measured)),
                quantity=first[0].quantity,
                unit=first[0].unit,
                asked=first[0].asked,
                before=statistics.fmean(each.measured for each in first),
                after=statistics.fmean(each.measured for each in last) if last else None,
                least=min(numbers),
                most=max(numbers),
                starts=len(first),
                differs=any(each.differs for each in (*first, *last)),
            )


def other_links(rows: Sequence[LinkNumber]) -> Iterator[str]:
    """Links that were not as asked."""
    for row in rows:
        if row.differs and row.asked is not None:
            asked, least, most = (f"{number(value, digits=3)} {row.unit}" for value in (row.asked, row.least, row.most))
            span = least if least == most else f"{least} to {most}"
            yield (
                f"Link {row.link} was not as asked: its {row.quantity} was {span} in {count(row.starts, 'start')}, "
                f"{asked} was asked for. Results of this link are of the link as it was measured."
            )


def label(link: LinkChoice, others: Sequence[LinkChoice]) -> str:
    """The link's name, with the fields in which links of this name differ."""
    alike = [other for other in others if other.name == link.name and other != link]
    fields = [name for name, value in link.given.items() if any(getattr(other, name) != value for other in alike)]
    if not fields:
        return link.name
    return f"{link.name} ({', '.join(f'{name} {link.given[name]}' for name in fields)})"


def _of(record: TrialRecord, end: str) -> dict[str, AskedAndMeasured]:
    return {one.covariate: one for one in asked_and_measured(record.settings.link, record.covariates, end)}


STATISTIC = Statistic(
    name="link",
    row=LinkNumber,
    title="Links between the nodes, as asked and as measured",
    section=Section.VALIDITY,
    compute=lambda context: link_numbers(context.records),
    sentences=lambda rows, response: other_links(rows),
    order=26,
    sentence_order=20,
    of_records=True,
)
