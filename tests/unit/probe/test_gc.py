"""The probe `gc`: recorded lines of collectors, pauses at their ends, gaps that stay gaps."""

from __future__ import annotations

import json

import pytest

from steelyard.probe import gc

SERIAL = "[2026-11-22T03:32:59.326+0000][93.840s] GC(10) Pause Young (Allocation Failure) 130M->69M(247M) 1971.573ms"
G1 = (
    "[2026-11-22T20:00:00.250+0000][12.345s] GC(3) Pause Young (Normal) (G1 Evacuation Pause) 31M->12M(256M) 3.456ms",
    "[2026-11-22T20:00:00.300+0000][12.395s] GC(4) Pause Remark 1060M->1059M(2G) 2.5ms",
    "[2026-11-22T20:00:00.310+0000][12.405s] GC(4) Concurrent Mark Cycle 40.120ms",
    "[2026-11-22T20:00:00.320+0000][12.415s] GC(4) Pause Cleanup 1059M->1059M(2G) 0.125ms",
)
OTHER = (
    "[2026-11-22T03:31:25.600+0000][0.012s] Using Serial",
    "[2026-11-22T20:00:00.310+0000][12.405s] GC(4) Concurrent Mark Cycle 40.120ms",
    "",
)


def line(*lines: str, t_s: float = 1000.0, seconds: float = 1.0) -> bytes:
    return json.dumps({"t_s": t_s, "seconds": seconds, "lines": lines}).encode()


def values(text: bytes) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for sample in gc.create().parse("n1", text):
        found.setdefault(sample.metric, []).append(sample.value)
    return found


def test_a_pause_is_sampled_at_its_end_with_its_length() -> None:
    _, pause, heap, _ = gc.create().parse("n1", line(SERIAL))
    assert (pause.t_s, pause.metric, pause.value) == (1795318379.326, "node_gc_pause_ms", 1971.573)
    assert (heap.t_s, heap.metric, heap.value) == (pause.t_s, "node_heap_after_gc_bytes", 69 * 2**20)


def test_pauses_of_an_interval_are_counted_and_added_up() -> None:
    found = values(line(*G1, seconds=2.0))
    assert found["node_gc_pause_ms"] == [3.456, 2.5, 0.125]
    assert found["node_gc_pauses_per_s"] == [1.5]
    assert found["node_gc_paused_fraction"] == [pytest.approx(6.081e-3 / 2)]
    assert found["node_heap_after_gc_bytes"] == [12 * 2**20, 1059 * 2**20, 1059 * 2**20]


def test_a_pause_without_a_heap_and_lines_of_no_pause() -> None:
    without_heap = SERIAL.replace("130M->69M(247M) ", "")
    assert values(line(without_heap))["node_gc_pause_ms"] == [1971.573]
    assert "node_heap_after_gc_bytes" not in values(line(without_heap))
    assert values(line(*OTHER)) == {"node_gc_pauses_per_s": [0.0], "node_gc_paused_fraction": [0.0]}


def test_a_log_that_is_missing_is_a_gap_and_not_a_second_without_pauses() -> None:
    assert values(b'{"t_s": 1000.0, "missing": true}') == {}
