"""Tables and figures as files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl

from steelyard.analysis.analyse import analyse
from steelyard.analysis.tables import columns, tables, titles
from steelyard.report import export, figures
from tests.unit.report import synthetic

FRAME = pl.DataFrame({"name": ["50% & more_of_it", "a|b"], "value": [1234.5678, None], "empty": [None, None]})


def test_latex_is_escaped_and_leaves_empty_columns_out() -> None:
    text = export.latex(FRAME, "A & B", "some_table")
    assert r"50\% \& more\_of\_it & 1,235 \\" in text
    assert r"\caption{A \& B}" in text
    assert r"\begin{tabular}{lr}" in text
    assert "\\toprule" in text
    assert "empty" not in text


def test_markdown_has_a_row_each_and_keeps_pipes_apart() -> None:
    lines = export.markdown(FRAME, "Title").splitlines()
    assert lines[0] == "**Title**"
    assert lines[3] == "| --- | ---: | --- |"
    assert lines[5] == "| a\\|b | – | – |"


def test_csv_keeps_every_digit(tmp_path: Path) -> None:
    study = synthetic.study()
    results = analyse(synthetic.records(study), study, seed=1)
    found = tables(results)
    written = export.tables(found, titles(results), tmp_path)
    assert len(written) == 3 * len(found)
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
    made = figures.of_results(analyse(records, study, seed=1), records)
    export.figures({"medians": made["medians"]}, tmp_path)
    assert (tmp_path / "medians.svg").read_text().startswith("<svg")
    assert (tmp_path / "medians.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "medians.pdf").read_bytes()[:4] == b"%PDF"
    assert "n = " in (tmp_path / "captions.txt").read_text()
