"""Batches of a profile's inserts: their rows and partitions, and that each partition is written once."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from steelyard.dropin.stress.run import interval_stats
from steelyard.dropin.stress.run.command import conduct
from steelyard.node import agent
from steelyard.wire.order import StopAt
from tests.unit.dropin.stress.parse.test_profile import COLUMNS, PROGRAM, YAML, batch, planned
from tests.unit.dropin.stress.world import World
from tests.unit.wire import made, orders


@pytest.mark.parametrize(
    ("change", "step", "rows"),
    [
        (("cluster: uniform(1..9)", "cluster: fixed(1)"), {"kind": "execute", "statement": "insert"}, 1),
        (("cluster: uniform(1..9)", "cluster: fixed(8)"), batch(), 8),
        (
            ("select: fixed(1)/1", "select: fixed(1)/9"),
            batch(select={"of": {"name": "fixed", "value": 1.0}, "divisor": 9}),
            5 / 9 + (8 / 9) ** 5,
        ),
        (
            ("select: fixed(1)/1", "select: uniform(1..10)/20"),
            batch(select={"of": {"name": "uniform", "min": 1.0, "max": 10.0}, "divisor": 20}),
            5 * 0.275 + 0.725**5,
        ),
    ],
)
def test_how_many_rows_an_insert_writes(
    tmp_path: Path, change: tuple[str, str], step: dict[str, Any], rows: float
) -> None:
    plan = planned(tmp_path, "insert=1", YAML.replace(*change))
    assert plan.operations[0]["steps"] == [step]
    assert plan.counted["insert"].rows == pytest.approx(rows)


def test_a_batch_of_several_partitions(tmp_path: Path) -> None:
    single = YAML.replace("cluster: uniform(1..9)", "cluster: fixed(1)")
    plan = planned(tmp_path, "insert=1", single, "-insert partitions=fixed(5) batchtype=logged")
    step = plan.operations[0]["steps"][0]
    assert (step["mode"], step["repeat"], step["next_key"]) == ("logged", {"name": "fixed", "value": 5.0}, True)
    assert plan.counted["insert"].partitions == 5
    several = planned(tmp_path, "insert=1", YAML, "-insert partitions=uniform(1..5)")
    assert several.operations[0]["steps"] == [batch(repeat={"name": "uniform", "min": 1.0, "max": 5.0})]
    assert (several.counted["insert"].partitions, several.counted["insert"].rows) == (3, 15)
    # Counted by the agent, batch by batch.
    told = made.interval(made.counts([(1000, 1999, 10)], "insert"), rows={"insert": 133}, keys={"insert": 27})
    span = interval_stats.span_of(told, "insert", several.counted["insert"])
    assert (span.operations, span.partitions, span.rows) == (10, 27, 133)


@pytest.mark.agent
@pytest.mark.parametrize("sizes", ["uniform(1..20)", "gaussian(1..20)", "exp(1..40)", "fixed(7)"])
def test_batches_write_each_partition_of_a_sequence_once(tmp_path: Path, sizes: str) -> None:
    single = YAML.replace("cluster: uniform(1..9)", "cluster: fixed(1)")
    plan = planned(tmp_path, "insert=1,one=1", single, f"-insert partitions={sizes} -pop seq=1..2000")
    for only in ("insert", None):
        order = orders.order(PROGRAM, work=plan.program(only, 2000), warm_up_s=0.0, stop={"keys": 2000})
        # The number of the key itself, in place of what is drawn from it.
        sensor = json.dumps(orders.sent(order)["work"]["statements"][0]["values"][-3])
        key = json.dumps({"type": "text", "make": {"kind": "key"}})
        text = json.dumps(orders.sent(order)).replace(sensor, key)
        for processes in (1, 3):
            seen = [key for index in range(processes) for key in sent(tmp_path, text, index, processes)]
            assert sorted(seen) == list(range(2000))


def sent(tmp_path: Path, order: str, index: int, of: int) -> list[int]:
    """The first part of the partition keys that one of several processes sends."""
    path = tmp_path / "order.json"
    path.write_text(json.dumps({**json.loads(order), "share": {"index": index, "of": of}}))
    argv = [str(agent.find()), "ops", "--order", str(path), "--count", "9999", "--values"]
    done = subprocess.run(argv, check=True, timeout=60, stdout=subprocess.PIPE)
    steps = [json.loads(line)["steps"][0] for line in done.stdout.splitlines()]
    return [int(one["values"][-3]) for step in steps for one in step["statements"]]


def test_partitions_count_against_n_and_the_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(YAML)
    for ops, words, limit, rate, each in (
        ("insert=1", "-insert partitions=fixed(10)", "keys", 50.0, True),
        ("insert=1,one=1", "-insert partitions=uniform(1..17)", "keys", 100.0, True),
        ("insert=1,one=1", "", "operations", 500.0, False),
    ):
        world = World(columns=COLUMNS)
        typed = f"user profile={path} ops({ops}) n=305 -pop seq=1..305 -rate threads=2 fixed=500/s {words}"
        assert conduct(typed.split(), world.tools) == 0
        order = world.orders[-1]
        assert order.stop == StopAt.model_validate({limit: 305})
        assert order.schedule.rate_per_s == rate
        assert {one.keys.each for one in order.work.operations} == {each}
    assert "Warming up insert with 76 iterations" in capsys.readouterr().out
