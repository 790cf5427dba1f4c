"""Table of the further responses: marks by shape and colour, changes, links."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from steelyard.analysis.narrative.answer_table import AnswerRow, AnswerTable
from steelyard.model.estimate import Estimate
from steelyard.report.tables.answers import other_responses, uncompared


def row(line: str, verdict: str, text: str = "", **changes: Any) -> AnswerRow:
    return AnswerRow.model_validate(
        {
            "line": line, "factor": "site", "level": "docker", "level_text": "site docker", "baseline": "local",
            "baseline_text": "site local", "verdict": verdict, "verdict_text": text or verdict,
            "ratio": Estimate(value=1.12, n=3, unit="", method=""), "baseline_value": 250.0, "value": 280.0,
            "baseline_value_text": "250 operations/s", "value_text": "280 operations/s", **changes,
        }
    )  # fmt: skip


def results(*rows: AnswerRow) -> Any:
    table = AnswerTable(
        response="throughput_per_s", response_label="throughput", unit="operations/s", factor="site", confidence=0.95,
        caption="", rows=rows,
    )  # fmt: skip
    further = SimpleNamespace(answer_table=table, response="throughput_per_s", response_label="throughput")
    return SimpleNamespace(further=(further,))


def test_each_cell_has_both_values_and_a_mark_with_the_change() -> None:
    table = other_responses(results(row("A", "faster"), row("B", "undecided"), row("C", "slower", "slower, not final")))
    assert table is not None
    assert [column.name for column in table.columns] == ["", "A", "B", "C"]
    values = "250 → 280 operations/s"
    cells = [f"{values}: {mark} +12%" for mark in ("▲", "○", "▼*")]
    assert [cell.text for cell in table.rows[0]] == ["Throughput", *cells]
    assert table.rows[0][0].link == "response-throughput_per_s"
    assert table.caption.startswith("The other responses, docker against local: ▲ faster, ▼ slower, ○ undecided")


def test_a_change_from_0_has_no_ratio_but_values() -> None:
    zero = {"ratio": None, "baseline_value": 0.0, "baseline_value_text": "0 operations/s"}
    table = other_responses(results(row("A", "no verdict", **zero)))
    assert table is not None
    assert table.rows[0][1].text == "0 → 280 operations/s"
    assert uncompared(results(row("A", "no verdict", **zero))) == []


def test_what_no_cell_compares_is_in_words() -> None:
    alone = results(row("A", "no value", ratio=None, baseline_value=None), row("A", "baseline", ratio=None))
    assert other_responses(alone) is None
    assert uncompared(alone) == list(alone.further)


def test_many_cells_are_rows() -> None:
    table = other_responses(results(*(row(f"line {n}", "faster") for n in range(9))))
    assert table is not None
    assert len(table.rows) == 9
    assert other_responses(SimpleNamespace(further=())) is None  # type: ignore[arg-type]
