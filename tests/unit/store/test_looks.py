"""Looks as the journal tells them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from steelyard.events.base import Kept
from steelyard.events.kept import SessionBegan, SessionEnded, SessionInterrupted, TrialSealed
from steelyard.store.journal import Entry
from steelyard.store.looks import looks, number_of
from steelyard.store.modelled import open_store
from tests.unit.report import synthetic


def journal(*events: Kept | Sequence[Kept]) -> tuple[Entry, ...]:
    flat = [one for event in events for one in (event if isinstance(event, list) else [event])]
    return tuple(Entry(number, float(number), event) for number, event in enumerate(flat, start=1))


def sealed(blocks: Iterable[int], *treatments: str, trials: Iterable[int] = (1,)) -> list[Kept]:
    return [
        TrialSealed(trial=f"{treatment}-s{block}-t{trial}", attempt=1, outcome="valid", reasons=(), record_sha256="ab")
        for block in blocks
        for treatment in treatments or ("aa", "bb")
        for trial in trials
    ]


BEGAN, ENDED = SessionBegan(todo=6, total=6), SessionEnded(valid=6, invalid=0, missing=0)
AGAIN = TrialSealed(trial="aa-s3-t1", attempt=2, outcome="valid", reasons=(), record_sha256="cd")
FOR_TEN = SessionBegan(todo=2, total=10)
FIRST = (BEGAN, sealed((1, 2, 3)), ENDED)


def test_a_study_that_is_going_on_has_its_first_look_before_it() -> None:
    assert looks(journal(BEGAN, sealed((1, 2)), SessionInterrupted())) == ()
    assert number_of(()) == 1


def test_the_end_of_the_plan_is_a_look() -> None:
    assert number_of(looks(journal(*FIRST))) == 1
    assert len(looks(journal(*FIRST))) == 1


def test_blocks_beyond_a_finished_plan_are_a_further_look() -> None:
    begun = journal(*FIRST, SessionBegan(todo=2, total=8), sealed((4,), "aa"))
    assert looks(begun)[-1] == math.inf
    assert number_of(looks(begun)) == 2
    again = journal(*FIRST, SessionBegan(todo=2, total=8), sealed((4,)), ENDED)
    assert number_of(looks(again)) == 2
    third = journal(*FIRST, SessionBegan(todo=2, total=8), sealed((4,)), ENDED, FOR_TEN, sealed((5,)), ENDED)
    assert number_of(looks(third)) == 3


def test_trials_of_a_start_beyond_a_finished_plan_are_a_further_look() -> None:
    assert number_of(looks(journal(*FIRST, FOR_TEN, sealed((1,), trials=(2,)), ENDED))) == 2


@pytest.mark.parametrize("after", [
    [SessionBegan(todo=0, total=6), ENDED],
    [SessionBegan(todo=1, total=6), AGAIN, ENDED],
    [SessionBegan(todo=3, total=9), *sealed((1, 2, 3), "cc"), ENDED],
], ids=["nothing was to do", "a trial was measured again", "a level was added"])  # fmt: skip
def test_what_is_no_further_look(after: list[Kept]) -> None:
    assert number_of(looks(journal(*FIRST, after))) == 1


def test_a_plan_that_grew_before_it_was_finished_has_one_look() -> None:
    grown = journal(
        BEGAN, sealed((1, 2)), SessionInterrupted(), SessionBegan(todo=8, total=12), sealed((3, 4, 5, 6)), ENDED
    )
    assert number_of(looks(grown)) == 1


def test_a_session_that_was_stopped_at_its_very_end_was_a_look_too() -> None:
    stopped = journal(
        BEGAN, sealed((1, 2, 3)), SessionInterrupted(), SessionBegan(todo=2, total=8), sealed((4,)), ENDED
    )
    assert number_of(looks(stopped)) == 2


def test_looks_at_two_stores_count_from_when_both_were_finished() -> None:
    assert number_of((1.0, 5.0), (9.0,)) == 1, "a baseline that was extended before the build was measured"
    assert number_of((1.0, 10.0), (9.0,)) == 2
    assert number_of((1.0,), (9.0, math.inf)) == 2
    assert number_of((1.0,), ()) == 1


def test_the_reading_half_has_the_confidence_of_the_look(tmp_path: Path) -> None:
    folder = synthetic.stored(tmp_path)
    assert open_store(folder).study.analysis.confidence == 0.95
    written = (folder / "study.json").read_text().replace('"looks": "one"', '"looks": "several"')
    (folder / "study.json").write_text(written)
    assert open_store(folder).study.analysis.confidence == 0.975
