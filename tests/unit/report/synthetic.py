"""A made-up study with plausible numbers: what the report's tests and pictures are drawn from."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from steelyard.model.plan import Plan
from steelyard.model.sample import Sample
from steelyard.model.study import Study
from steelyard.model.trial import Phase, PhaseTime, Responses, TrialRecord
from steelyard.model.verdict_reasons import Reason, ReasonKind, Verdict
from steelyard.reading import time_courses
from steelyard.store.write import StoreWriter
from steelyard.wire.record import Interval
from tests.unit.wire import made

BEGUN_S = 1_790_000_000.0
MILLISECONDS_BY_WORKLOAD = {"A": 1450.0, "B": 1300.0, "C": 1210.0, "D": 1260.0, "E": 5200.0, "F": 1900.0, "I": 980.0}
EXPONENT_BY_WORKLOAD = {"A": -0.22, "B": -0.2, "C": -0.3, "D": -0.2, "E": 0.12, "F": -0.1, "I": -0.05}
SAMPLE_SECONDS = 40
FAULT = Verdict(
    outcome="invalid", reasons=(Reason(kind=ReasonKind.SYSTEM_FAULT, detail="node n1 was killed for memory"),)
)


def study(
    *,
    nodes: Sequence[int] = (1, 3),
    workloads: Sequence[str] = ("A", "C", "E", "I"),
    starts: int = 2,
    trials: int = 3,
    warm_up_trials: int = 1,
    name: str = "synthetic",
    title: str = "Cassandra on one machine, one node and three",
    question: str = "How does the execution time of YCSB workloads change with the number of Cassandra nodes?",
) -> Study:
    """A study of execution time over nodes and workload."""
    return Study.model_validate(
        {
            "study": {
                "name": name,
                "title": title,
                "question": question,
                "notes": "Numbers are made up.",
                "source": "richardson2017",
            },
            "site": {"name": "local", "memory_mb": 2048, "cpu_cores": 1.0},
            "system": {"name": "cassandra", "version": "5.0.5", "heap_mb": 512, "commitlog_total_space": "512MiB"},
            "workload": {"name": "A", "records": 10_000},
            "load": {"operations": 10_000, "threads": 1},
            "design": {"starts": starts, "trials": trials, "seed": 7},
            "analysis": {"warm_up_trials": warm_up_trials},
            "factors": {"nodes": tuple(nodes), "workload": tuple(workloads)},
        }
    )


def records(of: Study, *, faults: bool = True) -> tuple[TrialRecord, ...]:
    """Sealed trials of every treatment in randomised order, with a voided attempt, a failed cell and warm-up."""
    rng = random.Random(of.design.seed)
    found: list[TrialRecord] = []
    clock_s = BEGUN_S
    for start_replicate in range(1, of.design.starts + 1):
        sizes = list(of.factors["nodes"])
        rng.shuffle(sizes)
        for size in sizes:
            clock_s += 45.0
            start_effect = rng.gauss(1.0, 0.015)
            start = f"b{start_replicate:02d}-{int(size):012x}"
            order = 0
            for replicate in range(1, of.design.trials + 1):
                kinds = list(of.factors["workload"])
                rng.shuffle(kinds)
                for kind in kinds:
                    order += 1
                    if faults and order == 5 and start_replicate == 1:
                        found.append(
                            _trial(
                                of, rng, clock_s, start, start_replicate, replicate, order, size, kind, 1.0, voided=True
                            )
                        )
                        clock_s += 11.0
                    fault = faults and kind == "E" and replicate == of.design.trials and start_replicate == 2
                    warm = 1.0 + 0.35 / replicate**2
                    record = _trial(
                        of,
                        rng,
                        clock_s,
                        start,
                        start_replicate,
                        replicate,
                        order,
                        size,
                        kind,
                        start_effect * warm,
                        fault=fault,
                        attempt=2 if faults and order == 5 and start_replicate == 1 else 1,
                        position=len(found),
                    )
                    found.append(record)
                    clock_s = (record.ended_s or clock_s) + 6.0
    return tuple(found)


def _trial(
    of: Study, rng: random.Random, begun_s: float, start: str, start_replicate: int, replicate: int, order: int,
    size: Any, kind: Any, factor: float, *, voided: bool = False, fault: bool = False, attempt: int = 1,
    position: int = 0,
) -> TrialRecord:  # fmt: skip
    nodes = int(size)
    milliseconds = MILLISECONDS_BY_WORKLOAD[kind] * nodes ** EXPONENT_BY_WORKLOAD[kind] * factor * rng.gauss(1, 0.02)
    milliseconds *= 10.0
    operations = of.load.operations or 10_000
    mean = milliseconds / operations
    p50, p95, p99 = mean * 0.86, mean * 1.9, mean * (3.6 + rng.random())
    verdict = Verdict(outcome="valid")
    if voided:
        verdict = Verdict(
            outcome="invalid",
            reasons=(Reason(kind=ReasonKind.PROBE_GAP, measured=7.2, threshold=5.0, unit="s", detail="node n1"),),
        )
    if fault:
        verdict = FAULT
    treatment = {"nodes": size, "workload": kind}
    settings = of.model_dump(mode="json", include={"site", "system", "workload", "load", "data"})
    settings["site"]["nodes"] = size
    settings["workload"]["name"] = kind
    responses = Responses(
        execution_time_ms=milliseconds,
        operations=operations,
        throughput_per_s=operations / milliseconds * 1000,
        response_ms_mean=mean, response_ms_p50=p50, response_ms_p95=p95, response_ms_p99=p99, response_ms_max=p99 * 9,
        service_ms_mean=mean, service_ms_p50=p50, service_ms_p95=p95, service_ms_p99=p99,
        lag_ms_p99=0.02, generator_cpu_us_per_operation=21.0 + rng.random(),
    )  # fmt: skip
    if fault:
        responses = Responses(operations=operations // 3, errors=41)
    return TrialRecord(
        id=f"{abs(hash((nodes, MILLISECONDS_BY_WORKLOAD[kind]))) % 16**12:012x}-s{start_replicate}-t{replicate}",
        attempt=attempt, study=of.study.name, treatment=treatment, hard=("nodes",), settings=settings,
        block=start_replicate, planned_start=start, start=start, start_replicate=start_replicate, replicate=replicate,
        position=position, order_in_start=order, seed=1000 * start_replicate + replicate,
        begun_s=begun_s, ended_s=begun_s + milliseconds / 1000 + 2.0,
        phases=(
            PhaseTime(phase=Phase.SETTLE, entered_s=begun_s, left_s=begun_s + 1.5),
            PhaseTime(phase=Phase.MEASURE, entered_s=begun_s + 1.5, left_s=begun_s + 1.5 + milliseconds / 1000),
        ),
        verdict=verdict, responses=responses,
        versions={"steelyard": "0.1.0", "agent": "0.1.0", "system": "cassandra 5.0.5", "kernel": "6.1.0"},
        shares=("cpu", "memory", "disk", "clock", "kernel"),
    )  # fmt: skip


def samples(record: TrialRecord) -> pl.DataFrame:
    """Readings of every node, one a second, in the store's columns."""
    rng = random.Random(record.seed)
    rows: list[dict[str, object]] = []
    nodes = int(record.treatment["nodes"])
    measure = next((phase for phase in record.phases if phase.phase is Phase.MEASURE), None)
    begun_s = measure.entered_s if measure else record.begun_s
    for index in range(1, nodes + 1):
        for second in range(SAMPLE_SECONDS):
            ripple = 1 + 0.2 * rng.random() + (0.5 if second % 13 == 7 else 0)
            values = {
                "node_cpu_user_cores": 0.62 / nodes**0.5 * ripple,
                "node_cpu_system_cores": 0.14 / nodes**0.5 * ripple,
                "node_disk_write_bytes_per_s": 1.4e6 * ripple * (3 if second % 13 == 7 else 0.2),
                "node_disk_read_bytes_per_s": 2.0e5 * ripple,
                "node_network_receive_bytes_per_s": 9.0e5 * ripple,
                "node_network_transmit_bytes_per_s": 1.1e6 * ripple,
                "node_memory_bytes": 9.1e8 + 1e6 * second,
                "machine_cpu_user_fraction": 0.55 * min(ripple, 1.6),
            }
            rows += [
                {"t_s": begun_s + second, "node": f"n{index}", "metric": metric, "value": value}
                for metric, value in values.items()
            ]
    return pl.DataFrame(rows, schema={"t_s": pl.Float64, "node": pl.String, "metric": pl.String, "value": pl.Float64})


def intervals(record: TrialRecord) -> pl.DataFrame:
    """Occupied histogram buckets, one group a second, in the store's columns."""
    rng = random.Random(record.seed + 1)
    measure = next((phase for phase in record.phases if phase.phase is Phase.MEASURE), None)
    begun_s = measure.entered_s if measure else record.begun_s
    mean_ns = int((record.responses.response_ms_mean or 1.0) * 1e6)
    rows = [
        {
            "node": "load1", "phase": "measure", "t_s": begun_s + second, "seconds": 1.0, "operation": "read",
            "outcome": "ok", "measure": "response", "bucket_low_ns": int(mean_ns * place),
            "bucket_high_ns": int(mean_ns * place * 1.01), "count": max(1, int(share * 900 * rng.gauss(1, 0.1))),
        }
        for second in range(15)
        for place, share in ((0.7, 0.3), (0.86, 0.4), (1.2, 0.2), (1.9, 0.07), (3.9, 0.03))
    ]  # fmt: skip
    return pl.DataFrame(rows)


def interval_records(record: TrialRecord) -> list[Interval]:
    """15 s of 1,000 operations each, as they come off the wire."""
    begun_s = record.begun_s + 1.5
    buckets = [(700_000, 705_000, 900), (5_000_000, 5_040_000, 85), (50_000_000, 50_400_000, 15)]
    counts = [made.counts(buckets, measure=measure) for measure in ("response", "service", "lag")]
    return [made.interval(*counts, t_s=begun_s + at, sent=1000, done=1000) for at in range(15)]


def curves(shown: Sequence[TrialRecord]) -> list[time_courses.Curve]:
    """Percentile curves of response and service time, each from one trial's intervals."""
    found = [
        time_courses.curve(record.treatment, measure, intervals(record), trials=1)
        for record in shown
        for measure in ("response", "service")
    ]
    return [one for one in found if one is not None]


def facts(record: TrialRecord) -> Mapping[str, Mapping[str, str]]:
    """What machine, site and system say about themselves."""
    nodes = int(record.treatment["nodes"])
    found: dict[str, Mapping[str, str]] = {
        "machine": {
            "cpu_model": "AMD EPYC 7B13", "cores": "2", "memory_mb": "24053", "kernel": "6.1.0-13-amd64",
            "virtualisation": "kvm", "java": "17.0.9",
        }
    }  # fmt: skip
    for index in range(1, nodes + 1):
        found[f"system:n{index}"] = {
            "release_version": "5.0.5", "num_tokens": "16", "heap_mb": "512", "commitlog_total_space": "512MiB",
            "concurrent_reads": "32", "listen_address": f"10.113.0.{index}",
        }  # fmt: skip
    return found


def stored(folder: Path, of_system: Mapping[str, str] | None = None, **of_machine: str) -> Path:
    """A store below `folder` with eight valid trials of workload A on 1 and 3 nodes: facts, samples, intervals of load.
    `of_system`, `of_machine`: further facts of the system on every node, of the machine. Returns the study's folder."""
    small = study(workloads=("A",), trials=2)
    plan = Plan(study=small.study.name, seed=7, factors=small.factors, hard=("nodes",), trials=())
    with StoreWriter(folder, small.study.name) as writer:
        writer.intend(small, "", plan)
        for record in records(small, faults=False):
            draft = writer.draft(record.id, record.attempt)
            for name, of_name in facts(record).items():
                further = (of_system or {}) if name.startswith("system:") else of_machine if name == "machine" else {}
                draft.facts(name, {**of_name, **further})
            frame = samples(record)
            for node in frame["node"].unique():
                rows = frame.filter(frame["node"] == node).iter_rows(named=True)
                draft.samples(node, [Sample(row["t_s"], node, row["metric"], row["value"]) for row in rows])
            draft.intervals("load1", interval_records(record))
            draft.seal(record)
        return writer.folder
