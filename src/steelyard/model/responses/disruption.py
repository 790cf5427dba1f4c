"""What a disruption costs clients: how long, how many operations, and how soon it was over."""

from __future__ import annotations

from typing import Final

from steelyard.model.response import Compared, Response

WHOLE: Final = "Its resolution is 1 s: a smaller difference says nothing."
RESOLUTION: Final = 1.0


def _of(
    name: str, label: str, unit: str, order: int, definition: str, *, less: bool = True,
    compared: Compared = "difference",
) -> Response:  # fmt: skip
    return Response(
        name=name, label=label, unit=unit, definition=definition, source="activities", less_is_better=less,
        on_page=False, order=order, resolution=RESOLUTION if WHOLE in definition else 0.0, compared=compared,
    )  # fmt: skip


BACK: Final = "For workloads of YCSB, by our own engine on one load node; none if nothing was written."
IF_ALL: Final = "Of several disruptions in a trial, their mean; none if one of them has none."
RESPONSES = (
    _of("availability_percent", "availability", "%", 203,
        "Share of the seconds of the measured phase that were available: at least 99.9% of the operations due in it "
        "were answered without error, sooner or later, and at least one was answered in it (closed loop: of those "
        f"sent). Those never sent were due last. {WHOLE}", less=False, compared="ratio"),
    _of("detection_s", "time until clients notice", "s", 204,
        "From the beginning of a disruption to the first second in which an operation failed or fewer than half as "
        f"many were answered as in the mean second before; 0 within its own second. {WHOLE} {IF_ALL}"),
    _of("seen_down_s", "time until members notice", "s", 208,
        "From the beginning of a disruption until the last of the other members took each target for dead, as their "
        f"logs say; none if one of them did not. {IF_ALL}"),
    _of("recovery_s", "recovery time", "s", 205,
        "From the end of a disruption to the first of 5 seconds on end that were available, with a mean response time "
        "up to twice the median before the first disruption, up to 1 ms above it, or up to the highest before. It has "
        "no value if the load, or the time to the next disruption, ended first: it is censored, and longer than what "
        f"was watched. {WHOLE} {IF_ALL}"),
    _of("outage_s", "time until clients are answered", "s", 209,
        "From the beginning of a disruption to the first of 5 available seconds on end after the last before its end "
        "that was not, however slow the answers are; 0 if all were. What goes wrong only after its end is in the "
        f"recovery time. Censored as the recovery time is. {WHOLE} {IF_ALL}"),
    _of("degraded_s", "time until service is as before", "s", 210,
        "From the beginning of a disruption to the first of 5 good seconds on end (as of the recovery time) after the "
        "last bad second before its end; 0 if none was bad. Censored as the recovery time is. "
        f"{WHOLE} {IF_ALL}"),
    _of("relapse_s", "seconds lost after recovery", "s", 206,
        "Seconds after the recovery and before the next disruption that were not as good: not 0 if a cluster flaps. "
        f"{WHOLE} {IF_ALL}"),
    _of("ambiguous_operations", "ambiguous operations", "operations", 207,
        "Operations that timed out, of which clients do not know whether they took effect. Operations in flight "
        "on a connection that broke, whose effect is not known either, count as errors only."),
    _of("lost_writes", "acknowledged writes lost", "values", 211,
        "Values (one field of one row) of which the last acknowledged write was not there after the load: neither it, "
        "nor one that overlapped with it or ended in an error. Every value that the load had written was read, and "
        f"those that were not right again 10 s later; only what was wrong both times counts. {BACK}"),
    _of("stale_values", "values wrong at first", "values", 212,
        f"Values of which the same was so when they were first read, right after the load. {BACK}"),
    _of("values_read_back", "values read back", "values", 213,
        "Values that were read after the load: of each a write was acknowledged. Readings that failed are among them. "
        f"{BACK}", compared="ratio"),
)  # fmt: skip
"""Measures of a trial that is disrupted, and of its controls. With them come `lost_operations` and
`excess_response_ms_s`."""
SHARED: Final = ("lost_operations", "excess_response_ms_s")
"""Responses of trials that change their size or are disrupted."""
OF_CONTROLS: Final = (
    *("availability_percent", "lost_operations", "ambiguous_operations"),
    *("lost_writes", "stale_values", "values_read_back"),
)
"""Those that a trial has, too, in which nothing is disrupted."""
