"""What a page says of an unfinished study, of a further look, and of a verdict that does not survive a correction."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.narrative.answer_table import AnswerRow
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.look import LookRow
from steelyard.analysis.tables import tables
from steelyard.judging.looks import later
from steelyard.model.study import Study
from steelyard.report.prose.benchmarking_crimes.omission import missing
from tests.unit.analysis.made import cell, drawn, study
from tests.unit.judging.test_looks import plan

SIZES = study(factors={"nodes": (1, 3)})
SIX = drawn(np.random.default_rng(4), {1: 100.0, 3: 130.0}, starts=6, trials=3, start_cv=0.02, trial_cv=0.02)
HALF = [one for one in SIX if one.block < 4 or (one.block == 4 and one.treatment["nodes"] == 1)]
"""Three and a half of six blocks."""


def last_row(results: Results) -> AnswerRow:
    assert results.answer_table is not None
    return results.answer_table.rows[-1]


def test_an_unfinished_study_says_so_first_and_no_cell_has_a_final_verdict() -> None:
    results = analyse(HALF, SIZES, seed=1, plan=plan(SIX))
    assert results.look.sentence == "unfinished: 3 of 6 blocks; no verdict is final"
    assert last_row(results).verdict_text == "slower, not final"
    (row,) = results.of(LookRow)
    assert (row.sentence, row.final, row.number, row.confidence) == (results.look.sentence, False, 1, 0.95)
    assert next(iter(tables(results))) == "look", "the first table of --json"


def test_a_subset_of_what_was_planned_is_no_clear_check() -> None:
    results = analyse(HALF, SIZES, seed=1, plan=plan(SIX))
    subset = missing(SIZES, results, HALF, {})[0]
    assert subset.guilty
    assert subset.evidence.startswith("3 of 6 planned blocks are whole; 0 of 2 treatments without a used trial")
    finished = analyse(SIX, SIZES, seed=1, plan=plan(SIX))
    assert not missing(SIZES, finished, SIX, {})[0].guilty


def test_a_finished_study_has_final_verdicts_at_the_whole_confidence() -> None:
    results = analyse(SIX, SIZES, seed=1, plan=plan(SIX))
    assert (results.look.sentence, results.confidence) == ("", 0.95)
    assert last_row(results).verdict_text == "slower"


def test_beyond_its_plan_a_study_with_one_look_has_no_final_verdict() -> None:
    results = analyse(SIX, SIZES, seed=1, plan=plan(SIX), look=2)
    assert results.look.sentence.startswith("look 2 of a study with one look")
    assert last_row(results).verdict_text == "slower, not final"


def test_a_study_that_said_so_has_a_final_verdict_at_the_confidence_of_its_second_look() -> None:
    several: Study = later(study(factors={"nodes": (1, 3)}, analysis={"looks": "several"}), 2)
    results = analyse(SIX, several, seed=1, plan=plan(SIX), look=2)
    row = last_row(results)
    assert results.look.sentence == "look 2, at 98.75%"
    assert results.answer_table is not None
    assert ", 98.75% intervals (t on logarithms" in results.answer_table.caption
    assert row.verdict_text == "slower"
    assert row.ratio is not None
    assert row.ratio.confidence == pytest.approx(0.9875)


def test_a_verdict_that_does_not_survive_the_correction_says_so_in_its_cell() -> None:
    barely = [*cell([[100.0], [101.0], [99.0]]), *cell([[105.13], [104.7], [104.28]], nodes=3)]
    same = [*cell([[100.0], [101.0], [99.0]], workload="C"), *cell([[100.5], [99.9], [100.2]], workload="C", nodes=3)]
    results = analyse([*barely, *same], study(), seed=1)
    (one, _) = results.of(Comparison)
    assert (one.verdict, one.survives_holm) == ("slower", True)
    six = [record for name in "BDEFG" for record in (
        *cell([[100.0], [101.0], [99.0]], workload=name), *cell([[100.5], [99.9], [100.2]], workload=name, nodes=3)
    )]  # fmt: skip
    wider = study(factors={"nodes": (1, 3), "workload": tuple("ABCDEFG")})
    many = analyse([*barely, *same, *six], wider, seed=1)
    (row, *_) = [row for row in many.of(AnswerRow) if row.level == 3 and row.others == {"workload": "A"}]
    assert (row.verdict, row.verdict_text, row.survives_holm) == ("slower", "slower, not after correction", False)
    assert any("slower, not after correction" in sentence for sentence in many.answer)
