"""A report of a large store: 1,000 trials of 60 s in intervals of 1 s, with samples of 6 nodes: time and memory.

The store is made up (every trial has the same readings, shifted in time) and is thrown away, unless it is named:

    python benchmarks/large_report.py --trials 1000 [--store FOLDER]

Limits: 20 s and 1 GB. The report runs in a process of its own, so that the making of the store is not counted.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import Phase, PhaseTime, Responses, TrialRecord
from steelyard.model.verdict_reasons import Verdict
from steelyard.store import layout
from steelyard.store.write import StoreWriter

SECONDS = 60
NODES = 6
METRICS = (
    "node_cpu_user_cores", "node_cpu_system_cores", "node_disk_read_bytes_per_s", "node_disk_write_bytes_per_s",
    "node_network_receive_bytes_per_s", "node_network_transmit_bytes_per_s", "node_memory_bytes",
)  # fmt: skip
LIMIT_S, LIMIT_MB = 20.0, 1000.0
BEGUN_S = 1_790_000_000.0
SIZES, WORKLOADS = (1, 3, 6), ("A", "B", "C", "F")
RATE_PER_S = 1000


def study(trials: int) -> Study:
    """Three sizes by four workloads, in as many trials as are asked for."""
    return Study.model_validate(
        {
            "study": {"name": "large", "title": "A large store", "question": "How long does its report take?"},
            "site": {"name": "local"},
            "system": {"name": "simulated"},
            "workload": {"name": "A", "records": 1000},
            "load": {"schedule": "constant", "rate_per_s": RATE_PER_S, "duration_s": SECONDS, "threads": 64},
            "design": {"starts": 4, "trials": max(1, -(-trials // (len(SIZES) * len(WORKLOADS) * 4))), "seed": 7},
            "factors": {"nodes": SIZES, "workload": WORKLOADS},
        }
    )


def intervals(rng: random.Random) -> pl.DataFrame:
    """60 s of reads and updates: response and service time in about 45 buckets each."""
    rows = []
    for second in range(SECONDS):
        for operation in ("read", "update"):
            for measure in ("response", "service"):
                for step in range(45):
                    low = int(400_000 * 1.12**step)
                    count = max(1, int(rng.expovariate(1 / 30) * (1 if step < 25 else 0.1)))
                    rows.append(
                        ("measure", BEGUN_S + second, 1.0, operation, "ok", measure, low, int(low * 1.008), count)
                    )
    return pl.DataFrame(rows, schema=layout.INTERVAL_SCHEMA, orient="row")


def samples(rng: random.Random) -> pl.DataFrame:
    """60 s of readings of one node."""
    rows = [(BEGUN_S + second, metric, rng.random() * 1e6) for second in range(SECONDS) for metric in METRICS]
    return pl.DataFrame(rows, schema=layout.SAMPLE_SCHEMA, orient="row")


def records(of: Study) -> list[TrialRecord]:
    """Every trial of the study, in blocks."""
    rng = random.Random(of.design.seed)
    found: list[TrialRecord] = []
    clock_s = BEGUN_S
    for start in range(1, of.design.starts + 1):
        for size in SIZES:
            for replicate in range(1, of.design.trials + 1):
                for workload in rng.sample(WORKLOADS, len(WORKLOADS)):
                    found.append(_record(of, rng, clock_s, start, size, replicate, workload, len(found)))
                    clock_s += SECONDS + 5
    return found


def _record(
    of: Study, rng: random.Random, begun_s: float, start: int, size: int, replicate: int, workload: str, position: int
) -> TrialRecord:
    settings = of.model_dump(mode="json", include={"site", "system", "workload", "load", "data"})
    mean = (1.2 + 0.3 * WORKLOADS.index(workload)) / size**0.3 * rng.gauss(1, 0.03)
    name = f"{SIZES.index(size):06x}{WORKLOADS.index(workload):06x}"
    return TrialRecord(
        id=f"{name}-s{start}-t{replicate}", study=of.study.name, treatment={"nodes": size, "workload": workload},
        hard=("nodes",), settings=settings, block=start, planned_start=f"b{start}-{size}", start=f"b{start}-{size}",
        start_replicate=start, replicate=replicate, position=position, order_in_start=replicate, seed=position,
        begun_s=begun_s, ended_s=begun_s + SECONDS + 2, verdict=Verdict(outcome="valid"),
        phases=(PhaseTime(phase=Phase.MEASURE, entered_s=begun_s, left_s=begun_s + SECONDS),),
        responses=Responses(
            execution_time_ms=SECONDS * 1000 * mean, operations=SECONDS * RATE_PER_S,
            throughput_per_s=RATE_PER_S / mean,
            response_ms_mean=mean, response_ms_p50=mean * 0.8, response_ms_p95=mean * 2, response_ms_p99=mean * 4,
            response_ms_max=mean * 30, service_ms_mean=mean, service_ms_p50=mean * 0.8, service_ms_p95=mean * 2,
            service_ms_p99=mean * 4, lag_ms_p99=0.1, generator_cpu_us_per_operation=20.0,
        ),
        versions={"steelyard": "0.1.0", "system": "simulated 1"},
    )  # fmt: skip


def write(folder: Path, trials: int) -> Path:
    """Make the store; gives the study's folder."""
    of, rng = study(trials), random.Random(1)
    course, readings = intervals(rng), samples(rng)
    with StoreWriter(folder, of.study.name) as writer:
        writer.intend(of, "", Plan(study=of.study.name, seed=7, factors=of.factors, hard=("nodes",), trials=()))
        for record in records(of):
            draft, by = writer.draft(record.id, record.attempt), record.begun_s - BEGUN_S
            course.with_columns(pl.col("t_s") + by).write_parquet(draft.folder / layout.INTERVALS / "l1.parquet")
            shifted = readings.with_columns(pl.col("t_s") + by)
            for node in range(1, NODES + 1):
                shifted.write_parquet(draft.folder / layout.SAMPLES / f"n{node}.parquet")
                draft.facts(f"n{node}", {"cpu_model": "made up", "cores": "4"})
            draft.seal(record)
        return writer.folder


def main() -> int:
    """Make or take the store, report it, and hold time and memory against the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--store", type=Path, help="Keep the store here, or take the one that is here.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = given.store or Path(temporary)
        folder = root / "large" if (root / "large").is_dir() else write(root, given.trials)
        page = Path(temporary) / "report.html"
        began = time.monotonic()
        argv = [
            sys.executable,
            "-c",
            "from steelyard.cli.main import main; main()",
            "report",
            str(folder),
            "--output",
            str(page),
        ]
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        took_s, peak_mb = time.monotonic() - began, usage.ru_maxrss / 1024
        attempts = sum(1 for _ in (folder / layout.TRIALS).iterdir())
        size_mb = page.stat().st_size / 1e6
        print(
            f"{attempts} trials: {took_s:.1f} s (processor {usage.ru_utime + usage.ru_stime:.1f} s) of {LIMIT_S:g} s, "
            f"{peak_mb:.0f} MB of {LIMIT_MB:g} MB, page {size_mb:.2f} MB"
        )
        return 1 if status or took_s > LIMIT_S or peak_mb > LIMIT_MB else 0


if __name__ == "__main__":
    sys.exit(main())
