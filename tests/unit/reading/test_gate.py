"""The gate over stores whose trials failed, were voided, or were measured with other jars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.model.errors import StoreError
from steelyard.model.facts import system_facts_name
from steelyard.model.trial import TrialRecord
from steelyard.reading import read
from steelyard.reading.comparison import is_called
from steelyard.reading.gate import _sides, gate
from steelyard.reading.opened import Opened
from steelyard.store.modelled import ModelledStore
from tests.unit.analysis.made import FAULT, VOIDED
from tests.unit.verify import made


def changed(store: Opened, change: Callable[[TrialRecord], list[TrialRecord]]) -> Opened:
    return replace(store, records=tuple(new for record in store.records for new in change(record)))


def failed(record: TrialRecord) -> list[TrialRecord]:
    """A trial with two nodes failed."""
    return [record.model_copy(update={"verdict": FAULT})] if record.treatment["nodes"] == 2 else [record]


def voided(record: TrialRecord) -> list[TrialRecord]:
    """Every attempt with two nodes was spoilt by the laboratory."""
    if record.treatment["nodes"] == 1:
        return [record]
    return [record.model_copy(update={"verdict": VOIDED, "attempt": attempt}) for attempt in (1, 2, 3)]


def test_a_build_that_cannot_do_the_work_is_worse(base: Opened, other: Opened) -> None:
    verdict = gate(changed(other, failed), base, margin_percent=2.0)
    assert [case.verdict for case in verdict.cases] == ["not worse", "worse"]
    assert verdict.verdict == "worse"
    assert "has no valid trial in this cell: the system under test failed" in verdict.cases[1].why
    assert any("3 of 6 trials failed" in remark for remark in verdict.remarks)
    assert verdict.cases[1].change_percent is None


def test_a_baseline_that_failed_decides_nothing(base: Opened, other: Opened) -> None:
    verdict = gate(other, changed(base, failed), margin_percent=2.0)
    assert [case.verdict for case in verdict.cases] == ["not worse", "undecided"]


def test_a_single_failure_is_told_and_the_rest_judged(base: Opened, other: Opened) -> None:
    chosen = next(record for record in other.records if record.treatment["nodes"] == 2)
    some = changed(other, lambda record: failed(record) if record.id == chosen.id else [record])
    verdict = gate(some, base, margin_percent=2.0)
    assert any("1 of 6 trials failed: the system under test failed" in remark for remark in verdict.remarks)
    assert verdict.cases[0].change_percent is not None


def test_an_unfinished_study_is_not_judged(base: Opened, other: Opened) -> None:
    with pytest.raises(StoreError, match="not finished: 1 of 6 trials are missing"):
        gate(replace(other, records=other.records[1:]), base, margin_percent=2.0)


def test_trials_that_the_laboratory_spoilt_are_no_verdict(base: Opened, other: Opened) -> None:
    with pytest.raises(StoreError, match="the laboratory spoilt too many trials"):
        gate(changed(other, voided), base, margin_percent=2.0)


def test_jars_that_changed_under_way_are_two_systems(base: Opened, other: Opened) -> None:
    class Changed(ModelledStore):
        def facts(self, record: TrialRecord) -> dict[str, dict[str, str]]:
            return {system_facts_name("n1"): {"jars": "ab" if record.block < 3 else "cd"}}

    other = replace(other, store=Changed(other.store.folder))
    with pytest.raises(StoreError, match="the jars of a build changed while it was measured: ab and cd"):
        gate(other, base, margin_percent=2.0)


@pytest.mark.parametrize(("level", "wanted", "same"), [
    ("main=builds/main", "main", True), ("main=builds/main", "MAIN=builds/main", True), ("5.0.4", "5.0.4", True),
    (3, "3", True), ("main=builds/main", "builds/main", False), ("5.0.4", "5.0", False),
    (2000.0, "2000", True), (0.5, "0.50", True), (0.5, "5", False), (0.5, "nan", False),
])  # fmt: skip
def test_a_level_is_called_by_its_text_or_its_label(level: str | int, wanted: str, same: bool) -> None:
    assert is_called(level, wanted) is same


@pytest.mark.parametrize("factor", ["system.source", "system.version", "system.jars"])
def test_two_levels_of_a_build_are_the_sides_where_nobody_says_which(base: Opened, factor: str) -> None:
    study = base.study.model_copy(update={"factors": {**base.study.factors, factor: ("old", "new")}})
    both = changed(
        replace(base, study=study),
        lambda r: [r.model_copy(update={"treatment": {**r.treatment, factor: level}}) for level in ("old", "new")],
    )
    assert _sides(both, both, (), ()) == ({factor: "old"}, {factor: "new"})


def test_the_margin_of_the_study_counts_where_none_is_given(tmp_path: Path, base: Opened) -> None:
    text = made.STUDY + "\n[analysis]\nequivalence_margin_percent = 3\n"
    own = read(made.store(tmp_path, text=text))
    assert gate(own, base).margin_percent == 3.0
    assert gate(own, base, margin_percent=1.0).margin_percent == 1.0
