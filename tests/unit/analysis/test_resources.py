"""Processors and disks of a trial from made samples."""

from __future__ import annotations

import polars as pl
import pytest

from steelyard.analysis.resources import SAMPLED, SHARED, sampled

IDLE, WRITTEN = "machine_cpu_idle_fraction", "machine_disk_write_bytes_per_s"


def samples(seconds: int) -> pl.DataFrame:
    """Two database nodes, idle 0.2 and 0.4, writing 1024 and 3072 bytes/s, three times that from second 30; a load
    node that is not asked about."""
    rows = []
    for t in range(seconds):
        busy = 3 if t >= 30 else 1
        for node, idle, written in (("n1", 0.2, 1024.0), ("n2", 0.4, 3072.0), ("l1", 0.0, 1e9)):
            rows += [(node, 101.0 + t, IDLE, idle), (node, 101.0 + t, WRITTEN, written * busy)]
    return pl.DataFrame(rows, schema=["node", "t_s", "metric", "value"], orient="row")


@pytest.mark.parametrize(
    ("name", "value"), [("cpu_percent", 70.0), ("disk_written_kb_per_s", 4.0), ("disk_written_most_kb_per_s", 6.0)]
)
def test_numbers(name: str, value: float) -> None:
    assert sampled(name, samples(60), ["n1", "n2"], 100.0, 160.0) == pytest.approx(value)
    assert sampled(name, samples(60), ["n3"], 100.0, 160.0) is None
    assert set(SHARED) == set(SAMPLED)


def test_a_trial_shorter_than_a_point_has_no_greatest_point() -> None:
    assert sampled("disk_written_most_kb_per_s", samples(10), ["n1"], 100.0, 110.0) is None
