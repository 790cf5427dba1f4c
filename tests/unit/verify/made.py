"""A small sealed store whose numbers follow from its intervals, as a study leaves it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from steelyard.events.kept import TrialSealed
from steelyard.judging.covariates import covariates_of
from steelyard.judging.measures import measures_of, readings_of_samples
from steelyard.judging.trial_responses import responses
from steelyard.model.sample import Sample
from steelyard.model.study import Study
from steelyard.model.trial import Phase, PhaseTime, TrialRecord
from steelyard.model.verdict_reasons import Verdict
from steelyard.plan import expand
from steelyard.store.write import StoreWriter, record_sha256
from steelyard.study.read import read_text
from steelyard.wire.record import Done, Interval
from tests.unit.wire import made

STUDY = """
format = 1
[study]
name = "made"
question = "Which is faster?"
[site]
name = "local"
[system]
name = "simulated"
service_us = 1000.0
[workload]
name = "ycsb-c"
records = 100
[load]
threads = 4
operations = 200
[design]
starts = 3
trials = 1
seed = 3
[factors]
nodes = [1, 2]
"""
BEGUN_S = 1_790_000_000.0


def study(text: str = STUDY) -> Study:
    """The study as a file of it is read."""
    return read_text(text)


def engine_records(seed: int, speed: float, operations: int = 200) -> tuple[list[Interval], list[Done]]:
    """Intervals and ends as the engine would send them, two seconds of them."""
    rng = random.Random(seed)
    half = operations // 2
    intervals: list[Interval] = []
    for second in range(2):
        buckets: dict[int, int] = {}
        for _ in range(half):
            low = 1000 * round(rng.gauss(1000.0, 50.0) / speed)
            buckets[low] = buckets.get(low, 0) + 1
        table = [(low, low + 999, count) for low, count in sorted(buckets.items())]
        counts = [made.counts(table, measure=measure) for measure in ("response", "service", "lag", "pacing")]
        begun_s = BEGUN_S + second / speed
        intervals.append(made.interval(*counts, t_s=begun_s, seconds=1.0 / speed, sent=half, done=half))
    end = made.done(
        operations=operations, cpu_ns=4_000_000, execution_ns=int(1.9e9 / speed) + seed, first_sent_s=BEGUN_S,
        last_done_s=BEGUN_S + 1.9 / speed,
    )  # fmt: skip
    return intervals, [end]


def sealed_line(record: TrialRecord) -> TrialSealed:
    """The journal's line about a record."""
    return TrialSealed.of_record(record, record_sha256(record))


def _busy(begun_s: float, cores: float) -> list[Sample]:
    """Samples of a node that keeps so many cores busy, over two seconds; a quarter of the time in the kernel."""
    parts = {"node_cpu_user_cores": 0.75 * cores, "node_cpu_system_cores": 0.25 * cores}
    return [Sample(begun_s + t_s, "n1", name, value) for t_s in (1.0, 2.0) for name, value in parts.items()]


def _measured(begun_s: float) -> tuple[PhaseTime, ...]:
    return (PhaseTime(phase=Phase.MEASURE, entered_s=begun_s, left_s=begun_s + 2.0),)


def store(root: Path, *, speed: float = 1.0, text: str = STUDY, begun_s: float = BEGUN_S, cores: str = "2",
          samples: Mapping[int, float] | None = None) -> Path:  # fmt: skip
    """Seal every planned trial, valid; `speed` divides all times. Gives the study's folder. `samples`: number of nodes
    to the cores that node n1 keeps busy."""
    asked = study(text)
    plan = expand(asked)
    with StoreWriter(root, asked.study.name) as writer:
        writer.intend(asked, text, plan)
        for planned in plan.trials:
            nodes = int(planned.settings.root["site"]["nodes"])
            intervals, dones = engine_records(planned.seed % 1000, speed * nodes**0.5)
            draft = writer.draft(planned.id, 1)
            draft.intervals("l1", intervals)
            begins_s = begun_s + 10.0 * planned.position
            phases = () if samples is None else _measured(begins_s)
            samples_of_n1 = [] if samples is None else _busy(begins_s, samples[nodes])
            draft.samples("n1", samples_of_n1)
            facts = {"n1": {"cores": cores, "cpu_model": "made", "address": f"10.0.0.{planned.position}"}}
            draft.facts("n1", facts["n1"])
            record = TrialRecord(
                **planned.model_dump(exclude={"start"}), study=asked.study.name, planned_start=planned.start,
                start=planned.start, order_in_start=1, begun_s=begins_s, ended_s=begins_s + 3.0, phases=phases,
                verdict=Verdict(outcome="valid"), covariates=covariates_of(facts, ()),
                responses=responses(intervals, dones), versions={"steelyard": "0"}, limits=asked.limits,
            )  # fmt: skip
            measures = measures_of(record, readings_of_samples({"n1": samples_of_n1}), facts)
            record = draft.seal(record.model_copy(update={"measures": measures}))
            writer.event(sealed_line(record))
        return writer.folder
