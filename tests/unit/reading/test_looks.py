"""Looks at stores: what `compare` and `gate` say of unfinished studies and of further looks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.judging.looks import later
from steelyard.model.errors import StoreError
from steelyard.reading.comparison import compare
from steelyard.reading.gate import gate
from steelyard.reading.opened import Opened
from steelyard.store.read import Store


def looked_at(monkeypatch: pytest.MonkeyPatch, times: dict[Path, tuple[float, ...]]) -> None:
    """Stores with looks at these times."""
    # Looks are told by the clock of the day.
    monkeypatch.setattr(Store, "looks", property(lambda store: times[store.folder]))


def several(store: Opened, number: int) -> Opened:
    """A store of a study that has said that it may go on, at its own look."""
    analysis = store.study.analysis.model_copy(update={"looks": "several"})
    return replace(store, study=later(store.study.model_copy(update={"analysis": analysis}), number), number=number)


def test_the_first_look_at_finished_studies_needs_no_word(base: Opened, other: Opened) -> None:
    assert compare(base, other).looks == ()
    assert gate(other, base, margin_percent=2.0).looks == ()


def test_an_unfinished_side_is_named_and_leaves_no_verdict_final(base: Opened, other: Opened) -> None:
    comparison = compare(base, replace(other, records=other.records[:-1]))
    (sentence,) = comparison.looks
    assert sentence.endswith(": unfinished: 2 of 3 blocks; no verdict is final")
    assert not any(contrast.final for contrast in comparison.contrasts)


def test_a_build_measured_after_its_baseline_grew_is_looked_at_once(
    base: Opened, other: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at(monkeypatch, {base.store.folder: (1.0, 2.0), other.store.folder: (3.0,)})
    assert gate(other, replace(base, number=2), margin_percent=2.0).looks == ()


def test_a_gate_refuses_a_further_look_that_was_not_announced(
    base: Opened, other: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at(monkeypatch, {base.store.folder: (1.0,), other.store.folder: (3.0, 4.0)})
    with pytest.raises(StoreError, match="look 2 of a study with one look") as caught:
        gate(other, base, margin_percent=2.0)
    assert 'analysis.looks = "several"' in caught.value.hint
    comparison = compare(base, other)
    assert comparison.looks[0].startswith("look 2 of a study with one look")
    assert not any(contrast.final for contrast in comparison.contrasts)


def test_an_announced_further_look_has_its_own_confidence_on_both_sides(
    base: Opened, other: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at(monkeypatch, {base.store.folder: (1.0, 2.0), other.store.folder: (3.0, 4.0)})
    verdict = gate(several(other, 2), several(base, 2), margin_percent=2.0)
    assert (verdict.looks, verdict.confidence) == (("look 2, at 98.75%",), pytest.approx(0.9875))
    assert all(
        case.change_percent is None or case.change_percent.confidence == pytest.approx(0.9875) for case in verdict.cases
    )
