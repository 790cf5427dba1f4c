"""A store whose exports are known by heart: two cells, four starts each of one trial, a voided attempt, failed
operations."""

from __future__ import annotations

from pathlib import Path

from steelyard.model.plan import Plan
from steelyard.model.sample import Sample
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.store.write import StoreWriter
from steelyard.wire.record import Interval
from tests.unit.report import synthetic
from tests.unit.wire import made

FAST, SLOW = (900_096, 900_607, 90), (5_001_216, 5_005_311, 10)
"""Buckets of a second: 90 operations of about 0.9 ms, 10 of about 5 ms."""
SECONDS = 3
WARM_UP_S = 1
VOIDED = Verdict(outcome="invalid", reasons=(Reason(kind=ReasonKind.PROBE_GAP, measured=7.2, threshold=5.0, unit="s"),))
TRIALS = 8


def seconds(begun_s: float) -> list[Interval]:
    """One second of warm-up, then three measured: reads, updates, and one update that failed."""
    tables = [
        made.counts([FAST, SLOW], operation, measure=measure)
        for operation in ("read", "update")
        for measure in ("response", "service", "lag")
    ]
    failed = made.counts([(9_003_008, 9_011_199, 1)], "update", "timeout")
    return [
        made.interval(
            *tables, failed, phase="warm-up" if at < WARM_UP_S else "measure", t_s=begun_s + at, sent=201, done=201
        )
        for at in range(WARM_UP_S + SECONDS)
    ]


def write(folder: Path) -> Path:
    """Write the store below `folder`; gives the study's folder."""
    study = synthetic.study(workloads=("A",), starts=4, trials=1, warm_up_trials=0, name="known")
    records = list(synthetic.records(study, faults=False))
    voided = records[-1].model_copy(
        update={"attempt": 2, "verdict": VOIDED, "begun_s": records[-1].begun_s + 60, "position": len(records)}
    )
    plan = Plan(study=study.study.name, seed=7, factors=study.factors, hard=("nodes",), trials=())
    with StoreWriter(folder, study.study.name) as writer:
        writer.intend(study, "", plan)
        for record in (*records, voided):
            draft = writer.draft(record.id, record.attempt)
            begun_s = record.begun_s + 1.5
            for node in ("load1", "load2"):
                draft.intervals(node, seconds(begun_s))
            draft.samples(
                "n1",
                [
                    Sample(begun_s + at, "n1", metric, value)
                    for at in range(-2, SECONDS + 2)
                    for metric, value in (("node_cpu_user_cores", 0.5), ("machine_cpu_idle_fraction", 0.25))
                ],
            )
            draft.seal(record)
        return writer.folder
