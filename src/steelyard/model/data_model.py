"""The data model that a workload asks a system for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

PLAIN_NAME = re.compile(r"[a-z][a-z0-9_]*")


def quoted(name: str) -> str:
    """A name as CQL requires it: in double quotes if it has capitals or other special characters."""
    return name if PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Table:
    """One table in CQL, without keyspace, id and options that the system's settings add."""

    name: str
    columns: str
    """Contents of the parentheses of CREATE TABLE: columns, types, primary key."""
    options: tuple[str, ...] = ()
    """Options after WITH: `CLUSTERING ORDER BY (at DESC)`, `default_time_to_live = 60`."""
    indexes: tuple[str, ...] = ()
    """Text after CREATE INDEX ... ON table: `(tag)`, `(tag) USING 'sai'`."""

    def says(self, option: str) -> bool:
        """Whether the table itself, not the system, sets an option such as `compaction`."""
        return any(re.match(rf"{option}\s*=", text.strip(), re.IGNORECASE) for text in self.options)


@dataclass(frozen=True)
class Schema:
    """Contents of a workload's keyspace: `tables`, or one table with a text key and equal text fields, as in YCSB; or
    `documents`; or `inputs`."""

    keyspace: str = ""
    table: str = ""
    """The first, or only, table."""
    key: str = ""
    fields: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    types: tuple[tuple[str, str], ...] = ()
    """User-defined types, in order of dependency: name, and the contents of the parentheses."""
    documents: tuple[tuple[str, int], ...] = ()
    """Documents of servers that serve documents: path and bytes."""
    inputs: tuple[tuple[str, str, int, int], ...] = ()
    """Inputs of jobs: path, kind, bytes, seed."""

    def all_tables(self) -> tuple[Table, ...]:
        """Every table, including YCSB's."""
        if self.tables:
            return self.tables
        columns = ", ".join([f"{self.key} text PRIMARY KEY", *(f"{field} text" for field in self.fields)])
        return (Table(self.table, columns),)

    def in_sql(self) -> tuple[str, ...]:
        """Statements of SQL that create the tables where they are missing, without keyspace."""
        return tuple(f"CREATE TABLE IF NOT EXISTS {table.name} ({table.columns})" for table in self.all_tables())

    def full_name(self, table: str) -> str:
        """Keyspace and table as CQL writes them."""
        return f"{quoted(self.keyspace)}.{quoted(table)}"

    def create_keyspace(self, replication_factor: int) -> str:
        """The statement that creates the keyspace, with SimpleStrategy."""
        return (
            f"CREATE KEYSPACE IF NOT EXISTS {quoted(self.keyspace)} WITH replication = "
            f"{{'class': 'SimpleStrategy', 'replication_factor': {replication_factor}}}"
        )

    def create_rest(self, more: Callable[[Table], Sequence[str]] = lambda table: ()) -> Iterator[str]:
        """The statements that create types, tables and indexes, in order. `more`: further options for a table."""
        for name, fields in self.types:
            yield f"CREATE TYPE IF NOT EXISTS {self.full_name(name)} ({fields})"
        for table in self.all_tables():
            options = " AND ".join((*more(table), *table.options))
            behind = f" WITH {options}" if options else ""
            yield f"CREATE TABLE IF NOT EXISTS {self.full_name(table.name)} ({table.columns}){behind}"
        for table in self.all_tables():
            for number, index in enumerate(table.indexes):
                name = quoted(f"{table.name}_{number}_index")
                yield f"CREATE INDEX IF NOT EXISTS {name} ON {self.full_name(table.name)} {index}"
