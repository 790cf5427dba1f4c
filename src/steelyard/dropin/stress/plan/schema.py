"""CQL that creates and truncates cassandra-stress's keyspace and tables."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.dropin.stress.parse.settings import Settings
from steelyard.model.data_model import Table

TABLES = ("standard1", "counter1")


def quoted(name: str) -> str:
    """A name quoted for CQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string literal of CQL."""
    return "'" + text.replace("'", "''") + "'"


def creations(settings: Settings) -> tuple[str, ...]:
    """CREATE ... IF NOT EXISTS for keyspace, standard1 and counter1, as in cassandra-stress but without COMPACT
    STORAGE, which Cassandra 4 no longer has; either tool reads and writes either form."""
    schema = settings.schema
    replication = _map({"class": schema.strategy, **schema.options})
    keyspace = quoted(schema.keyspace)
    return (
        f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication} AND durable_writes = true",
        *(
            f"CREATE TABLE IF NOT EXISTS {keyspace}.{table.name} ({table.columns}) WITH {_table(settings)}"
            for table in tables_of(settings)
        ),
    )


def tables_of(settings: Settings) -> tuple[Table, ...]:
    """Name and columns of standard1 and counter1."""
    tables = []
    for name, kind in zip(TABLES, ("blob", "counter"), strict=True):
        columns = ", ".join(f"{quoted(column)} {kind}" for column in settings.columns.names)
        tables.append(Table(name, f"key blob PRIMARY KEY, {columns}"))
    return tuple(tables)


def _table(settings: Settings) -> str:
    schema = settings.schema
    # No compression means none, as in cassandra-stress; the server's own default would be LZ4.
    compression = {"class": schema.compression} if schema.compression else {"enabled": "false"}
    parts = [f"compression = {_map(compression)}"]
    if schema.compaction is not None:
        parts.append(f"compaction = {_map({'class': schema.compaction, **schema.compaction_options})}")
    return " AND ".join(parts)


def _map(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{literal(name)}: {literal(value)}" for name, value in values.items()) + "}"


def truncations(keyspace: str, tables: tuple[str, ...] = TABLES) -> tuple[str, ...]:
    """TRUNCATE statements."""
    return tuple(f"TRUNCATE {quoted(keyspace)}.{quoted(table)}" for table in tables)
