"""Tables and figures as files for a paper: CSV, Markdown and LaTeX; SVG, PNG and PDF."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl
import vl_convert

from steelyard.report import svg
from steelyard.report.format import number
from steelyard.report.page import raw
from steelyard.report.view import Figure

PNG_SCALE: Final = 3.0
"""Pixels of a PNG for each point of the figure."""
_LATEX: Final = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "−": "$-$", "–": "--", "→": r"$\rightarrow$", "×": r"$\times$", "µ": r"\textmu{}", "’": "'",
}  # fmt: skip


def tables(found: Mapping[str, pl.DataFrame], titles: Mapping[str, str], folder: Path) -> tuple[Path, ...]:
    """Write each table as CSV (full precision), Markdown and LaTeX (booktabs; four digits). Gives the files' paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, frame in found.items():
        for suffix, text in (
            ("csv", frame.write_csv()),
            ("md", markdown(frame, titles.get(name, name))),
            ("tex", latex(frame, titles.get(name, name), name)),
        ):
            path = folder / f"{name}.{suffix}"
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return tuple(written)


def markdown(frame: pl.DataFrame, title: str) -> str:
    """A table in Markdown: the title, then pipes."""
    lines = [
        f"**{title}**",
        "",
        "| " + " | ".join(frame.columns) + " |",
        "| " + " | ".join("---:" if dtype.is_numeric() else "---" for dtype in frame.dtypes) + " |",
    ]
    lines += ["| " + " | ".join(_cell(value).replace("|", "\\|") for value in row) + " |" for row in frame.iter_rows()]
    return "\n".join(lines) + "\n"


def latex(frame: pl.DataFrame, title: str, name: str) -> str:
    """A table in LaTeX with booktabs. Columns without any value are left out, so that it fits a page better."""
    kept = [column for column in frame.columns if frame[column].null_count() < frame.height or not frame.height]
    frame = frame.select(kept)
    alignment = "".join("r" if dtype.is_numeric() else "l" for dtype in frame.dtypes)
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        f"  \\caption{{{_escaped(title)}}}",
        f"  \\label{{tab:{name.replace('_', '-')}}}",
        f"  \\begin{{tabular}}{{{alignment}}}",
        "    \\toprule",
        "    " + " & ".join(_escaped(column.replace("_", " ")) for column in frame.columns) + r" \\",
        "    \\midrule",
        *("    " + " & ".join(_escaped(_cell(value)) for value in row) + r" \\" for row in frame.iter_rows()),
        "    \\bottomrule",
        "  \\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return number(value) if isinstance(value, float) else str(value).replace("\n", " ")


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def as_json(found: Mapping[str, pl.DataFrame], about: Mapping[str, Mapping[str, str]]) -> str:
    """All tables as one JSON object: name to columns, what each column means, and rows."""
    return json.dumps(
        {name: {"about": dict(about.get(name, {})), **table} for name, table in raw(found).items()},
        ensure_ascii=False, indent=1, allow_nan=False,
    )  # fmt: skip


ON_PAPER = {"background": "white", "padding": 8}
"""A file is looked at on any ground; the page brings its own."""


def figures(found: Mapping[str, Figure], folder: Path) -> tuple[Path, ...]:
    """Write each panel as SVG, PNG and PDF, in the light theme's colours on white, and captions. Gives the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    captions = []
    for name, figure in found.items():
        for index, panel in enumerate(figure.panels, start=1):
            stem = name if len(figure.panels) == 1 else f"{name}-{index}"
            drawing = _on_paper(panel.spec)
            for suffix, content in (
                ("svg", drawing.encode("utf-8")),
                ("png", vl_convert.svg_to_png(drawing, scale=PNG_SCALE)),
                ("pdf", vl_convert.svg_to_pdf(drawing)),
            ):
                path = folder / f"{stem}.{suffix}"
                path.write_bytes(content)
                written.append(path)
            captions.append(f"{stem}: {panel.title or figure.title}. {_key(figure)}{figure.caption}")
    path = folder / "captions.txt"
    path.write_text("\n\n".join(captions) + "\n", encoding="utf-8")
    return (*written, path)


def _on_paper(spec: dict[str, Any] | str) -> str:
    if isinstance(spec, str):
        head, _, rest = spec.partition(">")
        return f'{head}><rect width="100%" height="100%" fill="{ON_PAPER["background"]}"/>{rest}'
    return svg.draw({**spec, **ON_PAPER})


def _key(figure: Figure) -> str:
    if not figure.keys:
        return ""
    entries = "; ".join(
        f"{key.text} ({key.colour}{', ' + key.shape if key.shape != 'line' else ''})" for key in figure.keys
    )
    return f"{figure.key_title + ': ' if figure.key_title else 'Key: '}{entries}. "
