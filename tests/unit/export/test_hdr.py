"""HdrHistogram logs of a store, read back by the library's reader for Python."""

from __future__ import annotations

from pathlib import Path

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from steelyard.export import hdr
from steelyard.export.attempts import attempt_name, exported
from steelyard.model.trial import TrialRecord
from steelyard.store.read import Store
from tests.unit.export import stores


def read(path: Path) -> dict[str, list[HdrHistogram]]:
    """The histograms of each tag, in the order of the log."""
    reader = HistogramLogReader(str(path), HdrHistogram(1, 3_600_000_000_000, 3))
    tags: dict[str, list[HdrHistogram]] = {}
    while (histogram := reader.get_next_interval_histogram()) is not None:
        tags.setdefault(histogram.get_tag(), []).append(histogram)
    return tags


def test_a_file_per_trial_and_load_node(store: Store, records: tuple[TrialRecord, ...], tmp_path: Path) -> None:
    chosen = exported(records, voided=False)
    assert hdr.write(store, chosen, tmp_path / "logs") == 2 * stores.TRIALS
    assert {path.name for path in (tmp_path / "logs").iterdir()} == {
        f"{attempt_name(record)}.{node}.hdr" for record in chosen for node in ("load1", "load2")
    }


def test_each_second_is_read_back(store: Store, records: tuple[TrialRecord, ...], tmp_path: Path) -> None:
    record = records[0]
    hdr.write(store, [record], tmp_path)
    tags = read(tmp_path / f"{record.id}.load1.hdr")
    assert set(tags) == {
        "response", "service", "read-response", "update-response", "read-service", "update-service",
    }  # fmt: skip
    assert [one.get_total_count() for one in tags["response"]] == [200] * stores.SECONDS, "no warm-up, no failures"
    assert [one.get_total_count() for one in tags["update-service"]] == [100] * stores.SECONDS
    first = tags["response"][0]
    assert abs(first.get_value_at_percentile(50) - 900_300) < 1_000
    assert abs(first.get_value_at_percentile(99) - 5_003_000) < 5_000
    begun_ms = 1000 * (record.begun_s + 1.5 + stores.WARM_UP_S)
    spans = [(one.get_start_time_stamp() - begun_ms, one.get_end_time_stamp() - begun_ms) for one in tags["service"]]
    assert spans == [(0, 1000), (1000, 2000), (2000, 3000)]


def test_the_head_says_what_it_is(store: Store, records: tuple[TrialRecord, ...], tmp_path: Path) -> None:
    hdr.write(store, records[:1], tmp_path)
    first, version, *_ = (tmp_path / f"{records[0].id}.load2.hdr").read_text(encoding="utf-8").splitlines()
    assert first.startswith(f"#[study: known, trial: {records[0].id}, cell: workload A, ")
    assert first.endswith("node: load2, outcome: valid, unit: ns, maxima in ms]")
    assert version == "#[Histogram log format version 1.3]"
