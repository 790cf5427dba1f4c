"""Export of tables and figures for a paper: CSV, Markdown and LaTeX; SVG, PNG and PDF."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from steelyard.atomic_file import output_folder, write_output
from steelyard.heavy import pl
from steelyard.report.basics.embedded_data import raw
from steelyard.report.data.presentation import Figure
from steelyard.report.draw import files
from steelyard.report.draw.files import SUFFIXES
from steelyard.report.tables import latex
from steelyard.report.tables.generic import Table
from steelyard.shown_text import csv_cell, json_text, markdown_prose, visible


def tables(frames: Mapping[str, pl.DataFrame], shown: Mapping[str, Table], folder: Path) -> tuple[Path, ...]:
    """Write each of `frames` as CSV (full precision, every column), and each of `shown` as Markdown and LaTeX
    (booktabs; an estimate and its interval in one cell). Gives the files' paths."""
    folder = output_folder(folder)
    written = []
    for name in dict.fromkeys((*frames, *shown)):
        texts = {"csv": as_csv(frames[name])} if name in frames else {}
        if name in shown:
            texts |= {"md": markdown(shown[name]), "tex": latex.table(shown[name], name)}
        for suffix, text in texts.items():
            path = folder / f"{name}.{suffix}"
            write_output(path, text)
            written.append(path)
    return tuple(written)


def markdown(table: Table) -> str:
    """A table in Markdown: the caption, then a pipe table with units in the heads."""
    heads = [f"{column.name} ({column.unit})" if column.unit else column.name for column in table.columns]
    lines = [
        f"**{markdown_prose(table.caption)}**",
        "",
        "| " + " | ".join(markdown_prose(head) for head in heads) + " |",
        "| " + " | ".join("---:" if column.numeric else "---" for column in table.columns) + " |",
    ]
    lines += ["| " + " | ".join(markdown_prose(cell.text) for cell in row) + " |" for row in table.rows]
    return "\n".join(lines) + "\n"


def as_csv(frame: pl.DataFrame) -> str:
    """A table as CSV: texts are not formulas, see `steelyard.shown_text.csv_cell`; all else has its full precision."""
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    shown = frame.with_columns(pl.col(name).map_elements(csv_cell, return_dtype=pl.String) for name in texts)
    return shown.rename({name: csv_cell(name) for name in shown.columns}).write_csv()


def as_json(frames: Mapping[str, pl.DataFrame], about: Mapping[str, Mapping[str, str]]) -> str:
    """All tables as one JSON object: name to columns, their meanings, and rows."""
    return json_text(
        {name: {"about": dict(about.get(name, {})), **table} for name, table in raw(frames).items()},
        ensure_ascii=False, indent=1, allow_nan=False,
    )  # fmt: skip


def figures(by_name: Mapping[str, Figure], folder: Path) -> tuple[Path, ...]:
    """Write each panel as SVG, PNG and PDF, in the light theme's colours on white, and captions. Gives the paths."""
    folder = output_folder(folder)
    written = []
    captions = []
    for name, figure in by_name.items():
        for index, panel in enumerate(figure.panels, start=1):
            stem = name if len(figure.panels) == 1 else f"{name}-{index}"
            for suffix in SUFFIXES:
                path = folder / f"{stem}{suffix}"
                files.write(panel.picture, path)
                written.append(path)
            captions.append(f"{stem}: {panel.title or figure.title}. {_key(figure)}{figure.caption}")
    path = folder / "captions.txt"
    write_output(path, visible("\n\n".join(captions), lines=True) + "\n")
    return (*written, path)


def _key(figure: Figure) -> str:
    if not figure.keys:
        return ""
    entries = "; ".join(f"{key.text} ({key.colour}{', ' + key.shape if key.shape else ''})" for key in figure.keys)
    return f"{figure.key_title + ': ' if figure.key_title else 'Key: '}{entries}. "
