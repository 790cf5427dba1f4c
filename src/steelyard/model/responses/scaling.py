"""Scaling of a trial whose cluster may change its size: how soon, at what cost for the load, and how well it met the
demand."""

from __future__ import annotations

from typing import Final

from steelyard.model.response import Compared, Response, Source

BEYOND: Final = "beyond_scale_percent"
NODE_SECONDS: Final = "node_seconds"
DEMAND: Final = "By `analysis.demand`, when a store is read."


def _of(
    name: str, label: str, unit: str, order: int, definition: str, source: Source = "activities", *,
    less_is_better: bool | None = True, compared: Compared = "ratio",
) -> Response:  # fmt: skip
    return Response(
        name=name, label=label, unit=unit, definition=definition, source=source, less_is_better=less_is_better,
        on_page=False, order=order, compared=compared,
    )  # fmt: skip


IF_ALL: Final = "No treatment has it in which a trial has none (statistic `time_to_event` counts all)."
SEALED: Final = (
    _of("scale_out_decision_s", "time of the first scale-out", "s", 190,
        "From the beginning of the measured phase to that of the first scale-out. A trial that did not scale out "
        f"has none: it would have come later, if at all. {IF_ALL}"),
    _of("scale_out_s", "scale-out time", "s", 191,
        "From the beginning of a scale-out to its last node in service; the mean over the scale-outs of a trial. "
        f"There is none if one was not completed. {IF_ALL}"),
    _of("time_to_stability_s", "time to stability", "s", 192,
        "From the last node in service to the first of 20 s on end in which the mean response time of each second is "
        "in a band around its level; 0 if it did not leave it. Level: the median of the last third of what remains "
        "until the next change of size, or the end. Band: 2% of the greatest excess over the level since the first "
        "change began, at least 4 standard deviations of that third about a line. A trial that was not stable "
        f"before that third has none. {IF_ALL}"),
    _of("lost_operations", "lost operations", "operations", 193,
        "The most operations by which answers without error fell behind: open loop, behind what was due since any "
        "earlier time, with what was never sent (they may be answered later); closed loop, behind the mean throughput "
        "before the first change of size, from then on until the response time was stable.", compared="difference"),
    _of("excess_response_ms_s", "excess response time", "ms s", 194,
        "Area of the mean response time per second over its median before the first change of size, from then on until "
        "it was stable: its greatest rise, so that noise around the median does not add up (Kuhlenkamp et al., 2014).",
        compared="difference"),
)  # fmt: skip
OF_DEMAND: Final = (
    _of("theta_under_percent", "lack of nodes (theta)", "%", 195,
        f"The mean over time of the nodes that lacked, in percent of the demand. {DEMAND}", "study"),
    _of("theta_over_percent", "excess of nodes (theta)", "%", 196,
        f"The mean over time of the nodes in excess, in percent of the demand. {DEMAND}", "study"),
    _of("tau_under_percent", "time with too few nodes", "%", 197,
        f"Share of the time with fewer nodes than the demand. {DEMAND}", "study"),
    _of("tau_over_percent", "time with too many nodes", "%", 198,
        f"Share of the time with more nodes than the demand. {DEMAND}", "study"),
    _of("jitter_per_min", "jitter", "nodes/min", 199,
        "Nodes that joined or left, less those by which the demand changed, per minute. Above 0: changes that the load "
        f"did not need; below 0: changes that are missing. {DEMAND}", "study", less_is_better=None),
    _of("instability_percent", "instability", "%", 200,
        "Share of the seconds in which supply and demand did not change in the same direction. "
        f"{DEMAND}", "study"),
    _of(BEYOND, "time beyond scale", "%", 201,
        "Share of the time in which the load offered more than the largest size carries, which is then the demand. "
        f"{DEMAND}", "study"),
)  # fmt: skip
PAID: Final = _of(
    NODE_SECONDS, "server time of database nodes", "node-seconds", 202,
    "Time in which the servers of database nodes ran while the load was measured, summed over nodes: what is paid for. "
    "Only in studies whose policy may change the size.", "study",
)  # fmt: skip
RESPONSES = (*SEALED, *OF_DEMAND, PAID)
