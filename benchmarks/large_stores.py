"""Large stores: time and memory of `status`, `report` and `verify`, over trials, nodes, seconds and bytes.

    python benchmarks/large_stores.py                  1,008 trials of 60 s with samples of 6 nodes, the report alone
    python benchmarks/large_stores.py trials nodes seconds bytes [--scale 0.1]    each axis at four sizes, as a table

The stores are made up, are as `verify` wants them, and are thrown away. Each command runs in a process of its own, so
that the making of a store is not counted. Tables have seconds of processor time, which other work hardly changes.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from steelyard.events.kept import TrialSealed
from steelyard.judging.measures import measures_of, readings_of_samples
from steelyard.judging.trial_responses import responses
from steelyard.model.sample import Sample
from steelyard.model.trial import Phase, PhaseTime, Responses, TrialRecord
from steelyard.model.verdict_reasons import Verdict
from steelyard.plan import expand
from steelyard.store import layout
from steelyard.store.write import StoreWriter, record_sha256
from steelyard.study.read import read_text
from steelyard.wire.record import NO_SUMMARY, Counts, Done, Interval

LIMIT_S, LIMIT_MB = 8.0, 300.0
"""Of the report of the first size."""
METRICS: Final = (
    "node_cpu_user_cores", "node_cpu_system_cores", "node_disk_read_bytes_per_s", "node_disk_write_bytes_per_s",
    "node_network_receive_bytes_per_s", "node_network_transmit_bytes_per_s", "node_memory_bytes",
)  # fmt: skip
BEGUN_S: Final = 1_790_000_000.0
RATE_PER_S: Final = 1000
BUCKETS: Final = 45
TREATMENTS: Final = 12
PER_START: Final = 21
"""Trials of a treatment in a start, if the store has as many."""
LOG_LINE: Final = b"INFO  [main] 2026-11-29 20:00:00,000 Server.java:100 - a line of the log of a server as it is\n"
COURSES: Final = 4
"""Different time courses of a treatment's trials."""
STUDY: Final = """
format = 1
[study]
name = "large"
question = "How long does its report take?"
[site]
name = "local"
[system]
name = "simulated"
[workload]
name = "ycsb-a"
records = 1000
[load]
schedule = "constant"
rate_per_s = {rate}
duration_s = {seconds}
threads = 64
[design]
starts = {starts}
trials = {trials}
seed = 7
[factors]
nodes = [1, 3, 6]
workload = ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-f"]
"""


class Size(NamedTuple):
    """How large a store is."""

    trials: int
    seconds: int
    nodes: int
    log_mb: int = 0
    """Log of each node and trial."""


class Used(NamedTuple):
    """What a command used."""

    seconds: float
    processor_s: float
    peak_mb: float
    status: int


class Course(NamedTuple):
    """The time course of a trial that begins at 0: its intervals, and the responses that follow from them."""

    intervals: pl.DataFrame
    responses: Responses


FIRST: Final = Size(trials=1008, seconds=60, nodes=6)
LARGEST: Final = {
    "trials": Size(trials=10_080, seconds=20, nodes=1),
    "nodes": Size(trials=12, seconds=60, nodes=1000),
    "seconds": Size(trials=504, seconds=600, nodes=6),
    "bytes": Size(trials=48, seconds=60, nodes=6, log_mb=36),
}
COMMANDS: Final = ("status", "report", "verify")


def sizes_of(axis: str, scale: float) -> list[Size]:
    """Four sizes, each twice the one before, up to the largest times `scale`."""
    largest, field = LARGEST[axis], "log_mb" if axis == "bytes" else axis
    most = getattr(largest, field) * scale
    step = TREATMENTS * PER_START if field == "trials" else 1
    return [largest._replace(**{field: step * math.ceil(most / 2**by / step)}) for by in (3, 2, 1, 0)]


def course(seed: int, seconds: int) -> Course:
    """Reads and updates in intervals of 1 s: response and service time in 45 buckets each."""
    rng = random.Random(seed)
    slow, records, operations = rng.gauss(1.0, 0.03), [], 0
    lows = [int(400_000 * slow * 1.12**step) for step in range(BUCKETS)]
    for second in range(seconds):
        tables = []
        for operation in ("read", "update"):
            counts = [max(1, int(rng.expovariate(1 / 30) * (1 if step < 25 else 0.1))) for step in range(BUCKETS)]
            buckets = tuple((low, int(low * 1.008), count) for low, count in zip(lows, counts, strict=True))
            tables += [
                Counts(operation=operation, outcome="ok", measure=measure, buckets=buckets)
                for measure in ("response", "service")
            ]
            operations += sum(counts)
        done = sum(count for table in tables[::2] for _, _, count in table.buckets)
        records.append(
            Interval(
                phase="measure", t_s=BEGUN_S + second, seconds=1.0, sent=done, done=done, errors=0, backlog=0,
                cpu_fraction=0.1, summary=NO_SUMMARY, counts=tuple(tables),
            )
        )  # fmt: skip
    ends = Done(
        phase="measure", first_sent_s=BEGUN_S, last_done_s=BEGUN_S + seconds, execution_ns=seconds * 10**9,
        operations=operations, errors=0, errors_by_kind={}, not_found=0, rows=0, cpu_ns=1000,
        busiest_thread_fraction=0.1, dropped=0, reconnections=0,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, StoreWriter(Path(folder), "course") as writer:
        writer.draft("one", 1).intervals("l1", records)
        (path,) = Path(folder).rglob("l1.parquet")
        return Course(pl.read_parquet(path), responses(records, [ends]))


def readings(seconds: int) -> list[Sample]:
    """Readings of one node, each second."""
    rng = random.Random(1)
    return [Sample(BEGUN_S + second, "n1", metric, rng.random()) for second in range(seconds) for metric in METRICS]


def write(folder: Path, size: Size) -> Path:
    """Make the store; gives the study's folder."""
    each = PER_START if size.trials >= TREATMENTS * PER_START else 1
    starts = math.ceil(size.trials / TREATMENTS / each)
    text = STUDY.format(rate=RATE_PER_S, seconds=size.seconds, starts=starts, trials=each)
    of, samples = read_text(text), readings(size.seconds)
    plan, courses = expand(of), [course(seed, size.seconds) for seed in range(COURSES)]
    frame = pl.DataFrame([sample[:1] + sample[2:] for sample in samples], schema=layout.SAMPLE_SCHEMA, orient="row")
    with StoreWriter(folder, of.study.name) as writer:
        writer.intend(of, text, plan)
        for planned in plan.trials[: size.trials]:
            draft, by, begun_s = writer.draft(planned.id, 1), (size.seconds + 5.0) * planned.position, BEGUN_S
            begun_s += by
            of_trial = courses[planned.seed % COURSES]
            shifted = of_trial.intervals.with_columns(pl.col("t_s") + by)
            shifted.write_parquet(draft.folder / layout.INTERVALS / "l1.parquet")
            moved = frame.with_columns(pl.col("t_s") + by)
            facts = {f"n{node}": {"cpu_model": "made up", "cores": "4"} for node in range(1, size.nodes + 1)}
            for node, of_node in facts.items():
                moved.write_parquet(draft.folder / layout.SAMPLES / f"{node}.parquet")
                draft.facts(node, of_node)
                if size.log_mb:
                    # Not as the laboratory does, which looks for secrets in each line.
                    log = draft.folder / layout.LOGS / node / "system.log"
                    log.parent.mkdir(parents=True)
                    log.write_bytes(LOG_LINE * (size.log_mb * 2**20 // len(LOG_LINE)))
            measured = PhaseTime(phase=Phase.MEASURE, entered_s=begun_s, left_s=begun_s + size.seconds)
            record = TrialRecord(
                **planned.model_dump(exclude={"start"}), study=of.study.name, planned_start=planned.start,
                start=planned.start, order_in_start=1, begun_s=begun_s, ended_s=begun_s + size.seconds + 3.0,
                phases=(measured,), verdict=Verdict(outcome="valid"), responses=of_trial.responses,
                versions={"steelyard": "0"}, limits=of.limits,
            )  # fmt: skip
            at = {node: [one._replace(t_s=one.t_s + by, node=node) for one in samples] for node in facts}
            record = draft.seal(
                record.model_copy(update={"measures": measures_of(record, readings_of_samples(at), facts)})
            )
            writer.event(
                TrialSealed(
                    trial=record.id, attempt=1, outcome="valid", reasons=(), record_sha256=record_sha256(record)
                )
            )
        return writer.folder


def used(command: str, store: Path) -> Used:
    """Run a command of `steelyard` on the store."""
    argv = [sys.executable, "-m", "steelyard", command, str(store)]
    began = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    return Used(time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, status)


def rows(sizes: Sequence[Size], commands: Sequence[str], within: Path) -> Iterator[tuple[Size, float, list[Used]]]:
    """Each size with the bytes of its store and what the commands used."""
    for size in sizes:
        with tempfile.TemporaryDirectory(dir=within) as folder:
            store = write(Path(folder), size)
            held = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
            yield size, held / 1e6, [used(command, store) for command in commands]


def main() -> int:
    """Print a table per axis; without any, hold the report of the first size against its limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("axes", nargs="*", choices=[*LARGEST, []])
    parser.add_argument("--scale", type=float, default=1.0, help="Part of the largest size.")
    parser.add_argument("--folder", type=Path, help="Folder for the stores, which may need 12 GB.")
    given = parser.parse_args()
    for axis in given.axes:
        print(
            f"| {axis}: trials, seconds, nodes, MB of log | store, MB "
            f"| {' | '.join(f'{one}, s | MB' for one in COMMANDS)} |"
        )
        print("|" + " --- |" * (2 + 2 * len(COMMANDS)))
        for size, held_mb, measured in rows(sizes_of(axis, given.scale), COMMANDS, given.folder):
            cells = [
                f"{one.processor_s:.1f}{'' if one.status == 0 else ' (failed)'} | {one.peak_mb:.0f}" for one in measured
            ]
            print(
                f"| {size.trials:,}, {size.seconds:,}, {size.nodes:,}, {size.log_mb:,} | {held_mb:,.0f} "
                f"| {' | '.join(cells)} |",
                flush=True,
            )
    if given.axes:
        return 0
    ((size, held_mb, (report,)),) = rows([FIRST], ["report"], given.folder)
    print(
        f"{size.trials} trials ({held_mb:.0f} MB): {report.seconds:.1f} s (processor {report.processor_s:.1f} s) of "
        f"{LIMIT_S:g} s, {report.peak_mb:.0f} MB of {LIMIT_MB:g} MB"
    )
    return 1 if report.status or report.seconds > LIMIT_S or report.peak_mb > LIMIT_MB else 0


if __name__ == "__main__":
    sys.exit(main())
