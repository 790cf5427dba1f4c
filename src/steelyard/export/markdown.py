"""One page of Markdown: the answer, a table of cells, the comparisons, the limits; for a wiki, an issue or a job's
summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from steelyard.analysis.cells import cell_values
from steelyard.analysis.comparisons.judgement import shown
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.summary import Summary
from steelyard.analysis.treatments import label, pair_label
from steelyard.analysis.wording import mean_of
from steelyard.atomic_file import write_output
from steelyard.format import NONE, confidence_text, count, number, p_value, with_interval
from steelyard.model import responses
from steelyard.model.named_level import level_key
from steelyard.reading.report_input import ReportInput
from steelyard.report.export import markdown
from steelyard.report.prose import provenance
from steelyard.report.tables import answers
from steelyard.report.tables.generic import Cell, ShownColumn, Table
from steelyard.shown_text import markdown_prose

FURTHER: Final = ("throughput_per_s", "response_ms_p50", "response_ms_p99", "errors", "unsent")
"""Responses that the table of cells adds to the main one; what was due and not sent only where there is any."""
TERMS: Final = ("Cite",)
"""Terms of the report's provenance that hold for this page, too."""
MOST_ROWS: Final = 200
"""Rows of a table; a longer one belongs in its own file."""


def write(page_input: ReportInput, path: Path) -> None:
    """Write the page. Raises OSError that names the path."""
    write_output(path, page(page_input))


def page(page_input: ReportInput) -> str:
    """The whole page as text."""
    results = page_input.results
    parts = [f"# {markdown_prose(results.title or results.study)}"]
    if results.question:
        parts.append(f"> {markdown_prose(results.question)}")
    parts.append("## Answer")
    parts += [f"**{markdown_prose(results.look.sentence)}**"] if results.look.sentence else []
    parts += [*(markdown_prose(sentence) for sentence in results.answer)]
    answer = answers.answers(results.answer_table)
    parts += [markdown(answer).strip()] if answer else []
    parts += ["## Cells", markdown(_cells(page_input)).strip()]
    compared = _comparisons(results)
    parts += ["## Comparisons", markdown(compared).strip()] if compared else []
    parts += ["## Limits", _bullets(_limits(page_input))]
    parts += ["## Provenance", _bullets(_provenance(page_input))]
    return "\n\n".join(parts) + "\n"


def _cells(page_input: ReportInput) -> Table:
    """One row per treatment: the main response and further ones, as the answer quotes them."""
    results, study = page_input.results, page_input.study
    summaries = {(label(row.treatment), row.response): row for row in results.of(Summary)}
    short = any(record.responses.unsent for record in page_input.records)
    further = [
        name
        for name in FURTHER
        if name != results.response and any(name == key for _, key in summaries) and (short or name != "unsent")
    ]
    columns = (
        *(ShownColumn(factor, numeric=False) for factor in results.factors),
        ShownColumn(results.response_label, results.unit),
        *(ShownColumn(responses.label_of(name), responses.unit_of(name)) for name in further),
        *(ShownColumn(name) for name in ("trials", "starts", "left out")),
    )
    rows = []
    for cell in cell_values(page_input.records, study):
        summary = summaries.get((cell.cell, results.response))
        means = [_mean(summaries.get((cell.cell, name))) for name in further]
        left_out = number(summary.excluded if summary else None)
        counts = (number(cell.n), number(cell.starts), left_out)
        levels = (level_key(cell.treatment.get(factor, NONE)) for factor in results.factors)
        rows.append(tuple(Cell(text) for text in (*levels, with_interval(cell.value), *means, *counts)))
    caption = (
        f"{_means(results.response, *further)}, so that each cluster start counts once; brackets are "
        f"{confidence_text(results.confidence)} intervals."
    )
    return _cut(Table("cells", caption, columns, tuple(rows)))


def _means(*names: str) -> str:
    kinds = {mean_of(name) for name in names}
    if len(kinds) == 1:
        return f"{kinds.pop().capitalize()}s of start means"
    return "Means of start means, geometric of responses whose levels are compared by their ratio"


def _mean(summary: Summary | None) -> str:
    return NONE if summary is None else with_interval(summary.value)


def _comparisons(results: Results) -> Table | None:
    """One row per pair of levels; None if nothing was compared."""
    rows = results.of(Comparison)
    several = len({row.response for row in rows}) > 1
    names = (*(["response"] if several else []), "compared", "change", "verdict", "p (Holm)", "trials", "starts")
    numeric = ("change", "p (Holm)")
    cells = tuple(
        tuple(
            Cell(text)
            for text in (
                *([responses.label_of(row.response)] if several else []),
                _compared(row),
                row.change_text,
                shown(row.verdict, survives_holm=row.survives_holm, final=row.final),
                p_value(row.p_holm),
                _pair(row.n_baseline, row.n_level),
                _pair(row.starts_baseline, row.starts_level),
            )
        )
        for row in rows
    )
    if not cells:
        return None
    caption = (
        f"Each level against its baseline; brackets are {confidence_text(results.confidence)} intervals over starts; "
        "trials and starts: of the baseline, of the level."
    )
    return _cut(Table("comparisons", caption, tuple(ShownColumn(one, numeric=one in numeric) for one in names), cells))


def _compared(row: Comparison) -> str:
    """`workload A: 3 nodes against 1 node`."""
    pair = pair_label(row.factor, row.level, row.baseline, row.others)
    return f"{label(row.others, [row.factor])}: {pair}" if row.others else pair


def _pair(baseline: int, level: int) -> str:
    return f"{number(baseline)}, {number(level)}"


def _cut(table: Table) -> Table:
    if len(table.rows) <= MOST_ROWS:
        return table
    note = f"The first {number(MOST_ROWS)} of {number(len(table.rows))} rows: `report --tables` writes all"
    return Table(table.name, f"{table.caption} {note}.", table.columns, table.rows[:MOST_ROWS])


def _limits(page_input: ReportInput) -> Iterator[str]:
    """Limits of the answer, and files that could not be read."""
    yield from page_input.results.caveats
    for damage in page_input.damages:
        if not damage.harmless:
            yield f"Damaged: {damage.words()}"


def _provenance(page_input: ReportInput) -> Iterator[str]:
    results = page_input.results
    yield from (text for text in (provenance.hardware(page_input), provenance.one_trial(page_input.records)) if text)
    attempts = f"{count(results.trials, 'attempt')}, of which {number(results.used)} are used"
    yield f"{attempts}, from {count(results.starts, 'start')}."
    yield from (f"{one.term}: {one.text}" for one in provenance.provenance(page_input) if one.term in TERMS)


def _bullets(sentences: Iterator[str]) -> str:
    lines: Sequence[str] = [f"* {markdown_prose(sentence)}" for sentence in sentences]
    return "\n".join(lines) or "None is known."
