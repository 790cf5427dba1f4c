"""Windows of searches: response time at each rate that was tried, and whether it met the limits."""

from __future__ import annotations

from typing import Annotated

from steelyard.analysis.row import Column, TreatmentRow
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.judging.search_window import binding_limit
from steelyard.model.search import ERROR_FRACTION, Search, Window
from steelyard.model.trial import TrialRecord


class SearchWindow(TreatmentRow):
    """One window of the search of one trial."""

    trial_id: Annotated[str, Column(head="trial")]
    """Identity of the trial."""
    attempt: int
    """Which attempt of the trial, from 1."""
    window: str
    """Name of the window's phase in the store."""
    rate_per_s: Annotated[float, Column(unit="operations/s", head="offered")]
    """Offered rate."""
    throughput_per_s: Annotated[float | None, Column(unit="operations/s", head="throughput")]
    """Operations answered without error over the window's execution time."""
    limited: str
    """The response that the first limit on a time is about, otherwise the first limit; for saturation throughput over
    offered rate."""
    value: Annotated[float | None, Column(unit="in the unit of its response")]
    """Its value in the window."""
    limit: Annotated[float, Column(unit="in the unit of its response")]
    """Its limit."""
    response_ms_p50: Annotated[float | None, Column(unit="ms", head="p50")]
    """Median response time in the window."""
    response_ms_p99: Annotated[float | None, Column(unit="ms", head="p99")]
    """99th percentile of response time in the window."""
    error_fraction: Annotated[float | None, Column(unit="of all operations", head="errors")]
    """Failed operations as a fraction of all."""
    met: bool
    """Whether all limits were met."""
    binding: str
    """The limit of which the window used the largest share; if it missed any, one that it missed."""
    used: Annotated[float, Column(unit="of the limit")]
    """The share of that limit that the window used: above 1 beyond the limit."""
    generator: str
    """Failure of the load generator; such a window says nothing about the system."""


def windows(context: Context) -> tuple[SearchWindow, ...]:
    """Every window of every search, in order of time."""
    return tuple(
        _row(record, record.search, window)
        for record in context.records
        if record.search is not None
        for window in record.search.windows
    )


def _row(record: TrialRecord, search: Search, window: Window) -> SearchWindow:
    limits = search.rules.limits
    limit = next((one for one in limits if one.response != ERROR_FRACTION), limits[0])
    return SearchWindow(
        treatment=record.treatment,
        trial_id=record.id,
        attempt=record.attempt,
        window=window.name,
        rate_per_s=window.rate_per_s,
        throughput_per_s=window.throughput_per_s,
        limited=limit.response,
        value=window.values.get(limit.response),
        limit=limit.value,
        response_ms_p50=window.values.get("response_ms_p50"),
        response_ms_p99=window.values.get("response_ms_p99"),
        error_fraction=window.values.get(ERROR_FRACTION),
        met=window.met,
        binding=binding_limit(search.rules, window.values).text,
        used=window.used,
        generator=window.generator,
    )


STATISTIC = Statistic(
    name="search_window",
    row=SearchWindow,
    title="Every window of the searches",
    section=Section.RESPONSE_TIME,
    compute=windows,
    order=4,
    of_records=True,
)
