"""The answer at the end of a run: the texts of the answer's table, a chart beside, and no failure of the run."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.cli.commands.run import answer
from steelyard.cli.terminal.answer_output import BAR, bars, print_answer
from steelyard.reading import read
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
        assert all(part in text for part in (each.level_text, each.value_text, each.change_text, each.verdict_text))
    assert results_table.same_n in " ".join(text.split())


def test_lines_fit_eighty_columns_without_blanks_at_their_ends() -> None:
    change = {"change_text": "3.1 times as long [2.2, 4.4]", "verdict": "slower", "verdict_text": "slower"}
    why = {"why": "within the 12% that 95% of comparisons of identical systems stay below"}
    lines = shown(table(row(1, 318), row(3, 902, **change, **why), row(5, 1203, **change)))
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines)
    assert any("3 nodes" in line and "902 ms" in line and "3.1 times as long [2.2, 4.4]" in line for line in lines)
    assert sum("Within the 12%" in line for line in lines) == 1


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
    answer(tmp_path, console)
    assert "the answer cannot be shown here: " in console.file.getvalue()  # type: ignore[attr-defined]
