"""Made-up records for the tests of the analysis: small, explicit, every number given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.analysis.frame import TrialFrame
from steelyard.model.named_level import Level
from steelyard.model.server_warm_up import ServerWarmth, WorkloadWarmth
from steelyard.model.study import Study
from steelyard.model.trial import Responses, TrialRecord
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict

VALID = Verdict(outcome="valid")
VOIDED = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.PROBE_GAP, measured=7.0, threshold=5.0, unit="s"),))
FAULT = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.SYSTEM_FAULT, detail="killed for memory"),))
OPERATIONS = 1000


def record(
    value: float | None, *, nodes: Level = 1, workload: str = "A", start: int = 1, replicate: int = 1, order: int = 1,
    verdict: Verdict = VALID, control: bool = False, begun_s: float | None = None, block: int | None = None,
    attempt: int = 1, shares: tuple[str, ...] = (), extra: Mapping[str, Level] | None = None,
    warmth: ServerWarmth | None = None,
) -> TrialRecord:  # fmt: skip
    """One trial of `value` ms; its start is named after its nodes and start number."""
    name = f"b{start:02d}-n{nodes}"
    return TrialRecord(
        id=f"{workload}-{nodes}-s{start}-t{replicate}{'c' if control else ''}", attempt=attempt, study="made",
        treatment={"nodes": nodes, "workload": workload, **(extra or {})}, hard=("nodes",), settings={},
        block=block or start, planned_start=name, start=name, start_replicate=start, replicate=replicate,
        position=order, order_in_start=order, seed=1, control=control,
        begun_s=begun_s if begun_s is not None else 1000.0 * start + 10.0 * order, verdict=verdict, shares=shares,
        server_warm_up=warmth,
        responses=Responses(
            execution_time_ms=value, operations=OPERATIONS,
            throughput_per_s=None if value is None else 1000 * OPERATIONS / value,
        ),
    )  # fmt: skip


def cell(values: Sequence[Sequence[float]], *, nodes: Level = 1, workload: str = "A", **more: Any) -> list[TrialRecord]:
    """Trials of one treatment: one inner sequence per start."""
    return [
        record(value, nodes=nodes, workload=workload, start=start, replicate=order, order=order, **more)
        for start, trials in enumerate(values, start=1)
        for order, value in enumerate(trials, start=1)
    ]


def elsewhere(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The same trials in blocks that no other side has."""
    return [one.model_copy(update={"block": one.block + 1000}) for one in records]


def warmed(fall_percent: float = 0.0, *, reached: bool = False, noise_percent: float = 5.0) -> ServerWarmth:
    """A server warm-up whose service time fell by so much in its last round."""
    of = WorkloadWarmth(service_ms=1.0, change_percent=-fall_percent, noise_percent=noise_percent)
    return ServerWarmth(seconds=60, rounds=4, operations=9, reached=reached, workloads={"A": of})


def frame(records: Sequence[TrialRecord], warm_up_trials: int = 0, hard: Sequence[str] = ("nodes",)) -> TrialFrame:
    """A frame over nodes and workload, their levels in natural order."""
    factors: dict[str, list[Level]] = {
        name: sorted({one.treatment[name] for one in records}) for name in ("nodes", "workload")
    }
    return TrialFrame.build(records, factors, hard, warm_up_trials)


def study(**changes: Mapping[str, Any]) -> Study:
    """A study of nodes 1 and 3 and workloads A and C; sections are replaced as given."""
    sections: dict[str, Any] = {
        "study": {"name": "made", "question": "How does execution time change with nodes?"},
        "site": {"name": "local"},
        "system": {"name": "simulated"},
        "workload": {"name": "A"},
        "load": {"operations": OPERATIONS},
        "factors": {"nodes": (1, 3), "workload": ("A", "C")},
    }
    return Study.model_validate({**sections, **changes})


def drawn(
    rng: np.random.Generator, means: Mapping[int, float], *, starts: int, trials: int, start_cv: float, trial_cv: float,
    workload: str = "A",
) -> list[TrialRecord]:  # fmt: skip
    """Random trials: log-normal between starts and between trials, one mean per number of nodes."""
    found: list[TrialRecord] = []
    for nodes, mean in means.items():
        effects = rng.normal(0, start_cv, starts)
        values = mean * np.exp(effects[:, None] + rng.normal(0, trial_cv, (starts, trials)))
        found += cell(values.tolist(), nodes=nodes, workload=workload)
    return found
