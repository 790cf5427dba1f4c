"""View of a study in progress: phase, seconds of load, drawings and nodes. Pure.

All of it is drawn from the state that the live file says, which is not a result: nothing here is an estimate, and
nothing is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from steelyard.format import NONE, count, data_rate, data_size, duration, number, percent, treatment_label
from steelyard.model.trial import Phase
from steelyard.progress.event_words import size_parts
from steelyard.progress.reason_words import waiting_words
from steelyard.progress.state import Live, LoadSecond, NodeReadings, newest_of_nodes, slowest, throughput
from steelyard.serve.store_cache import StoreLook

WIDTH, HEIGHT = 300.0, 72.0
"""Size of a drawing, in its own units."""
OLD_READING_S: Final = 5.0
LEAST_STEAL: Final = 0.01
"""Less is what any virtual machine has now and then."""
WINDOW_S: Final = 120
"""Seconds that are drawn; the newest is at the right."""
GAP_S: Final = 2
"""A longer time between two seconds of load breaks the line."""
WHOLE_S: Final = 0.5
"""A shorter interval (the last of a phase) says nothing about a rate."""
LEAST_SPAN: Final = 1.5
"""A logarithmic axis spans at least this factor, so that noise does not look like mountains."""
HEADROOM: Final = 1.08


@dataclass(frozen=True)
class Curve:
    """One line of a drawing."""

    name: str
    path: str
    """The `d` attribute of an SVG path."""
    last: str


@dataclass(frozen=True)
class Drawing:
    """The course of a quantity over the last seconds."""

    title: str
    unit: str
    curves: tuple[Curve, ...]
    top: str
    bottom: str
    spoken: str


@dataclass(frozen=True)
class Node:
    """A node by its newest readings."""

    name: str
    cpu: str
    memory: str
    disk: str
    network: str
    state: str
    trouble: bool


@dataclass(frozen=True)
class Now:
    """Current activity of the study."""

    block: str
    trial: str
    cell: str
    phase: str
    gone: str
    """Time spent in this phase, and its expected length."""
    waiting: str
    size: str
    """Actual and desired size of a cluster under a policy; empty without one."""
    size_why: str
    """Reason of the desired size, and the metric that the policy follows."""
    busy: str
    """Why no trial begins: the machine is not quiet."""
    drawings: tuple[Drawing, ...]
    notes: tuple[str, ...]
    nodes: tuple[Node, ...]


def now(look: StoreLook, now_s: float) -> Now | None:
    """Current activity of the study; None if it reports none."""
    live = look.live
    if live is None:
        return None
    trial = live.trial
    again = f", attempt {trial.attempt}" if trial is not None and trial.attempt != 1 else ""
    size, size_why = size_parts(live)
    seconds = [second for second in live.seconds if live.t_s - WINDOW_S <= second.t_s <= live.t_s]
    return Now(
        block=f"{live.block}{f' of {live.blocks}' if live.blocks else ''}" if live.block else NONE,
        trial=f"{trial.number} of {live.total}{again}" if trial is not None else "between trials",
        cell=treatment_label(live.treatment) if live.treatment else NONE,
        phase="waiting" if live.quiet is not None else live.phase.name if live.phase is not None else "beginning",
        gone="" if live.quiet is not None else _gone(look, live, now_s),
        waiting=_activity(live),
        size=size,
        size_why=size_why,
        busy=_busy(live, now_s),
        drawings=_drawings(seconds),
        notes=_notes(seconds),
        nodes=tuple(_node(name, node, now_s) for name, node in sorted(live.nodes.items())),
    )


def _activity(live: Live) -> str:
    if live.phase is not None and live.phase.name == Phase.SERVER_WARM_UP and live.waiting:
        return f"Warming up: {live.waiting}"
    return live.waiting[:1].upper() + live.waiting[1:]


def _busy(live: Live, now_s: float) -> str:
    if live.quiet is None:
        return ""
    text = waiting_words(live.quiet.reasons, now_s - live.quiet.since_s, live.quiet.limit_s)
    return text[:1].upper() + text[1:]


def _gone(look: StoreLook, live: Live, now_s: float) -> str:
    phase = live.phase
    if phase is None:
        return ""
    gone = duration(math.floor(max(0.0, now_s - phase.entered_s)))
    expected_s = phase.expected_s if phase.expected_s is not None else _expected_s(look, live)
    if expected_s is not None:
        return f"{gone} of {duration(expected_s)}"
    return f"{gone} of at most {duration(phase.timeout_s)}" if phase.timeout_s is not None else gone


def _expected_s(look: StoreLook, live: Live) -> float | None:
    """Duration of a measured phase by its settings; None if a number of operations decides."""
    if look.plan is None or live.trial is None or live.phase is None:
        return None
    trial_id = live.trial.id
    planned = next((trial for trial in look.plan.trials if trial.id == trial_id), None)
    try:
        load = planned.settings.load if planned is not None else None
    except (ValidationError, KeyError):
        return None
    if load is None or live.phase.name not in (Phase.WARM_UP, Phase.MEASURE):
        return None
    if live.phase.name == Phase.WARM_UP:
        return load.warm_up_s
    return None if load.operations else load.duration_s


def _drawings(seconds: Sequence[LoadSecond]) -> tuple[Drawing, ...]:
    """Throughput is the sum over load nodes; times are those of the slowest load node in each second."""
    whole = [second for second in seconds if second.span_s >= WHOLE_S]
    answered = [second for second in whole if second.rate_per_s]
    several = len({second.node for second in seconds}) > 1
    drawn = (
        _drawing("throughput", "op/s", {"all load nodes" if several else "": throughput(whole)}, logarithmic=False),
        _drawing(
            "response time",
            "ms",
            {"p99": slowest(answered, "response_ms_p99"), "p50": slowest(answered, "response_ms_p50")},
            logarithmic=True,
        ),
        _drawing("lag (sent − due)", "ms", {"p99": slowest(whole, "lag_ms_p99")}, logarithmic=False),
    )
    return tuple(one for one in drawn if one is not None)


def _drawing(title: str, unit: str, curves: Mapping[str, Mapping[int, float]], *, logarithmic: bool) -> Drawing | None:
    values = [value for curve in curves.values() for value in curve.values() if value > 0 or not logarithmic]
    if not values:
        return None
    end_s = max(t for curve in curves.values() for t in curve)
    high = max(values) * HEADROOM or 1.0
    low = min(values) / HEADROOM if logarithmic else 0.0
    if logarithmic and high / low < LEAST_SPAN:
        low, high = low / math.sqrt(LEAST_SPAN), high * math.sqrt(LEAST_SPAN)

    def place(value: float) -> float:
        share = math.log(max(value, low) / low) / math.log(high / low) if logarithmic else (value - low) / (high - low)
        return HEIGHT * (1 - share)

    drawn = tuple(
        Curve(
            name=name,
            path=_path([(WIDTH * (1 - (end_s - t) / WINDOW_S), place(curve[t]), t) for t in sorted(curve)]),
            last=number(curve[max(curve)], digits=3),
        )
        for name, curve in curves.items()
        if curve
    )
    return Drawing(
        title=title,
        unit=unit,
        curves=drawn,
        top=number(high, digits=2),
        bottom=number(low, digits=2),
        spoken=f"{title}, {unit}; last second: " + ", ".join(f"{curve.name} {curve.last}".strip() for curve in drawn),
    )


def _path(points: Sequence[tuple[float, float, int]]) -> str:
    """Lines as SVG's `path` has them, broken where seconds are missing: between trials nothing is drawn."""
    words: list[str] = []
    before_s = -math.inf
    for x, y, t_s in points:
        words.append(f"{'L' if t_s - before_s <= GAP_S else 'M'}{x:.1f},{y:.1f}")
        if words[-1].startswith("M"):
            # A second alone is a dot.
            words.append("h0.01")
        before_s = t_s
    return "".join(words)


def _notes(seconds: Sequence[LoadSecond]) -> tuple[str, ...]:
    if not seconds:
        return ()
    last = newest_of_nodes([second for second in seconds if second.span_s >= WHOLE_S] or seconds)
    notes = [f"phase of the load: {seconds[-1].phase}"]
    if errors := sum(second.errors for second in seconds):
        notes.append(f"{count(errors, 'error')} in the seconds shown")
    if unsent := sum(second.unsent for second in seconds):
        notes.append(f"{count(unsent, 'operation')} due and not sent in the seconds shown")
    if backlog := sum(second.backlog for second in last.values()):
        notes.append(f"{count(backlog, 'operation')} due and not yet sent")
    cpu = ", ".join(f"{node} {percent(second.cpu_fraction or 0.0)}" for node, second in last.items())
    notes.append(f"generator, of one core: {cpu}")
    if len(last) > 1:
        notes.append("times are of the slowest load node of each second")
    return tuple(notes)


def _node(name: str, node: NodeReadings, now_s: float) -> Node:
    values = node.values
    user, system = values.get("node_cpu_user_cores"), values.get("node_cpu_system_cores")
    read, written = (values.get(f"node_disk_{what}_bytes_per_s") for what in ("read", "write"))
    got, sent = (values.get(f"node_network_{what}_bytes_per_s") for what in ("receive", "transmit"))
    state, trouble = _health(values, 0.0 if node.t_s is None else now_s - node.t_s)
    return Node(
        name=name,
        cpu=NONE if user is None or system is None else f"{user + system:.2f} cores",
        memory=data_size(values.get("node_memory_rss_bytes")),
        disk=_pair(read, written),
        network=_pair(got, sent),
        state=state,
        trouble=trouble,
    )


def _pair(first: float | None, second: float | None) -> str:
    """Two rates with their unit once."""
    if first is None and second is None:
        return NONE
    return f"{data_rate(first).removesuffix(' MB/s')} / {data_rate(second).removesuffix(' MB/s')} MB/s"


def _health(values: Mapping[str, float], silent_s: float) -> tuple[str, bool]:
    if silent_s > OLD_READING_S:
        return f"no reading for {duration(math.floor(silent_s))}", True
    troubles = []
    if throttled := values.get("node_throttled_fraction"):
        troubles.append(f"held back by its CPU quota in {percent(throttled)} of the periods")
    if hits := values.get("node_memory_limit_hits"):
        troubles.append(f"met its memory limit {count(int(hits), 'time')}")
    steal = values.get("machine_cpu_steal_fraction")
    if steal and steal > LEAST_STEAL:
        troubles.append(f"{percent(steal)} of the machine's CPU time given to other guests")
    return ("; ".join(troubles), True) if troubles else ("ok", False)
