"""Export of tables and figures for a paper: CSV, Markdown and LaTeX; SVG, PNG and PDF."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from steelyard.atomic_file import output_folder, write_output
from steelyard.heavy import pl
from steelyard.report.data.presentation import Figure
from steelyard.report.draw import files
from steelyard.report.draw.files import SUFFIXES
from steelyard.report.page import raw
from steelyard.report.tables import latex
from steelyard.report.tables.generic import Table


def tables(frames: Mapping[str, pl.DataFrame], shown: Mapping[str, Table], folder: Path) -> tuple[Path, ...]:
    """Write each table as CSV (full precision, every column) and, where `shown` has it, as Markdown and LaTeX
    (booktabs; an estimate and its interval in one cell). Gives the files' paths."""
    folder = output_folder(folder)
    written = []
    for name, frame in frames.items():
        texts = {"csv": frame.write_csv()}
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
        f"**{_piped(table.caption)}**",
        "",
        "| " + " | ".join(_piped(head) for head in heads) + " |",
        "| " + " | ".join("---:" if column.numeric else "---" for column in table.columns) + " |",
    ]
    lines += ["| " + " | ".join(_piped(cell.text) for cell in row) + " |" for row in table.rows]
    return "\n".join(lines) + "\n"


def _piped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def as_json(frames: Mapping[str, pl.DataFrame], about: Mapping[str, Mapping[str, str]]) -> str:
    """All tables as one JSON object: name to columns, their meanings, and rows."""
    return json.dumps(
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
    write_output(path, "\n\n".join(captions) + "\n")
    return (*written, path)


def _key(figure: Figure) -> str:
    if not figure.keys:
        return ""
    entries = "; ".join(f"{key.text} ({key.colour}{', ' + key.shape if key.shape else ''})" for key in figure.keys)
    return f"{figure.key_title + ': ' if figure.key_title else 'Key: '}{entries}. "
