"""Texts of others as they are shown: names, levels, messages and facts that come from a study, a store or a node.

They are shown, and never obeyed, by the terminal, a spreadsheet or a renderer of Markdown. Each format has its function
here, which whoever writes the format calls at the end, for every text. JSON and Parquet keep texts as they are.
"""

from __future__ import annotations

import io
import json
import re
from typing import Any, Final, TextIO

PICTURES: Final = 0x2400
"""First of Unicode's pictures of control characters; DELETE has the place of 0x21."""
REPLACED: Final = "\N{REPLACEMENT CHARACTER}"
C0: Final = (*range(0x20), 0x7F)
C1: Final = tuple(range(0x80, 0xA0))
LINES_AND_DIRECTIONS: Final = (
    0x2028, 0x2029, 0xAD, *range(0x600, 0x606), 0x61C, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x180E, 0x200B, 0x200E,
    0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2065), *range(0x2066, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC),
    0x110BD, 0x110CD, *range(0x13430, 0x13440), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B),
    *range(0xE0000, 0xE0080),
)  # fmt: skip
"""Separators of lines and paragraphs, marks of direction (UAX 9), and marks that nobody sees: Unicode's category Cf,
but for the joiners U+200C and U+200D, which scripts and pictures are spelled with."""
_VISIBLE: Final = {
    **{code: chr(PICTURES + (0x21 if code == 0x7F else code)) for code in C0},
    **dict.fromkeys((*C1, *LINES_AND_DIRECTIONS), REPLACED),
}
_KEPT_LINES: Final = {code: text for code, text in _VISIBLE.items() if chr(code) not in "\t\n"}
# What is most of a text is passed over first: the long class alone takes twenty times as long.
_UNSAFE: Final = re.compile(f"(?![\0-~])[{''.join(map(chr, (0x7F, *C1, *LINES_AND_DIRECTIONS)))}\ud800-\udfff]")
FORMULA: Final = re.compile("'*\\s*[=+\\-@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}"
                            "\N{FULLWIDTH COMMERCIAL AT}\t\r\n]")  # fmt: skip
"""Beginnings of a cell that a spreadsheet reads as a formula (OWASP, CSV Injection), and of one that has its mark."""
NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?")
CODE: Final = re.compile(r"(?<!`)(`[^`]+`)(?!`)")
MARKUP: Final = re.compile(r"([\\|<>`*_~\[\]#])")
MARKUP_OF_PROSE: Final = re.compile(r"([\\|`*]|\](?=[(\[:])|~(?=~)|(?<=~)~|(?<![^\W_])_|_(?![^\W_]))")
"""What remains of it in sentences and numbers, in which brackets are intervals and words have underscores."""
ENTITY: Final = re.compile(r"&(?=#?\w+;)")
AT_BEGINNING: Final = re.compile(r"^(\d*)([-+](?=\s|$|-)|=(?==|$)|[#>]|[.)](?=\s|$))")
"""First characters of headings, quotes, lists, lines below headings, and rules."""


def visible(text: str, *, lines: bool = False) -> str:
    """The text with a visible sign in the place of every character that a terminal obeys or nobody sees, one for one.
    With `lines`, line feeds and tabs stay."""
    return text.translate(_KEPT_LINES if lines else _VISIBLE)


def csv_cell(text: str) -> str:
    """A text of a CSV file, which no spreadsheet reads as a formula: an apostrophe stands before what it would read as
    one. To undo it, remove one apostrophe from a cell that begins with apostrophes before such a beginning. Numbers
    stay as they are."""
    mark = "'" if FORMULA.match(text) and not NUMBER.fullmatch(text) else ""
    return mark + visible(text)


def markdown(text: str) -> str:
    """A name or a message in Markdown that is not markup, on one line."""
    return _beginning(MARKUP.sub(r"\\\1", ENTITY.sub("&amp;", _line(text))))


def markdown_prose(text: str) -> str:
    """A sentence of ours in Markdown, on one line: texts of others in it are not markup. What stands between backticks
    is code."""
    parts = CODE.split(_line(text))
    return _beginning("".join(_in_code(part) if place % 2 else _unmarked(part) for place, part in enumerate(parts)))


def _line(text: str) -> str:
    return visible(" ".join(text.split()))


def _unmarked(text: str) -> str:
    return MARKUP_OF_PROSE.sub(r"\\\1", ENTITY.sub("&amp;", text)).replace("<", "&lt;")


def _in_code(text: str) -> str:
    # Of all escapes, only this one counts within code: where it stands in a table.
    return text.replace("|", "\\|")


def _beginning(text: str) -> str:
    return AT_BEGINNING.sub(r"\1\\\2", text)


def json_text(value: Any, **options: Any) -> str:
    """A value as JSON for a terminal or a file, with the options of `json.dumps`."""
    return shown_json(json.dumps(value, **options))


def shown_json(text: str) -> str:
    """A JSON text in which characters that a terminal obeys are escaped: the same value."""
    return _UNSAFE.sub(lambda found: json.dumps(found.group())[1:-1].replace("\x7f", "\\u007f"), text)


class Shown(io.TextIOBase):
    """A stream for texts of others, on another stream: see `visible`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, with signs in the place of characters that a terminal obeys."""
        return self._stream.write(visible(text, lines=True))

    def flush(self) -> None:
        """Hand on what was written."""
        self._stream.flush()
