"""LaTeX tables with booktabs, cut to the page width; each estimate and its interval in one cell.

Columns that exceed the line width go into further blocks of the same table, each with the columns that name its rows.
A table with many rows becomes a longtable. The packages booktabs and longtable are needed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from steelyard.report.tables.generic import ShownColumn, Table

LINE_LETTERS: Final = 84
"""Letters in a footnote-sized line of an article (345 pt); the most that a block of columns takes."""
GAP_LETTERS: Final = 3
LONG_LETTERS: Final = 34
"""A column of longer texts is set as a paragraph of this width."""
MOST_ROWS_FLOATING: Final = 40
NEEDS: Final = "% needs \\usepackage{booktabs,longtable}"
_SPECIAL: Final = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "−": "$-$", "–": "--", "—": "---", "→": r"$\rightarrow$",
    "×": r"$\times$", "µ": r"$\mu$", "μ": r"$\mu$", "’": "'", "‘": "`", "“": "``", "”": "''", "·": r"$\cdot$",
    "±": r"$\pm$", "≤": r"$\leq$", "≥": r"$\geq$", "²": r"$^2$", "³": r"$^3$", "η": r"$\eta$", "σ": r"$\sigma$",
    "κ": r"$\kappa$", "δ": r"$\delta$", "χ": r"$\chi$", "Σ": r"$\Sigma$", "°": r"$^\circ$", "…": r"\ldots{}",
    "\u00a0": "~", "\u202f": r"\,",
}  # fmt: skip
_MOST_LATIN: Final = "\u00ff"
"""Letters up to this one are in every LaTeX font; others lose their diacritics or become a question mark."""


def escaped(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return "".join(_letter(letter) for letter in " ".join(text.split()))


def _letter(letter: str) -> str:
    if letter in _SPECIAL:
        return _SPECIAL[letter]
    if letter <= _MOST_LATIN and letter.isprintable():
        return letter
    plain = "".join(part for part in unicodedata.normalize("NFKD", letter) if part.isascii() and part.isprintable())
    return "".join(_SPECIAL.get(part, part) for part in plain) or "?"


def table(grid: Table, name: str) -> str:
    """The table as a float, or as a longtable where it is longer than a page; `name` becomes its label."""
    blocks = _blocks(grid)
    long = len(grid.rows) > MOST_ROWS_FLOATING
    lines = [NEEDS]
    label = f"tab:{name.replace('_', '-')}"
    if not long:
        lines += ["\\begin{table}", "  \\centering\\footnotesize", f"  \\caption{{{escaped(grid.caption)}}}"]
        lines.append(f"  \\label{{{label}}}")
    for index, places in enumerate(blocks):
        if long:
            part = f" (columns, part {index + 1} of {len(blocks)})" if len(blocks) > 1 else ""
            lines += _long(grid, places, escaped(grid.caption) + part, f"{label}-{index + 1}" if index else label)
        else:
            lines += ["  \\par\\medskip"] if index else []
            lines += _block(grid, places)
    return "\n".join([*lines, *([] if long else ["\\end{table}"])]) + "\n"


def _width(grid: Table, place: int) -> int:
    column = grid.columns[place]
    longest = max((len(row[place].text) for row in grid.rows), default=0)
    head = max(len(column.name), len(column.unit))
    return max(min(longest, LONG_LETTERS), head) + GAP_LETTERS


def _blocks(grid: Table) -> list[list[int]]:
    """Indices of columns by block; every block begins with the columns that name the rows."""
    widths = [_width(grid, place) for place in range(len(grid.columns))]
    names: list[int] = []
    for place, column in enumerate(grid.columns):
        level = place == 0 or column.term in ("factor", "comparison") or (not column.numeric and place == len(names))
        if not level or place != len(names) or sum(widths[one] for one in (*names, place)) > LINE_LETTERS // 2:
            break
        names.append(place)
    blocks: list[list[int]] = [list(names)]
    for place in range(len(names), len(grid.columns)):
        if len(blocks[-1]) > len(names) and sum(widths[one] for one in (*blocks[-1], place)) > LINE_LETTERS:
            blocks.append(list(names))
        blocks[-1].append(place)
    return blocks


def _alignment(grid: Table, places: Sequence[int]) -> str:
    def column_format(place: int) -> str:
        if max((len(row[place].text) for row in grid.rows), default=0) > LONG_LETTERS:
            return f"p{{{LONG_LETTERS * 0.45:.1f}em}}"
        return "r" if grid.columns[place].numeric else "l"

    return "".join(column_format(place) for place in places)


def _heads(columns: Sequence[ShownColumn]) -> list[str]:
    lines = ["    " + " & ".join(escaped(column.name) for column in columns) + r" \\"]
    if any(column.unit for column in columns):
        lines.append("    " + " & ".join(escaped(column.unit) for column in columns) + r" \\")
    return ["    \\toprule", *lines, "    \\midrule"]


def _rows(grid: Table, places: Sequence[int]) -> list[str]:
    # LaTeX would read a bracket at the start of a row as an option of the preceding line break.
    return ["    {}" + " & ".join(escaped(row[place].text) for place in places) + r" \\" for row in grid.rows]


def _block(grid: Table, places: Sequence[int]) -> list[str]:
    return [
        f"  \\begin{{tabular}}{{{_alignment(grid, places)}}}",
        *_heads([grid.columns[place] for place in places]),
        *_rows(grid, places),
        "    \\bottomrule",
        "  \\end{tabular}",
    ]


def _long(grid: Table, places: Sequence[int], caption: str, label: str) -> list[str]:
    heads = _heads([grid.columns[place] for place in places])
    return [
        "{\\footnotesize",
        f"  \\begin{{longtable}}{{{_alignment(grid, places)}}}",
        f"    \\caption{{{caption}}}\\label{{{label}}} \\\\",
        *heads,
        "    \\endfirsthead",
        *heads,
        "    \\endhead",
        *_rows(grid, places),
        "    \\bottomrule",
        "  \\end{longtable}",
        "}",
    ]
