"""LaTeX tables with booktabs, cut to the page width; each estimate and its interval in one cell.

Columns that exceed the line width go into further blocks of the same table, each with the columns that name its rows.
A table with many rows becomes a longtable. The packages booktabs and longtable are needed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from steelyard.report.tables.generic import Table

LINE_LETTERS: Final = 84
"""Letters in a footnote-sized line of an article (345 pt); the most that a block of columns takes."""
GAP_LETTERS: Final = 3
LONG_LETTERS: Final = 34
"""A column of longer texts is set as a paragraph of this width."""
TIGHT_LETTERS: Final = 11
"""The same in a table that is too wide otherwise."""
MOST_ROWS_FLOATING: Final = 40
NEEDS: Final = "% needs \\usepackage{booktabs,longtable}"
_SPECIAL: Final = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "−": "$-$", "–": "--", "—": "---", "→": r"$\rightarrow$",
    "×": r"$\times$", "µ": r"$\mu$", "μ": r"$\mu$", "’": "'", "‘": "`", "“": "``", "”": "''", "·": r"$\cdot$",
    "±": r"$\pm$", "≤": r"$\leq$", "≥": r"$\geq$", "²": r"$^2$", "³": r"$^3$", "η": r"$\eta$", "σ": r"$\sigma$",
    "κ": r"$\kappa$", "δ": r"$\delta$", "χ": r"$\chi$", "Σ": r"$\Sigma$", "°": r"$^\circ$",
    "▲": r"$\bigtriangleup$", "▼": r"$\bigtriangledown$", "○": r"$\circ$", "≈": r"$\approx$",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "…": r"\ldots{}",
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


def is_cut(grid: Table) -> bool:
    """Whether the columns exceed the page width, so that parts of the table are stacked."""
    return len(_blocks(grid)) > 1


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


def _longest(grid: Table, place: int) -> int:
    return max((len(row[place].text) for row in grid.rows), default=0)


def _width(grid: Table, place: int, most: int = LONG_LETTERS) -> int:
    longest = min(_longest(grid, place), most)
    return max(longest, *map(len, _head(grid, place)), len(grid.columns[place].unit)) + GAP_LETTERS


def _is_wide(grid: Table) -> bool:
    """Whether its columns with names in one line exceed the page width."""
    places = range(len(grid.columns))
    one_line = (max(_width(grid, place), len(grid.columns[place].name) + GAP_LETTERS) for place in places)
    return sum(one_line) > LINE_LETTERS


def _head(grid: Table, place: int) -> tuple[str, str]:
    """The name of a column; one that is longer than its cells in two lines of about the same length."""
    name = grid.columns[place].name
    words = name.split(" ")
    if len(name) <= _longest(grid, place) or len(words) == 1:
        return "", name
    cuts = [(" ".join(words[:cut]), " ".join(words[cut:])) for cut in range(1, len(words))]
    return min(cuts, key=lambda cut: max(map(len, cut)))


def _most_letters(grid: Table) -> list[int]:
    """Width of each column beyond which its texts are paragraphs: narrow ones if the table is whole only then."""
    places = range(len(grid.columns))
    tight = [LONG_LETTERS if column.numeric else TIGHT_LETTERS for column in grid.columns]
    whole = sum(_width(grid, place) for place in places) <= LINE_LETTERS
    helps = sum(_width(grid, place, tight[place]) for place in places) <= LINE_LETTERS
    return tight if helps and not whole else [LONG_LETTERS for _ in places]


def _blocks(grid: Table) -> list[list[int]]:
    """Indices of columns by block; every block begins with the columns that name the rows."""
    widths = [_width(grid, place, most) for place, most in enumerate(_most_letters(grid))]
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
    most = _most_letters(grid)

    def column_format(place: int) -> str:
        if _longest(grid, place) > most[place]:
            return f"p{{{most[place] * 0.45:.1f}em}}"
        return "r" if grid.columns[place].numeric else "l"

    return "".join(column_format(place) for place in places)


def _heads(grid: Table, places: Sequence[int]) -> list[str]:
    """Names, in two lines if the table is too wide otherwise, then units."""
    split = _is_wide(grid)
    names = [_head(grid, place) if split else ("", grid.columns[place].name) for place in places]
    lines = [*zip(*names, strict=True), tuple(grid.columns[place].unit for place in places)]
    shown = ["    " + " & ".join(map(escaped, line)) + r" \\" for line in lines if any(line)]
    return ["    \\toprule", *shown, "    \\midrule"]


def _rows(grid: Table, places: Sequence[int]) -> list[str]:
    # LaTeX would read a bracket at the start of a row as an option of the preceding line break.
    return ["    {}" + " & ".join(escaped(row[place].text) for place in places) + r" \\" for row in grid.rows]


def _block(grid: Table, places: Sequence[int]) -> list[str]:
    return [
        f"  \\begin{{tabular}}{{{_alignment(grid, places)}}}",
        *_heads(grid, places),
        *_rows(grid, places),
        "    \\bottomrule",
        "  \\end{tabular}",
    ]


def _long(grid: Table, places: Sequence[int], caption: str, label: str) -> list[str]:
    heads = _heads(grid, places)
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
