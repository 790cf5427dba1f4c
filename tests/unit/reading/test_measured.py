"""Measures of a store: in comparisons, in tables, and checked by `verify`."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from statsmodels.stats.multitest import multipletests

from steelyard.events.kept import LinksMeasured
from steelyard.judging.covariates import with_links_after
from steelyard.reading import read
from steelyard.reading.comparison import compare, compare_each
from steelyard.store import StoreWriter, layout
from steelyard.store.modelled import open_store
from steelyard.verify.store import verification
from tests.unit.verify import made


def test_several_responses_are_compared_as_one_family_of_holms_correction(tmp_path: Path) -> None:
    names = ("execution_time_ms", "throughput_per_s", "response_ms_mean")
    other = made.store(tmp_path / "other", speed=1.01)
    sides = read(made.store(tmp_path)), read(other)
    together = compare_each(*sides, responses=names)
    alone = [compare(*sides, response=name) for name in names]
    assert [one.response for one in together] == list(names)
    contrasts = [contrast for one in together for contrast in one.contrasts]
    p = [contrast.p for one in alone for contrast in one.contrasts]
    assert [contrast.p for contrast in contrasts] == p
    assert len(p) > len(together[0].contrasts)
    known = [place for place, value in enumerate(p) if value is not None]
    adjusted = multipletests([p[place] for place in known], method="holm")[1]
    assert [contrasts[place].p_holm for place in known] == pytest.approx(list(adjusted))
    assert {contrast.family for contrast in contrasts} == {len(known)}


def test_a_measure_is_compared_like_any_response(tmp_path: Path) -> None:
    folder = made.store(tmp_path, samples={1: 0.5, 2: 0.25})
    source = read(folder)
    (contrast,) = compare(source, source, a={"nodes": 1}, b={"nodes": 2}, response="cpu_percent_mean").contrasts
    assert contrast.ratio.value == pytest.approx(0.5)
    assert contrast.mean_a.value == pytest.approx(25.0)


def test_a_study_that_names_a_measure_has_it_in_every_table(tmp_path: Path) -> None:
    text = made.STUDY + '[analysis]\nresponse = "cpu_percent_mean"\n'
    reading = read(made.store(tmp_path, samples={1: 0.5, 2: 0.25}, text=text))
    (row,) = reading.tables["comparison"].rows(named=True)
    assert (row["response"], row["unit"]) == ("cpu_percent_mean", "%")
    assert row["ratio"] == pytest.approx(0.5)
    assert reading.trials["cpu_percent_mean"].to_list() == pytest.approx([25.0, 12.5] * 3, abs=13)


def test_what_was_sealed_is_recomputed_by_verify(tmp_path: Path) -> None:
    folder = made.store(tmp_path, samples={1: 0.5, 2: 0.25})
    source = read(folder)
    path = sorted(folder.rglob(layout.TRIAL_JSON))[0]
    record = next(one for one in source.records if one.id == path.parent.name.partition("~")[0])
    assert {"cpu_percent_mean", "cpu_s_total"} <= set(record.measures)
    assert not [one for one in verification(source.store).findings if one.kind == "measure"]
    changed = record.measures | {"cpu_s_total": record.measures["cpu_s_total"] + 1e-9}
    path.write_text(record.model_copy(update={"measures": changed}).model_dump_json(indent=1), encoding="utf-8")
    (finding,) = [one for one in verification(source.store).findings if one.kind == "measure"]
    assert "cpu_s_total" in finding.what


def test_a_measure_that_the_study_names_has_seconds_within_its_trials(tmp_path: Path) -> None:
    text = made.STUDY + '[analysis]\nresponses = ["cpu_percent_mean"]\n'
    reading = read(made.store(tmp_path, samples={1: 0.5, 2: 0.25}, text=text))
    points = reading.tables["time_point"].filter(pl.col("response") == "cpu_percent_mean").sort("nodes")
    assert points["nodes"].to_list() == [1, 1, 2, 2]
    assert points["mean"].to_list() == pytest.approx([25.0, 25.0, 12.5, 12.5])
    assert set(points["seconds"]) == {1.0}
    parts = reading.tables["parts"].filter(pl.col("response") == "cpu_percent_mean")
    assert parts.filter(nodes=1)["mean"].to_list() == pytest.approx([25.0, 25.0])


def test_covariates_are_columns_of_the_trials(tmp_path: Path) -> None:
    trials = read(made.store(tmp_path)).trials
    assert set(trials["covariate_cores"]) == {2.0}
    assert "covariate_rtt_ms_mean" not in trials.columns


@pytest.mark.parametrize(("node", "rate", "round_trip"), [("", 50.0, 2.0), ("[node]\ndilation = 2.0\n", 100.0, 1.0)])
def test_links_after_the_trials_are_in_the_time_of_those_before(
    tmp_path: Path, node: str, rate: float, round_trip: float
) -> None:
    folder = made.store(tmp_path, text=made.STUDY + node)
    (start, *_) = {record.start for record in open_store(folder).trials()}
    path = {"from": "l1", "to": "n1", "mbit_per_s": 50.0, "rtt_ms_min": 2.0, "rtt_ms_mean": 2.0}
    with StoreWriter(tmp_path, folder.name) as writer:
        writer.event(LinksMeasured(start=start, cluster=start, links=(path,)))
    store = open_store(folder)
    of = {record.start: record.covariates for record in with_links_after(store.trials(), store.links_after)}
    assert (of[start]["link_mbit_per_s_after"], of[start]["rtt_ms_min_after"]) == (rate, round_trip)
    assert not [name for other in of.keys() - {start} for name in of[other] if name.endswith("_after")]
