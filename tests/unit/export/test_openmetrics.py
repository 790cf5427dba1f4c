"""OpenMetrics text of a store, read by the parser of prometheus_client."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import polars as pl
import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from steelyard.export import metric_names, openmetrics
from steelyard.export.attempts import attempt_name, exported
from steelyard.model.trial import TrialRecord
from steelyard.probe import os as probe_os
from steelyard.store.read import Store
from tests.unit.export import stores


@pytest.fixture(scope="module")
def written(known: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Metric]]:
    store = Store(known)
    path = tmp_path_factory.mktemp("openmetrics") / "known.om"
    count = openmetrics.write(store, exported(store.trials(), voided=False), path)
    text = path.read_text(encoding="utf-8")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert count == len(families)
    assert [one.name for one in path.parent.iterdir()] == ["known.om"], "nothing is left beside it"
    return text, families


def chosen(family: Metric, **labels: str) -> list[Sample]:
    return [one for one in family.samples if labels.items() <= one.labels.items()]


def test_it_ends_as_the_format_demands(written: tuple[str, dict[str, Metric]]) -> None:
    assert written[0].endswith("\n# EOF\n")


def test_types_and_units(written: tuple[str, dict[str, Metric]]) -> None:
    assert {name: (family.type, family.unit) for name, family in written[1].items()} == {
        "steelyard_trial": ("info", ""),
        "steelyard_operations": ("counter", ""),
        "steelyard_operations_by_response_time": ("counter", ""),
        "steelyard_operations_by_service_time": ("counter", ""),
        "steelyard_response_time_seconds": ("counter", "seconds"),
        "steelyard_service_time_seconds": ("counter", "seconds"),
        "steelyard_response_time_quantile_seconds": ("gauge", "seconds"),
        "steelyard_service_time_quantile_seconds": ("gauge", "seconds"),
        "steelyard_node_cpu_user_cores": ("gauge", "cores"),
        "steelyard_machine_cpu_idle_ratio": ("gauge", "ratio"),
    }
    assert all(family.documentation for family in written[1].values())


def test_labels_and_time_stamps_of_samples(
    written: tuple[str, dict[str, Metric]], records: tuple[TrialRecord, ...]
) -> None:
    record = records[0]
    samples = chosen(written[1]["steelyard_node_cpu_user_cores"], trial=record.id)
    assert {tuple(one.labels) for one in samples} == {("study", "cell", "trial", "phase", "node")}
    assert {one.value for one in samples} == {0.5}
    begun_s = record.begun_s + 1.5
    phases = {round(float(one.timestamp) - begun_s): one.labels["phase"] for one in samples}
    assert phases == {
        -2: "", -1: "settle", 0: "settle", 1: "warm-up", 2: "measure", 3: "measure", 4: "measure",
    }  # fmt: skip


def test_operations_are_counted_from_the_beginning_of_the_phase(
    written: tuple[str, dict[str, Metric]], records: tuple[TrialRecord, ...]
) -> None:
    of_node = {"trial": records[0].id, "phase": "measure", "node": "load2"}
    operations = written[1]["steelyard_operations"]
    assert [one.value for one in chosen(operations, operation="read", outcome="ok", **of_node)] == [0, 100, 200, 300]
    assert [one.value for one in chosen(operations, outcome="timeout", **of_node)] == [0, 1, 2, 3]
    assert {one.name for one in operations.samples} == {"steelyard_operations_total"}


def test_bounds_count_what_lies_within_them(
    written: tuple[str, dict[str, Metric]], records: tuple[TrialRecord, ...]
) -> None:
    last = {
        one.labels["le"]: one.value
        for one in chosen(
            written[1]["steelyard_operations_by_response_time"],
            trial=records[0].id, phase="measure", node="load1", operation="read",
        )
    }  # fmt: skip
    assert (last["0.0005"], last["0.001"], last["0.005"], last["0.01"], last["+Inf"]) == (0, 270, 270, 300, 300)


def test_quantiles_only_where_a_second_has_enough_operations(
    written: tuple[str, dict[str, Metric]], records: tuple[TrialRecord, ...]
) -> None:
    family = written[1]["steelyard_response_time_quantile_seconds"]
    own = chosen(family, trial=records[0].id, phase="measure", node="load1")
    assert {one.labels["quantile"] for one in own} == {"0.5", "0.95"}, "200 operations support no p99"
    assert {round(one.value, 5) for one in own if one.labels["quantile"] == "0.5"} == {0.0009}
    assert {round(one.value, 4) for one in own if one.labels["quantile"] == "0.95"} == {0.005}


def test_an_attempt_is_described(written: tuple[str, dict[str, Metric]], records: tuple[TrialRecord, ...]) -> None:
    begin, end = chosen(written[1]["steelyard_trial"], trial=records[0].id)
    assert (begin.value, end.value) == (1, 1)
    assert float(end.timestamp) - float(begin.timestamp) > stores.SECONDS
    about = begin
    assert about.labels["outcome"] == "valid"
    assert about.labels["factor_nodes"] == str(records[0].treatment["nodes"])


def test_voided_attempts_only_where_they_are_asked_for(
    written: tuple[str, dict[str, Metric]], store: Store, records: tuple[TrialRecord, ...], tmp_path: Path
) -> None:
    (voided,) = (record for record in records if record.verdict.voided)
    assert attempt_name(voided) not in written[0]
    openmetrics.write(store, exported(records, voided=True), tmp_path / "all.om")
    assert f'trial="{attempt_name(voided)}"' in (tmp_path / "all.om").read_text(encoding="utf-8")


def test_one_trial_is_in_memory_at_a_time(store: Store, records: tuple[TrialRecord, ...], tmp_path: Path) -> None:
    alive: list[weakref.ref[pl.DataFrame]] = []
    most = 0

    class Followed(Store):
        def intervals(self, record: TrialRecord) -> pl.DataFrame:
            nonlocal most
            frame = super().intervals(record)
            gc.collect()
            alive.append(weakref.ref(frame))
            most = max(most, sum(one() is not None for one in alive))
            return frame

    openmetrics.write(Followed(store.folder), records, tmp_path / "load.om")
    assert len(alive) == len(records)
    assert most <= 2, "the trial that is read, and at most the one before it"


def test_hostile_labels_are_escaped(store: Store, records: tuple[TrialRecord, ...], tmp_path: Path) -> None:
    hostile = 'a "level"\\ of\ntwo lines, {x}'
    record = records[0].model_copy(update={"treatment": {"load.threads": hostile}})
    openmetrics.write(store, [record], tmp_path / "hostile.om")
    families = text_string_to_metric_families((tmp_path / "hostile.om").read_text(encoding="utf-8"))
    about, _ = next(family for family in families if family.name == "steelyard_trial").samples
    assert about.labels["factor_load_threads"] == hostile


def test_a_level_is_written_as_the_study_file_writes_it(
    store: Store, records: tuple[TrialRecord, ...], tmp_path: Path
) -> None:
    record = records[0].model_copy(update={"treatment": {"workload.hot": True, "nodes": 3}})
    openmetrics.write(store, [record], tmp_path / "levels.om")
    families = text_string_to_metric_families((tmp_path / "levels.om").read_text(encoding="utf-8"))
    about, _ = next(family for family in families if family.name == "steelyard_trial").samples
    assert (about.labels["factor_workload_hot"], about.labels["factor_nodes"]) == ("true", "3")


def test_every_metric_of_the_probe_has_a_base_unit_at_its_end() -> None:
    families = {metric.name: metric_names.family_of(metric.name)[0] for metric in probe_os.METRICS}
    assert {metric for metric, family in families.items() if not family.unit} == {"machine_load_average_1min"}
    assert all(family.name.endswith(family.unit) for family in families.values())
    assert len({family.name for family in families.values()}) == len(families)


@pytest.mark.parametrize(
    ("metric", "name", "unit", "scale"),
    [
        ("machine_cpu_user_fraction", "steelyard_machine_cpu_user_ratio", "ratio", 1.0),
        ("node_disk_read_bytes_per_s", "steelyard_node_disk_read_bytes_per_second", "bytes_per_second", 1.0),
        ("errors_per_s", "steelyard_errors_per_second", "errors_per_second", 1.0),
        ("gc.pause-ms", "steelyard_gc_pause_seconds", "seconds", 1e-3),
        ("gc_pause_ms", "steelyard_gc_pause_seconds", "seconds", 1e-3),
        ("package_watts", "steelyard_package_watts", "watts", 1.0),
        ("strange", "steelyard_strange", "", 1.0),
    ],
)
def test_names_of_metrics(metric: str, name: str, unit: str, scale: float) -> None:
    family, factor = metric_names.family_of(metric)
    assert (family.name, family.unit, factor) == (name, unit, scale)
