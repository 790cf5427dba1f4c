"""The page's words for a fixed study, kept as text so that a change of them is seen in the diff.

`STEELYARD_REWRITE_GOLDEN=1 pytest tests/golden` writes them anew.
"""

from __future__ import annotations

import os
from pathlib import Path

from steelyard.analysis.analyse import analyse
from steelyard.report.data.presentation import view
from steelyard.report.figures import catalogue
from steelyard.report.prose import method_and_facts
from steelyard.report.tables import answers, validity
from steelyard.report.tables.cells import cells
from steelyard.report.tables.comparisons import comparisons
from steelyard.report.tables.generic import Table
from steelyard.report.tables.regressions import regressions
from tests.unit.report import synthetic

GOLDEN = Path(__file__).parent / "words.txt"


def _table(table: Table) -> list[str]:
    heads = [f"{column.name} {column.unit}".strip() for column in table.columns]
    rows = [" | ".join(cell.text for cell in row) for row in table.rows]
    return [f"{table.name}: {table.caption}", " | ".join(heads), *rows, ""]


def test_words() -> None:
    study = synthetic.study(workloads=("A", "E"))
    records = synthetic.records(study)
    results = analyse(records, study, seed=1)
    this = view(results)
    lines = ["method", *method_and_facts.method(study, None, records, results), ""]
    lines += ["settings", *(f"{fact.name} = {fact.value}" for fact in method_and_facts.asked(study)), ""]
    for name, figure in catalogue.of_results(results).items():
        lines += [f"figure {name}: {figure.title}", figure.caption, *(f"key {key.text}" for key in figure.keys), ""]
    found = (
        answers.answers(results.answer_table),
        comparisons(this),
        regressions(this),
        cells(this),
        validity.exclusions(records),
    )
    lines += [line for table in found if table is not None for line in _table(table)]
    text = "\n".join(lines).rstrip() + "\n"
    if os.environ.get("STEELYARD_REWRITE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
