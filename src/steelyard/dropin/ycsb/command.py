"""Parser of YCSB's command line: `load|run cassandra-cql`, the options of bin/ycsb and its client. Reads -P files."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from steelyard.dropin import properties
from steelyard.model.errors import StudyError

BINDINGS = ("cassandra-cql", "cassandra2-cql")
USAGE = """\
Usage: steelyard ycsb load|run cassandra-cql [options]

Takes YCSB's command lines and property files unchanged, drives the load with our agent, prints YCSB's lines.

  -P FILE        property file; may be repeated, later ones win
  -p NAME=VALUE  a property; wins over files
  -threads N     operations in flight (threadcount; default 1)
  -target N      operations per second (target; default: as fast as the answers come)
  -s             status lines on standard error (status)
  -l LABEL       before each status line (label)
  -db CLASS      the binding's class, as bin/ycsb passes it
  --create-table create keyspace and table first, where they are missing (not in YCSB)

Needs -p hosts=ADDRESS,... and the property workload. See docs/howto/switch-from-ycsb.md.
Exit codes: 0 done, 1 a failed insertion ended the load, 2 refused, 3 the laboratory failed, 130 interrupted.
"""
SECRET = re.compile(r"^([\w.]*pa?s+\w*\s*=).*", re.IGNORECASE | re.DOTALL)
"""A property with a password, also one whose name is misspelt."""


OTHERS = ("-p", "-P", "--create-table")


@dataclass(frozen=True)
class Command:
    """A parsed command line."""

    action: Literal["load", "run"]
    properties: dict[str, str]
    words: tuple[str, ...]
    """The words as given, without the password."""
    create_table: bool = False
    remarks: tuple[str, ...] = field(default=())
    """Messages about options without effect."""


def parse(arguments: Sequence[str]) -> Command:
    """Parse a command line. Raises StudyError with the name of an unsupported option."""
    reader = _Reader(arguments)
    reader.all()
    action = _action(reader)
    return Command(
        action=action,
        # YCSB: properties of the command line override those of files, in any order.
        properties={**reader.files, **reader.own},
        words=tuple(_hidden(word) for word in arguments),
        create_table=reader.create_table,
        remarks=tuple(reader.remarks),
    )


def _hidden(word: str) -> str:
    return SECRET.sub(r"\1...", word)


def _action(reader: _Reader) -> Literal["load", "run"]:
    command, *rest = reader.positional or [""]
    if command not in ("load", "run"):
        why = "there is no interactive mode" if command == "shell" else "no such command"
        raise StudyError(f"ycsb {command}: {why}", "allowed: load, run", read=command, allowed=("load", "run"))
    binding, *more = rest or [""]
    if binding not in BINDINGS:
        raise StudyError(
            f"ycsb {command} {binding}: we do not have this binding"
            if binding
            else f"ycsb {command}: no binding is named",
            "allowed: cassandra-cql, which any server with Cassandra's native protocol understands",
            read=binding,
            allowed=BINDINGS[:1],
        )
    if more:
        raise StudyError(f"ycsb: {more[0]!r} belongs to no option", "see steelyard ycsb --help", read=more[0])
    wanted = "false" if command == "load" else "true"
    given = reader.own.get("dotransactions", wanted).lower()
    if given != wanted:
        raise StudyError(f"ycsb {command}: -load, -t or dotransactions={given} say otherwise", "leave them out")
    return "load" if command == "load" else "run"


class _Reader:
    """Reads the words in one pass."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.left = list(arguments)
        self.positional: list[str] = []
        self.files: dict[str, str] = {}
        self.own: dict[str, str] = {}
        self.remarks: list[str] = []
        self.create_table = False

    def all(self) -> None:
        plain = {"-threads": "threadcount", "-target": "target", "-db": "db", "-l": "label"}
        flags = {"-s": ("status", "true"), "-load": ("dotransactions", "false"), "-t": ("dotransactions", "true")}
        while self.left:
            word = self.left.pop(0)
            if word in plain:
                self.own[plain[word]] = self.value(word)
            elif word in flags:
                name, value = flags[word]
                self.own[name] = value
            elif word == "-P":
                self.files.update(properties.read(Path(self.value(word))))
            elif word == "-p":
                self.own_property(self.value(word))
            elif word in ("-cp", "-jvm-args"):
                self.remarks.append(f"{word} {self.value(word)} means nothing here: there is no JVM")
            elif word.startswith("-jvm-args="):
                self.remarks.append(f"{word} means nothing here: there is no JVM")
            elif word == "--create-table":
                self.create_table = True
            elif word.startswith("-"):
                message = f"the option {_hidden(word)} is refused: we do not have it"
                near = difflib.get_close_matches(word, [*plain, *flags, *OTHERS], n=1)
                hint = f"did you mean {near[0]}? See" if near else "see"
                raise StudyError(message, f"{hint} steelyard ycsb --help", read=_hidden(word))
            else:
                self.positional.append(word)

    def value(self, option: str) -> str:
        if not self.left:
            raise StudyError(f"the option {option} lacks its value", "see steelyard ycsb --help", read=option)
        return self.left.pop(0)

    def own_property(self, text: str) -> None:
        name, equals, value = text.partition("=")
        if not equals:
            raise StudyError(f"-p {text}: not NAME=VALUE", "write it as -p operationcount=99999", read=text)
        self.own[name] = value
