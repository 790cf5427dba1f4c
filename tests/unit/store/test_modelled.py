"""Stores of dilated trials: the reading half sees modelled time, the files keep the clock's."""

from __future__ import annotations

from pathlib import Path

from steelyard.model.sample import Sample
from steelyard.model.trial import Responses, TrialRecord
from steelyard.store import Store, StoreWriter
from steelyard.store.modelled import open_store
from tests.unit.judging.test_attempts import record as record_of
from tests.unit.lab.fakes import plan_of, records_of, study
from tests.unit.wire.orders import order

BEGUN_S = 1.0


def sealed(folder: Path, **node: float) -> TrialRecord:
    """A store with one sealed trial."""
    asked = study(node=node)
    with StoreWriter(folder, "fake") as writer:
        writer.intend(asked, "[study]\n", plan_of(asked))
        record = record_of(plan_of(asked).trials[0])
        record = record.model_copy(update={"responses": Responses(execution_time_ms=100.0, operations=14)})
        draft = writer.draft(record.id, 1)
        draft.intend(record)
        draft.intervals("l1", records_of(order(stop={"operations": 7}))[1:2])
        draft.samples(
            "n1", [Sample(5.0, "n1", "node_cpu_user_cores", 0.5), Sample(0.5, "n1", "node_memory_bytes", 7.0)]
        )
        draft.facts("n1", {"limit_cpus": "0.5"})
        draft.links([{"from": "l1", "to": "n1", "rtt_ms_min": 2.0}])
        return draft.seal(record)


def test_a_dilated_trial_is_read_in_modelled_time(tmp_path: Path) -> None:
    record = sealed(tmp_path, cpus=1.0, dilation=2.0)
    clock, store = Store(tmp_path / "fake"), open_store(tmp_path)
    assert clock.trials()[0].responses.execution_time_ms == 100.0
    (seen,) = store.trials()
    assert (seen.responses.execution_time_ms, seen.covariates["dilation"]) == (50.0, 2.0)
    assert store.attempt(record.id) == seen
    raw, rows = clock.intervals(record), store.intervals(record)
    assert (rows["seconds"] * 2).to_list() == raw["seconds"].to_list()
    assert rows["bucket_low_ns"].to_list() == [round(low / 2) for low in raw["bucket_low_ns"]]
    assert ((rows["t_s"] - BEGUN_S) * 2 + BEGUN_S).to_list() == raw["t_s"].to_list()
    answered = store.answered([record], ("measure",)).collect()
    assert set(answered["bucket_low_ns"]) <= set(rows["bucket_low_ns"])
    assert answered["count"].sum() == clock.answered([record], ("measure",)).collect()["count"].sum()
    samples = {row["metric"]: (row["t_s"], row["value"]) for row in store.samples(record).iter_rows(named=True)}
    assert samples == {"node_cpu_user_cores": (3.0, 1.0), "node_memory_bytes": (0.5, 7.0)}
    assert store.facts(record)["n1"] == {"limit_cpus": "1", "dilation": "2"}
    assert store.links(record)[0]["rtt_ms_min"] == 1.0


def test_other_trials_are_read_as_they_were_sealed(tmp_path: Path) -> None:
    record = sealed(tmp_path)
    clock, store = Store(tmp_path / "fake"), open_store(tmp_path)
    assert store.trials() == clock.trials()
    for read in ("intervals", "samples"):
        assert getattr(store, read)(record).equals(getattr(clock, read)(record))
    assert store.answered([record], ("measure",)).collect().equals(clock.answered([record], ("measure",)).collect())
    assert (store.facts(record), store.links(record)) == (clock.facts(record), clock.links(record))
