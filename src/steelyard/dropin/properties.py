"""Parser of Java .properties files (YCSB's -P, cassandra-stress's -credentials-file) by the rules of
java.util.Properties.load."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

from steelyard.model.errors import StudyError

BLANK = " \t\f"
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


def read(path: Path, option: str = "-P") -> dict[str, str]:
    """The properties in a file; the last value of a repeated key counts. Raises StudyError if the file cannot be read
    or has an invalid escape. `option`: which names the file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        message = f"{option} {path}: cannot be read: {error.strerror}"
        raise StudyError(message, "give the path of a property file", path=str(path)) from error
    # Java reads such files as Latin-1, a byte order mark into the first key; only UTF-8 and UTF-16 have one.
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise StudyError(f"{option} {path}: is UTF-16", "save the file as UTF-8", path=str(path))
    marked = content.startswith(codecs.BOM_UTF8)
    return parse(content.decode("utf-8-sig" if marked else "latin-1", errors="replace"), str(path))


def parse(text: str, path: str = "") -> dict[str, str]:
    """The properties of a text; `path` is for errors."""
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key, value = _split(line)
        try:
            properties[_plain(key)] = _plain(value)
        except ValueError as error:
            message = f"{path}:{number}: {error}"
            raise StudyError(message, "write \\u and four hexadecimal digits", path=path, line=number) from error
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines with the number of their first line, continuations joined, without blank lines and comments."""
    parts: list[str] = []
    first = 0
    for number, natural in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        line = natural.lstrip(BLANK)
        if not parts:
            if not line or line[0] in "#!":
                continue
            first = number
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            parts.append(line[:-1])
            continue
        yield first, "".join([*parts, line])
        parts = []
    if parts:
        yield first, "".join(parts)


def _split(line: str) -> tuple[str, str]:
    """Key and value, still escaped: the key ends at the first bare `=`, `:` or blank."""
    end = 0
    while end < len(line) and line[end] not in "=:" + BLANK:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(BLANK)
    return line[:end], rest


def _plain(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        body = match[1]
        if len(body) == 5:
            return chr(int(body[1:], 16))
        if body == "u":
            raise ValueError("a \\u without four hexadecimal digits")
        return ESCAPES.get(body, body)

    return ESCAPE.sub(replace, text)
