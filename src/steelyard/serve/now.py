"""What happens in a study at this moment, as people read it: phase, the seconds of the load, the nodes. Pure.

All of it comes from the live file, which is no result: nothing here is an estimate, and nothing is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steelyard.analysis.treatments import label
from steelyard.model.trial import Phase
from steelyard.report.basics.format import count, duration, number
from steelyard.serve.standing import listed_in, number_of
from steelyard.serve.stores import Snapshot

WIDTH, HEIGHT = 300.0, 72.0
"""Of a drawing, in its own units."""
OLD_READING_S: Final = 5.0
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
    """As SVG has it."""
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
    """The moment."""

    block: str
    trial: str
    cell: str
    phase: str
    gone: str
    """How long in this phase, of how long."""
    waiting: str
    drawings: tuple[Drawing, ...]
    notes: tuple[str, ...]
    nodes: tuple[Node, ...]


def now(snapshot: Snapshot, now_s: float) -> Now | None:
    """What the study does; None if it says nothing of itself."""
    live = snapshot.live
    if live is None:
        return None
    trial, phase, start = (_table(live.get(name)) for name in ("trial", "phase", "start"))
    treatment = _table(trial.get("treatment") or start.get("treatment"))
    blocks = f" of {live['blocks']}" if live.get("blocks") else ""
    again = f", attempt {trial['attempt']}" if trial.get("attempt", 1) != 1 else ""
    seconds = _newest(listed_in(live, "seconds"), number_of(live, "t_s") or now_s)
    return Now(
        block=f"{live['block']}{blocks}" if live.get("block") else "–",
        trial=f"{trial.get('number')} of {live.get('total')}{again}" if trial else "between trials",
        cell=label(dict(treatment)) if treatment else "–",
        phase=str(phase.get("name", "beginning")),
        gone=_gone(snapshot, trial, phase, now_s),
        waiting=str(live.get("waiting") or ""),
        drawings=_drawings(seconds),
        notes=_notes(seconds),
        nodes=tuple(_node(name, _table(said), now_s) for name, said in sorted(_table(live.get("nodes")).items())),
    )


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _gone(snapshot: Snapshot, trial: Mapping[str, Any], phase: Mapping[str, Any], now_s: float) -> str:
    entered_s = number_of(phase, "entered_s")
    if entered_s is None:
        return ""
    gone = duration(max(0.0, now_s - entered_s))
    expected_s = _expected_s(snapshot, trial, phase)
    if expected_s is not None:
        return f"{gone} of {duration(expected_s)}"
    limit_s = number_of(phase, "timeout_s")
    return f"{gone} of at most {duration(limit_s)}" if limit_s is not None else gone


def _expected_s(snapshot: Snapshot, trial: Mapping[str, Any], phase: Mapping[str, Any]) -> float | None:
    """How long a measured phase takes by its settings; None where a number of operations decides."""
    planned = next((one for one in snapshot.plan.trials if one.id == trial.get("id")), None) if snapshot.plan else None
    load = _table(planned.settings.get("load")) if planned is not None else {}
    if phase.get("name") == Phase.WARM_UP:
        return number_of(load, "warm_up_s")
    if phase.get("name") != Phase.MEASURE or load.get("operations"):
        return None
    return number_of(load, "duration_s")


def _drawings(seconds: Sequence[Mapping[str, Any]]) -> tuple[Drawing, ...]:
    """Throughput added up over load nodes; of times the worst load node of each second, because percentiles of
    several cannot be averaged."""
    whole = [second for second in seconds if (number_of(second, "span_s") or 0.0) >= WHOLE_S]
    answered = [second for second in whole if number_of(second, "rate_per_s")]
    several = len({second.get("node") for second in seconds}) > 1
    drawn = (
        _drawing("throughput", "op/s", {"all load nodes" if several else "": _rates(whole)}, logarithmic=False),
        _drawing(
            "response time",
            "ms",
            {"p99": _worst(answered, "response_ms_p99"), "p50": _worst(answered, "response_ms_p50")},
            logarithmic=True,
        ),
        _drawing("lag (sent − due)", "ms", {"p99": _worst(whole, "lag_ms_p99")}, logarithmic=False),
    )
    return tuple(one for one in drawn if one is not None)


def _rates(seconds: Sequence[Mapping[str, Any]]) -> dict[int, float]:
    """Operations/s of all load nodes together. The nodes' seconds begin at different instants: of each the mean in a
    second counts, or where it has none that of the second before."""
    nodes: dict[str, dict[int, list[float]]] = {}
    for second in seconds:
        t_s, rate = number_of(second, "t_s"), number_of(second, "rate_per_s")
        if t_s is not None and rate is not None:
            nodes.setdefault(str(second.get("node")), {}).setdefault(round(t_s), []).append(rate)
    found: dict[int, float] = {}
    for t in sorted({t for rates in nodes.values() for t in rates}):
        parts = [rates.get(t) or rates.get(t - 1) or [] for rates in nodes.values()]
        found[t] = sum(sum(part) / len(part) for part in parts if part)
    return found


def _worst(seconds: Sequence[Mapping[str, Any]], name: str) -> dict[int, float]:
    found: dict[int, float] = {}
    for second in seconds:
        t_s, value = number_of(second, "t_s"), number_of(second, name)
        if t_s is not None and value is not None:
            found[round(t_s)] = max(value, found.get(round(t_s), value))
    return found


def _newest(seconds: Sequence[Mapping[str, Any]], said_s: float) -> list[Mapping[str, Any]]:
    return [one for one in seconds if said_s - WINDOW_S <= (number_of(one, "t_s") or 0.0) <= said_s]


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


def _notes(seconds: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    if not seconds:
        return ()
    whole = [second for second in seconds if (number_of(second, "span_s") or 0.0) >= WHOLE_S] or seconds
    last = {str(second.get("node")): second for second in whole}
    notes = [f"phase of the load: {seconds[-1].get('phase')}"]
    errors = sum(number_of(second, "errors") or 0 for second in seconds)
    if errors:
        notes.append(f"{count(int(errors), 'error')} in the seconds shown")
    backlog = sum(number_of(second, "backlog") or 0 for second in last.values())
    if backlog:
        notes.append(f"{count(int(backlog), 'operation')} due and not yet sent")
    cpu = ", ".join(f"{node} {100 * (number_of(second, 'cpu_fraction') or 0):.0f} %" for node, second in last.items())
    notes.append(f"generator, of one core: {cpu}")
    if len(last) > 1:
        notes.append("times are of the slowest load node of each second")
    return tuple(notes)


def _node(name: str, said: Mapping[str, Any], now_s: float) -> Node:
    values = _table(said.get("values"))
    user, system = number_of(values, "node_cpu_user_cores"), number_of(values, "node_cpu_system_cores")
    memory = number_of(values, "node_memory_rss_bytes")
    read, written = (number_of(values, f"node_disk_{what}_bytes_per_s") for what in ("read", "write"))
    got, sent = (number_of(values, f"node_network_{what}_bytes_per_s") for what in ("receive", "transmit"))
    state, trouble = _health(values, now_s - (number_of(said, "t_s") or now_s))
    return Node(
        name=name,
        cpu="–" if user is None or system is None else f"{user + system:.2f} cores",
        memory="–" if memory is None else f"{memory / 2**20:,.0f} MiB",
        disk=_pair(read, written),
        network=_pair(got, sent),
        state=state,
        trouble=trouble,
    )


def _pair(first: float | None, second: float | None) -> str:
    if first is None and second is None:
        return "–"
    return " / ".join("–" if value is None else f"{value / 1e6:.1f}" for value in (first, second)) + " MB/s"


def _health(values: Mapping[str, Any], silent_s: float) -> tuple[str, bool]:
    if silent_s > OLD_READING_S:
        return f"no reading for {duration(silent_s)}", True
    troubles = []
    throttled, hits = number_of(values, "node_throttled_fraction"), number_of(values, "node_memory_limit_hits")
    if throttled:
        troubles.append(f"held back by its CPU quota in {100 * throttled:.0f} % of the periods")
    if hits:
        troubles.append(f"met its memory limit {count(int(hits), 'time')}")
    steal = number_of(values, "machine_cpu_steal_fraction")
    if steal and steal > 0.01:
        troubles.append(f"{100 * steal:.0f} % of the machine's CPU time given to other guests")
    return ("; ".join(troubles), True) if troubles else ("ok", False)
