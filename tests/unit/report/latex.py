"""A reader of LaTeX tables that complains about what a compiler would complain about: so that no TeX is needed to test.

It knows what the exporter may use and nothing else: an unknown command is an error.
"""

from __future__ import annotations

import re

COMMANDS = frozenset(
    {
        "begin", "end", "caption", "label", "toprule", "midrule", "bottomrule", "centering", "footnotesize", "par",
        "medskip", "endfirsthead", "endhead", "textbackslash", "textasciitilde", "textasciicircum", "textless",
        "textgreater", "textbar", "textquotedbl", "rightarrow", "times", "mu", "cdot", "pm", "leq", "geq", "eta",
        "sigma", "kappa", "delta", "chi", "Sigma", "circ", "ldots",
        "bigtriangleup", "bigtriangledown", "approx", "uparrow", "downarrow",
    }
)  # fmt: skip
ENVIRONMENTS = frozenset({"table", "tabular", "longtable"})
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[{}$&%#_^~]|[^\\{}$&%#_^~]+", re.DOTALL)
_COLUMN = re.compile(r"[lrc]|p\{[\d.]+em\}")


class Broken(AssertionError):
    """The text would not compile, or not say what it should."""


def read(text: str) -> list[list[list[str]]]:
    """Every tabular and longtable as rows of cells. Raises Broken."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    body.encode("latin-1")
    _tokens(body)
    open_: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        _need(name in ENVIRONMENTS, f"environment {name}")
        if kind == "begin":
            open_.append(name)
        else:
            _need(bool(open_) and open_.pop() == name, f"\\end{{{name}}} ends nothing")
    _need(not open_, f"never ended: {open_}")
    found = re.findall(r"\\begin\{(tabular|longtable)\}\{((?:[^{}]|\{[^{}]*\})*)\}(.*?)\\end\{\1\}", body, re.DOTALL)
    return [_rows(columns, inside) for _, columns, inside in found]


def _rows(columns: str, inside: str) -> list[list[str]]:
    amount = len(_COLUMN.findall(columns))
    _need(_COLUMN.sub("", columns) == "", f"columns {columns}")
    rows = []
    bare = re.sub(r"\\caption\{.*?\}\\label\{[^}]*\} \\\\", "", inside, flags=re.DOTALL)
    bare = re.sub(r"\\(toprule|midrule|bottomrule|endfirsthead|endhead)\b", "", bare)
    for line in (line.strip() for line in bare.split("\\\\\n")):
        if not line:
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)&", line)]
        _need(len(cells) == amount, f"{len(cells)} cells in {amount} columns: {line}")
        _need(not cells[0].startswith("["), f"read as an option of the line before: {line}")
        rows.append([cell.removeprefix("{}") for cell in cells])
    return rows


def _tokens(body: str) -> None:
    """Braces and mathematics nest, every command is known, no special character stands bare."""
    depth, mathematics = 0, False
    for token in _TOKEN.findall(body):
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            _need(depth >= 0, "a brace too many")
        elif token == "$":
            mathematics = not mathematics
        elif token.startswith("\\") and len(token) > 1 and token[1].isalpha():
            _need(token[1:] in COMMANDS, f"command {token}")
        elif token == "^":
            _need(mathematics, "a bare ^")
        elif token in ("%", "#", "_"):
            raise Broken(f"a bare {token}")
    _need(depth == 0, "a brace too few")
    _need(not mathematics, "mathematics that never ends")


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)
