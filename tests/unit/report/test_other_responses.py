"""Table of the further responses: marks by shape and colour, changes, links."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.model.estimate import Estimate
from steelyard.report.tables.answers import other_responses


def row(line: str, verdict: str, text: str = "") -> AnswerRow:
    return AnswerRow.model_validate(
        {
            "line": line, "factor": "site", "level": "docker", "level_text": "site docker", "baseline": "local",
            "baseline_text": "site local", "verdict": verdict, "verdict_text": text or verdict,
            "ratio": Estimate(value=1.12, n=3, unit="", method=""),
        }
    )  # fmt: skip


def results(*rows: AnswerRow) -> Any:
    table = AnswerTable(
        response="throughput_per_s", response_label="throughput", unit="operations/s", factor="site", confidence=0.95,
        caption="", rows=rows,
    )  # fmt: skip
    further = SimpleNamespace(answer_table=table, response="throughput_per_s", response_label="throughput")
    return SimpleNamespace(further=(further,))


def test_each_cell_has_a_mark_with_its_change() -> None:
    table = other_responses(results(row("A", "faster"), row("B", "undecided"), row("C", "slower", "slower, not final")))
    assert table is not None
    assert [column.name for column in table.columns] == ["", "A", "B", "C"]
    assert [cell.text for cell in table.rows[0]] == ["Throughput", "▲ +12%", "○ +12%", "▼* +12%"]
    assert table.rows[0][0].link == "response-throughput_per_s"
    assert table.caption.startswith("The other responses, docker against local: ▲ faster, ▼ slower, ○ undecided")


def test_many_cells_are_rows() -> None:
    table = other_responses(results(*(row(f"line {n}", "faster") for n in range(9))))
    assert table is not None
    assert len(table.rows) == 9
    assert other_responses(SimpleNamespace(further=())) is None  # type: ignore[arg-type]
