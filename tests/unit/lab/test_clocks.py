"""Clocks of nodes: read by round trips, corrected at intake, and judged around each trial."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from steelyard.engine.cassandra_stress import CassandraStress
from steelyard.events.base import Silent
from steelyard.events.shown import TimeLeft
from steelyard.lab import clocks
from steelyard.lab.cluster import Cluster
from steelyard.lab.conductor import Conductor
from steelyard.leases.lease import Lease
from steelyard.model.errors import ClockError
from steelyard.model.trial import ClockOffset, TrialRecord
from steelyard.model.verdict_reasons import ReasonKind
from steelyard.node.base import Node
from steelyard.report.prose import method_and_facts
from steelyard.site.base import Request
from steelyard.store import Store, StoreWriter
from steelyard.wire.record import Record, nothing_done
from tests.unit.lab import fakes
from tests.unit.wire import made

AHEAD_S = 3.0
ELSEWHERE = {"kernel": "elsewhere", "environment": {"STEELYARD_CLOCK_OFFSET_S": str(AHEAD_S)}}
HERE = Node("n1", "database", "127.0.0.1", (), Path("/nodes/n1"))


@pytest.mark.agent
def test_a_clock_of_another_kernel_is_read_to_within_half_a_round_trip() -> None:
    ahead = dataclasses.replace(HERE, **ELSEWHERE)
    through = dataclasses.replace(ahead, name="n2", processes="through")
    readings = asyncio.run(clocks.read([ahead, through, dataclasses.replace(HERE, name="n3")]))
    assert set(readings) == {"n1", "n2"}, "n3 has the conductor's clock"
    for reading in readings.values():
        assert abs(reading.offset_s - AHEAD_S) <= reading.error_s + 0.001
        assert 0 < reading.error_s < 1


@pytest.mark.parametrize("program", ["true", "echo", "/there/is/no/such/program"])
def test_a_clock_that_cannot_be_read_says_whose(program: str) -> None:
    node = dataclasses.replace(HERE, kernel="elsewhere", agent=program)
    with pytest.raises(ClockError, match="n1: its clock cannot be read"):
        asyncio.run(clocks.read([node]))


def test_a_clock_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o755)
    with pytest.raises(ClockError, match=r"not read within 0\.2 s"):
        asyncio.run(clocks.read([dataclasses.replace(HERE, kernel="elsewhere", agent=str(silent))], 0.2))


def test_times_of_records_are_put_on_our_clock() -> None:
    taken: dict[str, Record] = {}
    take = clocks.on_our_clock(lambda node, record: taken.update({node: record}), {"l1": AHEAD_S})
    for record, names in (
        (made.HELLO, ["t_s"]),
        (made.interval(), ["t_s"]),
        (made.done(), ["first_sent_s", "last_done_s"]),
    ):
        take("l1", record)
        take("l2", record)
        assert taken["l2"] is record, "its clock is ours"
        for name in names:
            assert getattr(taken["l1"], name) == pytest.approx(getattr(record, name) - AHEAD_S)
    take("l1", nothing_done("measure"))
    assert taken["l1"] == nothing_done("measure"), "no time was said"


def test_the_error_left_is_what_the_clock_moved_and_the_error_of_reading_it() -> None:
    before = {"n1": clocks.Reading(3.0, 0.001)}
    (offset,) = clocks.offsets(before, {"n1": clocks.Reading(2.99, 0.002)})
    assert offset == ClockOffset(node="n1", before_s=3.0, after_s=2.99, error_s=0.002)
    assert offset.worst_s == pytest.approx(0.012)


class ElsewhereSite(fakes.FakeSite):
    """A site whose nodes have a clock of their own."""

    async def lease(self, request: Request, until: datetime) -> Lease:
        lease = await super().lease(request, until)
        nodes = tuple(dataclasses.replace(node, kernel=f"kernel of {node.name}") for node in lease.nodes)
        return dataclasses.replace(lease, nodes=nodes)


class ElsewhereParts(fakes.FakeParts):
    def site(self, settings: Any) -> fakes.FakeSite:
        return ElsewhereSite(self.script)


def records_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, offsets_s: Sequence[float | None], parts: type[fakes.FakeParts]
) -> list[TrialRecord]:
    """Records of a study whose clocks read these offsets one after the other (None: not at all), then the last one."""
    fakes.without_waiting(monkeypatch)
    still = list(offsets_s)

    async def read(nodes: Sequence[Node]) -> dict[str, clocks.Reading]:
        offset_s = still.pop(0) if len(still) > 1 else still[0]
        if offset_s is None:
            raise ClockError("n1: its clock cannot be read: no answer", node="n1")
        return {node.name: clocks.Reading(offset_s, 0.001) for node in clocks.of_own_clock(nodes)}

    # Offsets of an exact size, one after the other.
    monkeypatch.setattr(clocks, "read", read)
    study = fakes.study(
        design={"starts": 1, "trials": 1, "seed": 3}, factors={"nodes": [1]}, data={"state": "continue"}
    )
    plan = fakes.plan_of(study)
    with StoreWriter(folder / "store", "fake") as writer:
        writer.intend(study, "", plan)
        made_parts: Any = parts(fakes.Script(folder))
        conductor = Conductor(study, plan, writer, made_parts, Silent(), lambda todo, records: TimeLeft(0, 0, 0))
        asyncio.run(conductor.run())
    return list(Store(folder / "store" / "fake").trials())


def test_a_trial_says_how_its_times_were_corrected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (record,) = records_of(tmp_path, monkeypatch, [3.0, 3.0, 3.002], ElsewhereParts)
    assert [(one.node, one.before_s, one.after_s) for one in record.clocks] == [("l1", 3.0, 3.002), ("n1", 3.0, 3.002)]
    assert record.verdict.outcome == "valid"
    (intervals,) = (tmp_path / "store" / "fake").glob("trials/*/intervals/l1.parquet")
    assert pl.read_parquet(intervals)["t_s"].min() == pytest.approx(made.interval().t_s - 3.0)
    words = method_and_facts._clocks([record])
    assert "their own clock were put on the conductor’s: l1 by 3.0000 s and n1 by 3.0000 s" in words
    assert words.endswith("the error left in them is at most 3.0 ms.")


class SetParts(fakes.FakeParts):
    """A clock that is set while the first trial's load runs: it is read before and after each."""

    def __init__(self, script: fakes.Script, step_s: float = 3600.0) -> None:
        super().__init__(script)
        self.read = 0

        def wall() -> float:
            self.read += 1
            return time.time() + (step_s if self.read > 1 else 0.0)

        self.wall_clock = wall


class SetBackParts(SetParts):
    def __init__(self, script: fakes.Script) -> None:
        super().__init__(script, -3600.0)


class SetALittleParts(SetParts):
    def __init__(self, script: fakes.Script) -> None:
        super().__init__(script, 0.05)


@pytest.mark.parametrize(
    ("parts", "words"),
    [(SetParts, "it was set forward by 3600.0"), (SetBackParts, "it was set back by 3"), (SetALittleParts, "")],
)
def test_a_clock_that_is_set_during_a_trial_voids_the_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: type[fakes.FakeParts], words: str
) -> None:
    first, *others = records_of(tmp_path, monkeypatch, [3.0], parts)
    assert first.clock_step is not None
    if not words:
        assert first.verdict.outcome == "valid"
        return
    assert first.verdict.voided
    reason = next(reason for reason in first.verdict.reasons if reason.kind is ReasonKind.CLOCK_STEP)
    assert reason.measured == pytest.approx(3600, abs=1)
    assert (reason.threshold, reason.unit) == (0.1, "s")
    assert reason.detail.startswith(words)
    assert [other.verdict.outcome for other in others] == ["valid"], "repeated"


def test_slewing_is_no_step() -> None:
    """NTP makes a clock run up to 500 ppm faster: 1.8 s in an hour."""
    hour = clocks.Moment(0.0, 0.0).until(clocks.Moment(3600 * (1 + 500e-6), 3600.0))
    assert (hour.moved_s, hour.step_s) == (pytest.approx(1.8), pytest.approx(0.0, abs=1e-6))
    assert clocks.Moment(10.0, 0.0).until(clocks.Moment(29.0, 20.0)).step_s == pytest.approx(0.99)
    assert clocks.now(lambda: 5.0).wall_s == 5.0


def test_nodes_with_our_clock_have_no_offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (record,) = records_of(tmp_path, monkeypatch, [3.0], fakes.FakeParts)
    assert record.clocks == ()
    assert method_and_facts._clocks([record]) == ""


@pytest.mark.parametrize(
    ("offsets_s", "detail"),
    [
        (
            [3.0, 3.0, 3.3, 3.3],
            "the clock of l1 was ahead of the conductor's by 3.000 s before the trial and by 3.300 s",
        ),
        ([3.0, None, 3.0], "n1: its clock cannot be read: no answer"),
        ([3.0, 3.0, None, 3.0], "n1: its clock cannot be read: no answer"),
    ],
    ids=["it moved", "not read before", "not read after"],
)
def test_a_clock_that_is_wrong_voids_the_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offsets_s: list[float | None], detail: str
) -> None:
    first, second = records_of(tmp_path, monkeypatch, offsets_s, ElsewhereParts)
    assert first.verdict.voided
    reason = first.verdict.reasons[0]
    assert reason.kind is ReasonKind.CLOCK
    assert reason.detail.startswith(detail)
    assert second.verdict.outcome == "valid"


def test_an_engine_that_stamps_by_our_clock_is_not_corrected(tmp_path: Path) -> None:
    unused: Any = None
    cluster = Cluster("s1", unused, (), unused, unused, CassandraStress(), unused, unused)
    assert cluster._on_our_clock(print) is print
