"""The answer at the end of a run: the texts of the answer's table, a chart beside, and no failure of the run."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from steelyard.analysis.narrative.answer_display import level_alone
from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.analysis.results import Results
from steelyard.cli.commands import run
from steelyard.cli.terminal.answer_output import print_answer
from steelyard.reading import read
from steelyard.report.tables import answers
from steelyard.report.tables.answers import BAR, bars
from tests.unit.verify import made


def row(level: int, value: float, **others: object) -> AnswerRow:
    return AnswerRow.model_validate(
        {
            "line": "", "factor": "nodes", "level": level, "level_text": f"{level} nodes", "baseline": 1,
            "baseline_text": "1 node", "value": value, "value_text": f"{value:g} ms", "verdict": "baseline",
            "verdict_text": "baseline", **others,
        }
    )  # fmt: skip


def shown(table: AnswerTable, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    print_answer(table, console)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def table(*rows: AnswerRow) -> AnswerTable:
    return AnswerTable(
        response="execution_time_ms", response_label="execution time", unit="ms", factor="nodes", confidence=0.95,
        caption="Execution time by nodes: geometric means of start means", same_n="6 trials from 3 starts each",
        rows=rows,
    )  # fmt: skip


def test_every_text_of_the_table_is_shown_as_it_is(tmp_path: Path) -> None:
    results_table = read(made.store(tmp_path)).results.answer_table
    assert results_table is not None
    text = "\n".join(shown(results_table))
    for each in results_table.rows:
        verdict = "" if each.verdict == "baseline" else each.verdict_text
        assert all(part in text for part in (level_alone(each), each.value_text, each.change_text, verdict))
    assert results_table.same_n.removesuffix(" each") in " ".join(text.split())


def test_lines_fit_eighty_columns_without_blanks_at_their_ends() -> None:
    change = {"change_text": "3.1 times as long [2.2, 4.4]", "verdict": "slower", "verdict_text": "slower"}
    why = {"why": "within the 12% that 95% of comparisons of identical systems stay below"}
    lines = shown(table(row(1, 318), row(3, 902, **change, **why), row(5, 1203, **change)))
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines)
    assert any("3 nodes" in line and "902 ms" in line and "3.1 times as long [2.2, 4.4]" in line for line in lines)
    assert sum("Within the 12%" in line for line in lines) == 1


def decided(level: int, why: str) -> AnswerRow:
    change = {"change_text": "+18% [3, 35]", "verdict": "undecided", "verdict_text": "undecided"}
    return row(level, 100.0, **change, why=why)


def test_a_note_is_attached_to_its_row_by_a_letter() -> None:
    whys = [f"node {node} was slow" for node in range(2, 12)]
    lines = shown(table(row(1, 318), *(decided(level, why) for level, why in enumerate(whys, start=2))))
    assert any(line.startswith("3 nodes") and line.endswith("undecided (b)") for line in lines)
    assert "(b) Node 3 was slow." in " ".join(lines)
    same = shown(table(row(1, 318), decided(2, whys[0]), decided(3, whys[0])))
    assert "Node 2 was slow." in " ".join(same)
    assert not any("(a)" in line for line in same)


def test_a_narrow_terminal_has_the_lines_above_their_rows() -> None:
    rows = [
        made
        for threads in (64, 128)
        for made in (
            row(1, 65.6).model_copy(update={"line": f"{threads} threads of a client, compression none"}),
            decided(2, "").model_copy(
                update={"line": f"{threads} threads of a client, compression none", "to_decide": "28 blocks, 5.5 h"}
            ),
        )
    ]
    lines = shown(table(*rows))
    assert "64 threads of a client, compression none" in lines
    assert all(len(line) <= 80 for line in lines)
    assert sum("28 blocks, 5.5 h" in line for line in lines) == 2
    assert any("To decide: blocks of a new study" in line for line in " ".join(lines).split("\n"))


def test_a_narrow_terminal_breaks_costs_before_it_hides_the_change() -> None:
    costs = {"to_decide": "over 1,000 blocks", "cheaper": "68 blocks, 19 min"}
    rows = [decided(level, "").model_copy(update={"value_text": "1,804 operations/s", **costs}) for level in (2, 3)]
    text = "\n".join(lines := shown(table(row(1, 996), *rows)))
    assert "…" not in text
    assert all(len(line) <= 80 for line in lines)
    assert text.count("68 blocks,") == text.count("+18% [3,") == 2


def test_rows_of_a_fraction_name_both_levels_as_on_the_page() -> None:
    effect = {"line": "threads", "factor": "threads", "baseline": 8, "baseline_text": "8 threads"}
    valueless = {"value": None, "value_text": "", "level_text": "64 threads", **effect}
    found = table(decided(64, "").model_copy(update=valueless)).model_copy(update={"factor": "factor"})
    page = answers.answers(found)
    assert page is not None
    assert page.rows[0][1].text == "8 → 64"
    assert any("8 → 64" in line for line in shown(found))


def printed(results: Results) -> str:
    console = Console(file=io.StringIO(), width=80, force_terminal=False)
    reading: Any = SimpleNamespace(results=results, damages=())
    run.answer(Path(), console, lambda folder: reading)
    return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


def test_the_limits_follow_the_answer_without_what_they_repeat(tmp_path: Path) -> None:
    results = read(made.store(tmp_path)).results
    closing = "The nodes share one processor, so this says nothing about scaling out on separate machines."
    answer = ("One.", "Two.", "Three.", "Four.", closing)
    caveats = ("The nodes share one processor: adding a node adds no hardware.", "First.", "Second.")
    limited = results.model_copy(update={"answer": answer, "caveats": caveats})
    with_table = printed(limited)
    limits = f"What limits this answer: {' '.join(caveats)}"
    assert with_table.endswith(limits)
    assert "One. Two. Three. Four. What limits" in with_table
    without = printed(limited.model_copy(update={"answer_table": None}))
    assert without == f"One. Two. Three. Four. {limits}"
    few = printed(limited.model_copy(update={"caveats": (*caveats[1:], "Third.", "Fourth.")}))
    assert few.endswith(f"{closing} What limits this answer: First. Second. Third. and 1 more, in the report")


def test_bars_are_in_proportion_and_start_at_zero() -> None:
    drawn = bars([row(1, 250), row(2, 500), row(3, 1000)], 80)
    lengths = [line.count(BAR) for line in drawn]
    assert lengths[2] == max(lengths)
    assert abs(lengths[1] * 2 - lengths[2]) <= 1
    assert abs(lengths[0] * 4 - lengths[2]) <= 2
    assert max(map(len, drawn)) <= 80


def test_nothing_is_drawn_where_there_is_nothing_to_compare_or_no_room() -> None:
    assert bars([row(1, 250)], 80) == []
    assert bars([row(1, 250), row(2, 500)], 20) == []
    assert bars([], 80) == []


def test_a_store_that_cannot_be_read_fails_no_run(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=False)
    run.answer(tmp_path, console)
    assert "the answer cannot be shown here: " in console.file.getvalue()  # type: ignore[attr-defined]
