"""A TOML file of a user as text and as a tree, or one error with file and line. What no such file needs, and what would
take minutes or all of the stack to refuse later, is refused here: size, nesting, long words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.format import data_size
from steelyard.model.errors import StudyError
from steelyard.model.plausible import LARGEST, SMALLEST, is_read_back, leaves
from steelyard.model.secret import literals, literals_in, redacted_text
from steelyard.tomlfile.positions import key_lines, line_of
from steelyard.tomlfile.problems import Missing, placed, problem, raise_located

LARGEST_BYTES = 1 << 20
MOST_NESTED = 30
"""Levels of tables and lists within each other."""
LONGEST_KEY = 200
LONGEST_TEXT = 20_000
"""Characters of a value: a long statement of a workload has a few hundred."""
LONGEST_NAME = 500
"""Characters of the name or path of a plug-in or a study."""
SHOWN = 40
LONGEST_PATH = 100
"""Characters of what is quoted as a path that cannot be read: it may be the text of a study."""
IN_PLAIN_SIGHT = (
    "a secret must not be in a study or in a file that it names: it would be copied into the store; write "
    "'env:NAME' and set that variable where the study runs, or 'file:/path' of a file outside the store"
)
QUOTES_HINT = 'a key cannot be a value and a table: write the longer one in quotes: "workload.records" = [1000, 2000]'
NOT_READ_BACK = (
    f"must be a finite number, 0 or from {SMALLEST:g} to {float(LARGEST):.3g} in size: others cannot be stored"
)
TOKENS = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|'
    r"'''(?:[^']|'(?!''))*'''|"
    r'"(?:[^"\\\n]|\\.)*"|'
    r"'[^'\n]*'|#[^\n]*|[\[\]{}]",
    re.DOTALL,
)
"""Strings and comments, which are skipped, and brackets."""


def text_of(path: Path, what: str) -> str:
    """Text of a user's file; a byte order mark is left out. `what`: a study file, a workload file. Raises
    StudyError."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        name = str(path) if len(str(path)) <= LONGEST_PATH else f"{str(path)[:LONGEST_PATH]}..."
        raise StudyError(f"{name}: cannot be read: {reason}", f"name a {what}", path=str(path)) from error
    if len(content) > LARGEST_BYTES:
        message = f"{path}: larger than the {data_size(LARGEST_BYTES)} that a {what} may have"
        raise StudyError(message, f"name a {what}", path=str(path))
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line = before.count(b"\n") + 1
        column = len(before) - before.rfind(b"\n")
        raise StudyError(
            f"{path}:{line}: not UTF-8 text: byte 0x{content[error.start]:02x} at column {column}",
            "save the file as UTF-8",
            path=str(path),
            line=line,
        ) from error


def parsed(text: str, path: str) -> dict[str, Any]:
    """The tree of a TOML text; `path` is only for messages. Raises StudyError with the line."""
    text = text.removeprefix("\ufeff")
    _not_too_deep(text, path)
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = re.search(r" \(at line (\d+), column (\d+)\)", message)
        line = int(place[1]) if place else text.count("\n") + 1
        what = message[: place.start()] if place else message.removesuffix(" (at end of document)")
        column = f"column {place[2]}: " if place else ""
        hint = QUOTES_HINT if "immutable namespace" in what else ""
        raise _refused(f"not TOML: {column}{what}", path, line, hint) from error
    except ValueError as error:  # a whole number of more digits than Python takes
        raise _refused(f"not TOML: {error}", path, _longest_line(text)) from error
    _within_limits(tree, text, path)
    _without_secrets(tree, text, path)
    _with_numbers_that_are_read_back(tree, text, path)
    return tree


def _without_secrets(tree: Mapping[str, Any], text: str, path: str) -> None:
    """Refuse secrets in plain text, in values and comments, before any other message could repeat one."""
    lines = key_lines(text)
    errors = [
        placed(problem(redacted_text(key), Missing(), IN_PLAIN_SIGHT), path, line_of(lines, place))
        for place, key in literals(tree)
    ]
    for token in TOKENS.finditer(text):
        if token[0].startswith("#") and next(literals_in(token[0][1:].strip()), None) is not None:
            line = text.count("\n", 0, token.start()) + 1
            errors.append(placed(problem("a comment", Missing(), IN_PLAIN_SIGHT), path, line))
    raise_located(errors, path)


def _with_numbers_that_are_read_back(tree: dict[str, Any], text: str, path: str) -> None:
    """Refuse numbers that a record in the store cannot hold: measurements with them would not be counted."""
    lines = key_lines(text)
    raise_located(
        (
            placed(problem(key, number, NOT_READ_BACK), path, line_of(lines, key))
            for key, number in leaves(tree)
            if isinstance(number, int | float) and not is_read_back(number)
        ),
        path,
    )


def _refused(what: str, path: str, line: int, hint: str = "") -> StudyError:
    where = f"{path}:{line}" if path else f"line {line}"
    return StudyError(f"{where}: {what}", hint, path=path, line=line)


def _longest_line(text: str) -> int:
    lines = text.split("\n")
    return max(range(len(lines)), key=lambda index: len(lines[index])) + 1


def _not_too_deep(text: str, path: str) -> None:
    """Refuse brackets that no parser should follow."""
    depth = 0
    for token in TOKENS.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
            if depth > MOST_NESTED:
                line = text.count("\n", 0, token.start()) + 1
                raise _refused(f"more than {MOST_NESTED} lists and tables within each other", path, line)
        elif token[0] in ("]", "}"):
            depth = max(0, depth - 1)


def _within_limits(tree: Mapping[str, Any], text: str, path: str) -> None:
    """Refuse dotted keys that nest too deeply, long words and long texts."""
    pending: list[tuple[str, Any, int]] = [("", tree, 0)]
    while pending:
        key, value, depth = pending.pop()
        word = key.rpartition(".")[2]
        if depth > MOST_NESTED:
            what = f"{key[:SHOWN]}...: more than {MOST_NESTED} tables within each other"
        elif len(word) > LONGEST_KEY:
            what = f"{word[:SHOWN]}...: a key of {len(word):,} characters, at most {LONGEST_KEY} are allowed"
        elif isinstance(value, str) and len(value) > (most := _longest(key)):
            what = f"{key}: a text of {len(value):,} characters, at most {most:,} are allowed"
        else:
            if isinstance(value, Mapping):
                pending += [(f"{key}.{name}" if key else name, item, depth + 1) for name, item in value.items()]
            elif isinstance(value, list):
                pending += [(f"{key}.{index}", item, depth + 1) for index, item in enumerate(value)]
            continue
        lines = key_lines(text)
        inner = (line for name, line in lines.items() if name.startswith(f"{key}."))
        raise _refused(what, path, line_of(lines, key) or next(inner, 0))


def _longest(key: str) -> int:
    """Most characters of the text under a key."""
    first, _, last = key.rpartition(".")
    return LONGEST_NAME if last in ("name", "engine") or first == "probes" else LONGEST_TEXT
