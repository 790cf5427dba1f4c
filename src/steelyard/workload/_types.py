"""Parser of CQL types; errors give the character and the allowed continuations."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from steelyard.format import count

SIMPLE = (
    "ascii", "bigint", "blob", "boolean", "counter", "date", "decimal", "double", "duration", "float", "inet", "int",
    "smallint", "text", "time", "timestamp", "timeuuid", "tinyint", "uuid", "varchar", "varint",
)  # fmt: skip
MEMBERS = {"list": 1, "set": 1, "map": 2, "frozen": 1}
"""Number of member types of each type; a tuple has any number, a vector has a type and a count."""
NAMES = (*SIMPLE, *MEMBERS, "tuple", "vector")
MOST_DEPTH = 16
MOST_VECTOR = 8192
WORD = re.compile(r'[A-Za-z_][A-Za-z0-9_]*|"(?:[^"]|"")+"|[0-9]+')
BYTES = {
    "bigint": 8, "boolean": 1, "counter": 8, "date": 4, "decimal": 8, "double": 8, "duration": 4, "float": 4,
    "inet": 4, "int": 4, "smallint": 2, "time": 8, "timestamp": 8, "timeuuid": 16, "tinyint": 1, "uuid": 16,
    "varint": 8,
}  # fmt: skip
"""Size of a value in bytes: fixed by the type, or typical."""
SIZED = ("ascii", "blob", "text", "varchar")
COLLECTIONS = ("list", "set", "map")


class TypeProblem(ValueError):
    """An invalid type. `position`: of the character, from 1."""

    def __init__(self, text: str, at: int, what: str) -> None:
        super().__init__(f"{text!r} is not a CQL type: at character {at + 1}: {what}")
        self.position = at + 1


@dataclass(frozen=True)
class CqlType:
    """A type. User-defined ones have their name and their fields' types as members."""

    name: str
    members: tuple[CqlType, ...] = ()
    count: int = 0
    """Number of elements in a vector."""
    fields: tuple[str, ...] = ()
    """Names of a user-defined type's fields."""

    @property
    def bare(self) -> CqlType:
        """The type without `frozen` around it."""
        return self.members[0].bare if self.name == "frozen" else self

    def wire(self) -> str:
        """Type in the agent's order: a user-defined type becomes a tuple of its fields, which has the same bytes."""
        if self.fields:
            return f"tuple<{', '.join(member.wire() for member in self.members)}>"
        if self.name == "vector":
            return f"vector<{self.members[0].wire()}, {self.count}>"
        inner = f"<{', '.join(member.wire() for member in self.members)}>" if self.members else ""
        return self.name + inner


def parse(text: str, known: Mapping[str, CqlType] | None = None) -> CqlType:
    """Parse a type. `known`: user-defined types by name. Raises TypeProblem."""
    reader = _Reader(text, known or {})
    kind = reader.type_(0)
    reader.blank()
    if reader.at < len(text):
        raise TypeProblem(text, reader.at, f"the end expected, not {text[reader.at :]!r}")
    return kind


class _Reader:
    def __init__(self, text: str, known: Mapping[str, CqlType]) -> None:
        self.text = text
        self.known = known
        self.at = 0

    def blank(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def word(self, expected: str) -> tuple[str, int]:
        self.blank()
        match = WORD.match(self.text, self.at)
        if match is None:
            read = self.text[self.at : self.at + 10]
            raise TypeProblem(
                self.text, self.at, f"{expected} expected, not {read!r}" if read else f"{expected} expected"
            )
        start, self.at = self.at, match.end()
        return match[0], start

    def symbol(self, allowed: str) -> str:
        self.blank()
        if self.at < len(self.text) and self.text[self.at] in allowed:
            self.at += 1
            return self.text[self.at - 1]
        read = self.text[self.at : self.at + 10]
        wanted = " or ".join(repr(one) for one in allowed)
        raise TypeProblem(self.text, self.at, f"{wanted} expected" + (f", not {read!r}" if read else ""))

    def type_(self, depth: int) -> CqlType:
        word, start = self.word("a type")
        if depth > MOST_DEPTH:
            raise TypeProblem(self.text, start, f"more than {MOST_DEPTH} types within each other")
        name = word.strip('"') if word.startswith('"') else word.lower()
        if name in SIMPLE:
            if name == "counter" and depth:
                raise TypeProblem(self.text, start, "counters cannot be within another type")
            return CqlType(name)
        if name in MEMBERS:
            return CqlType(name, self._members(name, start, depth))
        if name == "tuple":
            return CqlType(name, self._members(name, start, depth))
        if name == "vector":
            return self._vector(depth)
        if name in self.known:
            return self.known[name]
        names = (*NAMES, *self.known)
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise TypeProblem(self.text, start, f"unknown type {word!r}{hint} allowed: {', '.join(names)}")

    def _members(self, name: str, start: int, depth: int) -> tuple[CqlType, ...]:
        self.symbol("<")
        members = [self.type_(depth + 1)]
        while self.symbol(",>") == ",":
            members.append(self.type_(depth + 1))
        wanted = MEMBERS.get(name)
        if wanted is not None and len(members) != wanted:
            raise TypeProblem(self.text, start, f"{name} needs {count(wanted, 'type')}, not {len(members)}")
        return tuple(members)

    def _vector(self, depth: int) -> CqlType:
        self.symbol("<")
        member = self.type_(depth + 1)
        self.symbol(",")
        count, start = self.word("a number of elements")
        if not count.isdigit() or not 1 <= int(count) <= MOST_VECTOR:
            raise TypeProblem(self.text, start, f"a vector has 1 to {MOST_VECTOR} elements, not {count}")
        self.symbol(">")
        return CqlType("vector", (member,), int(count))
