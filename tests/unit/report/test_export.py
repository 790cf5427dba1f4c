"""Tables and figures as files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.tables import columns, tables
from steelyard.report import export
from steelyard.report.figures import catalogue
from steelyard.report.tables import analysed, answers
from steelyard.report.tables import latex as exported
from steelyard.report.tables.for_paper import for_paper
from steelyard.report.tables.generic import Cell, ShownColumn, Table
from tests.unit.report import latex, synthetic

HOSTILE = "50% & more_of_it {#1} $x^2$ ~\\\\ <b> | é Ω \u200b → − 5"
TABLE = Table(
    "some-table",
    f"Caption {HOSTILE}",
    (ShownColumn("name", numeric=False), ShownColumn("value", "ms"), ShownColumn("note", numeric=False)),
    ((Cell(HOSTILE), Cell("1,235 [1, −2]"), Cell("[x]")), (Cell("[a|b]"), Cell("–"), Cell("long"))),
)


def test_latex_is_escaped_and_would_compile() -> None:
    ((heads, units, first, second),) = latex.read(exported.table(TABLE, "some_table"))
    assert heads == ["name", "value", "note"]
    assert units == ["", "ms", ""]
    assert first[0].startswith(r"50\% \& more\_of\_it \{\#1\} \$x\textasciicircum{}2\$")
    assert first[1] == "1,235 [1, $-$2]"
    assert second[0] == r"[a\textbar{}b]"


def test_a_table_that_is_too_wide_goes_into_blocks_that_name_their_rows() -> None:
    columns = (
        ShownColumn("workload", numeric=False, term="factor"),
        *(ShownColumn(f"a-long-head-{n}") for n in range(20)),
    )
    wide = Table("wide", "Wide.", columns, ((Cell("A"), *(Cell(str(n)) for n in range(20))),))
    blocks = latex.read(exported.table(wide, "wide"))
    assert len(blocks) > 2
    assert [text for heads, _ in blocks for text in heads if text != "workload"] == [
        f"a-long-head-{n}" for n in range(20)
    ]
    assert all(row[0] == "A" for _, row in blocks)
    assert all(sum(len(text) + 3 for text in heads) <= 84 for heads, _ in blocks)


def test_many_rows_are_a_longtable() -> None:
    many = Table("many", "Many.", (ShownColumn("n"),), tuple((Cell(str(n)),) for n in range(100)))
    text = exported.table(many, "many")
    assert "\\begin{longtable}" in text
    assert "\\begin{table}" not in text
    (rows,) = latex.read(text)
    assert [row[0] for row in rows if row[0] != "n"] == [str(n) for n in range(100)]


@pytest.mark.parametrize(
    "text",
    [
        "\\begin{tabular}{ll}\n a & b & c \\\\\n\\end{tabular}\n",
        "\\begin{tabular}{l}\n 50% \\\\\n\\end{tabular}\n",
        "\\begin{tabular}{l}\n {x \\\\\n\\end{tabular}\n",
        "\\begin{tabular}{l}\n a_b \\\\\n\\end{tabular}\n",
        "\\begin{tabular}{l}\n [1] \\\\\n\\end{tabular}\n",
        "\\begin{tabular}{l}\n \\unknown \\\\\n\\end{tabular}\n",
        "\\begin{table}\n",
    ],
)
def test_the_reader_of_latex_finds_what_is_broken(text: str) -> None:
    with pytest.raises(latex.Broken):
        latex.read(text)


def test_every_table_of_a_study_compiles_and_has_all_rows(tmp_path: Path) -> None:
    study = synthetic.study()
    results = analyse(synthetic.records(study), study, seed=1)
    shown = analysed.every(results) | for_paper(results)
    assert {"effect", "anova", "summary", "trials", "shape", "answer"} <= set(shown)
    for name, table in shown.items():
        blocks = latex.read(exported.table(table, name))
        for rows in blocks:
            heads = (1, 2, 3) if len(table.rows) <= 40 else (2, 4, 6)
            assert len(rows) - len(table.rows) in heads, name
        assert len(blocks) >= 1, name


def test_the_answer_is_a_table_to_paste_and_no_wide_statistic_is_cut() -> None:
    study = synthetic.study()
    results = analyse(synthetic.records(study), study, seed=1)
    shown = for_paper(results)
    assert results.answer_table is not None
    assert shown["answer"].rows == answers.answers(results.answer_table).without_empty_columns().rows  # type: ignore[union-attr]
    own = {"answer", "comparison", "summary", "responses", "interaction", "regression", "law", "every-pair"}
    assert not [name for name, table in shown.items() if name not in own and exported.is_cut(table)]
    assert "anova" not in shown


def test_a_table_fits_if_its_words_may_wrap() -> None:
    columns = (
        ShownColumn("", numeric=False), ShownColumn("compression none"), ShownColumn("compression lz4"),
        ShownColumn("lz4 against none"), ShownColumn("verdict", numeric=False), ShownColumn("to decide", numeric=False),
    )  # fmt: skip
    row = ("mix mixed, 450 threads", "22.1 ms", "20.7 ms", "−6% [−39, 44]", "undecided", "60 blocks, 11 h")
    text = exported.table(Table("t", "T.", columns, (tuple(map(Cell, row)),)), "t")
    ((upper, lower, cells),) = latex.read(text)
    assert (upper[1:4], lower[1:4]) == (["compression", "compression", "lz4 against"], ["none", "lz4", "none"])
    assert cells[0] == row[0]
    assert "{p{5.0em}rrrlp{5.0em}}" in text


def test_markdown_has_a_row_each_and_keeps_pipes_apart() -> None:
    lines = export.markdown(TABLE).splitlines()
    assert lines[0].startswith("**Caption 50% & more_of_it")
    assert lines[2] == "| name | value (ms) | note |"
    assert lines[3] == "| --- | ---: | --- |"
    assert lines[5].startswith("| [a\\|b] | – | long")


def test_csv_keeps_every_digit(tmp_path: Path) -> None:
    study = synthetic.study()
    results = analyse(synthetic.records(study), study, seed=1)
    found = tables(results)
    shown = for_paper(results)
    written = export.tables(found, shown, tmp_path)
    assert len(written) == len(found) + 2 * len(shown)
    back = pl.read_csv(io.BytesIO((tmp_path / "trials.csv").read_bytes()))
    assert back["value"].to_list() == found["trials"]["value"].to_list()


def test_json_has_all_tables_and_what_columns_mean() -> None:
    study = synthetic.study()
    results = analyse(synthetic.records(study), study, seed=1)
    found = json.loads(export.as_json(tables(results), columns(results)))
    assert set(found) == set(tables(results))
    assert set(found["summary"]["columns"]) <= set(found["summary"]["about"])


def test_figures_are_written_in_three_formats_with_captions(tmp_path: Path) -> None:
    study = synthetic.study(workloads=("A",))
    records = synthetic.records(study)
    made = catalogue.of_results(analyse(records, study, seed=1))
    export.figures({"main": made["main"]}, tmp_path)
    assert (tmp_path / "main.svg").read_text().startswith("<svg")
    assert (tmp_path / "main.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "main.pdf").read_bytes()[:4] == b"%PDF"
    assert "n = " in (tmp_path / "captions.txt").read_text()
