"""What the engine `job` adds to a job, next to the same command by hand, on real Spark over HDFS; and how long the
cluster takes to start. In turns; each job takes some seconds, on this machine's loopback addresses without limits."""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from steelyard import engine_order
from steelyard.engine.job import JobEngine
from steelyard.model.load import Load
from steelyard.node import files
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.system.spark_hdfs import SparkHdfs
from steelyard.testing.cluster import running
from steelyard.wire.record import Interval, Record
from steelyard.workload import job as workloads

JOB_TIMEOUT_S = 300.0


async def by_engine(
    system: SparkHdfs, nodes: tuple[Node, ...], loader: Node, workload: workloads.Job
) -> tuple[float, float]:
    """(response time of one job as the engine reports it, s from the call of the engine to its end)."""
    heard: list[Record] = []
    schema = workload.schema()
    load = Load.model_validate({"operations": 1, "timeout_ms": int(JOB_TIMEOUT_S * 1000)})
    order = engine_order.measure(load, system.endpoint(nodes, schema), schema, workload, 1, discover=True)
    begun = time.monotonic()
    await JobEngine().drive(order, (loader,), lambda name, record: heard.append(record), JOB_TIMEOUT_S)
    whole_s = time.monotonic() - begun
    (response_s,) = (
        low / 1e9
        for record in heard
        if isinstance(record, Interval)
        for counts in record.counts
        if (counts.measure, counts.outcome) == ("response", "ok")
        for low, _, _ in counts.buckets
    )
    return response_s, whole_s


async def by_hand(
    system: SparkHdfs, nodes: tuple[Node, ...], loader: Node, workload: workloads.Job, turn: int
) -> tuple[float, float]:
    """(s of the submitted program without its check of the output, s of it all)."""
    schema = workload.schema()
    endpoint = system.endpoint(nodes, schema)
    await files.make_folders(loader, log := loader.folder / "by-hand" / str(turn))
    program = str(await files.bring(loader, Path(endpoint.program)))
    logging = ("--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir=file://{log}")
    submit = [word.replace("{folder}", str(loader.folder)) for word in endpoint.submit]
    source, output = endpoint.files + schema.inputs[0][0], f"{endpoint.files}/by-hand-{turn}"
    begun = time.monotonic()
    await run(loader, [*submit, *logging, program, "wordcount", source, output], timeout_s=JOB_TIMEOUT_S)
    whole_s = time.monotonic() - begun
    (name,) = await files.sizes(loader, log)
    events = [json.loads(line) for line in (await files.read(loader, log / name, most=64 << 20)).splitlines()]
    begins = [event for event in events if event["Event"] == "SparkListenerJobStart"]
    checks = {event["Job ID"] for event in begins if event["Properties"].get("spark.jobGroup.id") == "check"}
    first_ms = min(event["Submission Time"] for event in begins if event["Job ID"] in checks)
    last_ms = max(
        event["Completion Time"]
        for event in events
        if event["Event"] == "SparkListenerJobEnd" and event["Job ID"] in checks
    )
    return whole_s - (last_ms - first_ms) / 1000, whole_s


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--input-mb", type=int, default=20)
    given = parser.parse_args()
    workload = workloads.create(workloads.Settings(input_mb=given.input_mb, expected="counts"), "wordcount")
    with tempfile.TemporaryDirectory() as text:
        begun = time.monotonic()
        folder = Path(text)
        async with running(folder, nodes=3, system="spark-hdfs", system_settings={"replication_factor": 2}) as cluster:
            print(json.dumps({"row": "start of 2 workers", "s": round(time.monotonic() - begun, 2)}), flush=True)
            system, nodes = cluster.system, cluster.nodes
            assert isinstance(system, SparkHdfs)
            (folder / "l1").mkdir()
            loader = replace(nodes[0], name="l1", role="load", folder=folder / "l1")
            await system.provide_clients([loader], nodes)
            await system.create_schema(nodes, workload.schema())
            rows = []
            for turn in range(given.turns):
                one = await by_engine(system, nodes, loader, workload)
                hand = await by_hand(system, nodes, loader, workload, turn)
                rows.append((one, hand))
                print(json.dumps({"turn": turn, "engine_s": one, "by_hand_s": hand}), file=sys.stderr, flush=True)
            for place, what in enumerate(("without its check", "with it")):
                added = [one[place] - hand[place] for one, hand in rows]
                print(
                    json.dumps(
                        {
                            "row": f"a job {what}",
                            "by_hand_s": round(statistics.median(hand[place] for _, hand in rows), 3),
                            "added_s": [round(of(added), 3) for of in (statistics.median, min, max)],
                        }
                    )
                )


if __name__ == "__main__":
    asyncio.run(main())
