"""Line numbers of the keys of a TOML text, for error messages.

`tomllib` forgets positions. This scanner reads only texts that `tomllib` has accepted already, so it may be lenient:
it follows tables, arrays of tables, dotted and quoted keys, inline tables and multi-line values, and ignores the
meaning of values.
"""

from __future__ import annotations

BARE_END = " \t\r\n=.]#,{}[\"'"


def key_lines(text: str) -> dict[str, int]:
    """Dotted key -> line, from 1. Array items count from 0: `design.treatments.0.nodes`; keys lose their quotes."""
    scanner = _Scanner(text.removeprefix("\ufeff"))  # a byte order mark, which the parser skips, too
    scanner.document()
    return scanner.lines


def line_of(lines: dict[str, int], key: str) -> int:
    """Line of a key, otherwise of the nearest table around it, otherwise 0."""
    while key:
        if key in lines:
            return lines[key]
        key = key.rpartition(".")[0]
    return 0


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.lines: dict[str, int] = {}
        self.tables: dict[str, int] = {}
        """Arrays of tables: dotted name -> how many tables so far."""

    def document(self) -> None:
        table = ""
        while self._skip_blank():
            line = self.line
            if self._peek("["):
                table = self._header()
                self.lines.setdefault(table, line)
            else:
                self._pair(table)

    def _peek(self, token: str) -> bool:
        return self.text.startswith(token, self.at)

    def _step(self, count: int = 1) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count

    def _skip_blank(self) -> bool:
        """Pass over white space, newlines and comments; False at the end."""
        while self.at < len(self.text):
            if self.text[self.at] == "#":
                self._step(len(self.text[self.at :].partition("\n")[0]))
            elif self.text[self.at] in " \t\r\n":
                self._step()
            else:
                return True
        return False

    def _skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self._step()

    def _header(self) -> str:
        many = self._peek("[[")
        self._step(2 if many else 1)
        *outer, last = self._key()
        self._step(2 if many else 1)
        name = ""
        for part in outer:
            name = _join(name, part)
            self.lines.setdefault(name, self.line)
            if name in self.tables:
                name = _join(name, str(self.tables[name] - 1))
        name = _join(name, last)
        if many:
            index = self.tables.get(name, 0)
            self.tables[name] = index + 1
            self.lines.setdefault(name, self.line)
            return _join(name, str(index))
        return name

    def _key(self) -> list[str]:
        parts = []
        while True:
            self._skip_space()
            start = self.at
            if self.text[start] in "\"'":
                self._string()
                parts.append(self.text[start + 1 : self.at - 1])
            else:
                while self.at < len(self.text) and self.text[self.at] not in BARE_END:
                    self._step()
                parts.append(self.text[start : self.at])
            self._skip_space()
            if not self._peek("."):
                return parts
            self._step()

    def _pair(self, table: str) -> None:
        line = self.line
        name = table
        for part in self._key():
            name = _join(name, part)
            self.lines.setdefault(name, line)
        self._step()  # the equals sign
        self._skip_space()
        self._value(name)

    def _value(self, name: str) -> None:
        first = self.text[self.at]
        if first in "\"'":
            self._string()
        elif first == "[":
            self._items(name, "]")
        elif first == "{":
            self._items(name, "}")
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                self._step()

    def _items(self, name: str, end: str) -> None:
        self._step()
        index = 0
        while self._skip_blank() and not self._peek(end):
            if self._peek(","):
                self._step()
            elif end == "}":
                self._pair(name)
            else:
                item = _join(name, str(index))
                self.lines.setdefault(item, self.line)
                self._value(item)
                index += 1
        self._step()

    def _string(self) -> None:
        quote = self.text[self.at]
        mark = quote * 3 if self._peek(quote * 3) else quote
        self._step(len(mark))
        while not self._peek(mark):
            self._step(2 if quote == '"' and self._peek("\\") else 1)
        self._step(len(mark))
        while len(mark) == 3 and self._peek(quote):  # a multi-line string may end with one or two quotes of its own
            self._step()


def _join(table: str, key: str) -> str:
    return f"{table}.{key}" if table else key
