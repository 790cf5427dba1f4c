"""Compiler of workload files: the agent's program, the system's tables, and an explanation for people."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steelyard.model import cql_statement
from steelyard.model.cql_statement import LIMITS, Marker
from steelyard.model.data_model import Schema, quoted
from steelyard.model.errors import StudyError
from steelyard.tomlfile.problems import Missing, problem
from steelyard.wire.program import Program
from steelyard.workload import _models, _tables, _types
from steelyard.workload._distributions import CHOOSERS, bounds, distribution, mean, short_form
from steelyard.workload._tables import Json, TableInfo
from steelyard.workload.base import Explanation, OperationShape

DEFAULT_PAGES = 100
ONCE = {"name": "fixed", "value": 1.0}
CERTAIN = ("key", "fixed")
"""Values that are functions of the key alone, the same for all of its rows."""
COMPARABLE = ("key", "fixed", "random")
IDENTIFYING = (*COMPARABLE, "row")
"""Values of a primary key that identify the row. With many rows per key, they also depend on the row."""


@dataclass(frozen=True)
class Compiled:
    """A file compiled under its settings."""

    schema: Schema
    program: Program
    """The `work` of an order."""
    fills: str
    """Hash of everything that determines the filled rows, except their number."""
    explanation: Explanation
    writes: bool


@dataclass(frozen=True)
class _Statement:
    """A parsed statement with its table and marker values."""

    reading: cql_statement.Reading
    table: TableInfo
    markers: tuple[Json, ...]
    own: tuple[bool, ...]
    """For each marker, whether it has its column's default value."""
    spec: _models.Statement


def compiled(
    file: _models.File,
    *,
    records: int,
    validate_fraction: float,
    insert_lag: int | None,
    weights: Mapping[str, float],
) -> Compiled:
    """Compile a file. Raises a StudyError whose `errors` have keys of the file."""
    errors: list[StudyError] = []
    compilation = _Compiler(file, errors).compile(records, validate_fraction, insert_lag, weights)
    if errors or compilation is None:
        raise StudyError("\n".join(error.message for error in errors), errors=errors)
    return compilation


class _Compiler:
    def __init__(self, file: _models.File, errors: list[StudyError]) -> None:
        self.file = file
        self.errors = errors
        self.refuse = errors.append
        self.keyspace = file.keyspace or file.name.replace("-", "_").lower()
        self.types, type_specs = _tables.types_of(file, self.refuse)
        self.makes = _tables.Maker(type_specs, self.refuse)
        self.tables: dict[str, TableInfo] = {}
        self.asked = []
        for name, table in file.tables.items():
            info, asked = _tables.table_of(name, table, self.types, self.makes, self.refuse)
            if info is not None and asked is not None:
                self.tables[name] = info
                self.asked.append(asked)
        self.statements: dict[str, _Statement] = {}

    def compile(
        self, records: int, validate_fraction: float, insert_lag: int | None, weights: Mapping[str, float]
    ) -> Compiled | None:
        if not self.errors:
            for name, spec in self.file.statements.items():
                self._statement(name, spec)
        populate, stride = self._populate(records)
        operations = [self._operation(index, each) for index, each in enumerate(self.file.operations)]
        self._weights(weights)
        for index, operation in enumerate(operations):
            if records == 0 and operation["keys"]["kind"] == "existing" and weights.get(operation["name"], 0) > 0:
                what = "chooses an existing record, but records is 0: use new or a distribution of numbers"
                self.refuse(problem(f"operations.{index}.keys", self.file.operations[index].keys, what))
        if self.errors:
            return None
        for operation in operations:
            operation["weight"] = float(weights[operation["name"]])
        statements = {name: self._statement_fields(name) for name in self.statements}
        program: Json = {
            "kind": "program",
            "records": records,
            "statements": list(statements.values()),
            "populate": populate,
            "populate_stride": stride,
            "operations": operations,
            "clustering": self.file.clustering,
            "validate_fraction": validate_fraction,
            "insert_lag": insert_lag,
            "value_seed": 0,
        }
        filling = [self._fills(name) for step in populate for name in _names(step)]
        fills = json.dumps([populate, stride, filling], sort_keys=True)
        return Compiled(
            schema=self._schema(),
            program=Program.model_validate(program),
            fills=hashlib.sha256(fills.encode()).hexdigest()[:16],
            explanation=self._explanation(program, populate, stride),
            writes=any(
                self.statements[name].reading.writes
                for operation in operations
                if operation["weight"] > 0
                for step in operation["steps"]
                for name in _names(step)
            ),
        )

    def _schema(self) -> Schema:
        return Schema(
            keyspace=self.keyspace,
            table=self.asked[0].name,
            tables=tuple(self.asked),
            types=tuple(
                (name, ", ".join(f"{quoted(field)} {spec.type}" for field, spec in fields.items()))
                for name, fields in self.file.types.items()
            ),
        )

    def _statement(self, name: str, spec: _models.Statement) -> None:
        key = f"statements.{name}"
        try:
            reading = cql_statement.read(spec.cql)
        except cql_statement.CqlProblem as error:
            self.refuse(problem(f"{key}.cql", Missing(), str(error)))
            return
        table = self.tables.get(reading.table)
        if table is None:
            self.refuse(problem(f"{key}.cql", reading.table, "is not a table of this file", tuple(self.tables)))
            return
        unknown = [one for one in (*reading.inserted, *reading.assigned) if one not in table.columns]
        unknown += [one for one in reading.selected or () if one not in table.columns]
        for column in dict.fromkeys(unknown):
            self.refuse(problem(f"{key}.cql", column, f"is not a column of {table.name}", tuple(table.columns)))
        if reading.writes and (spec.page_rows or spec.max_pages or spec.wants_row is not None):
            self.refuse(problem(key, Missing(), "page_rows, max_pages and wants_row apply only to a SELECT"))
        if unknown:
            return
        markers = [self._marker(name, spec, table, marker) for marker in reading.markers]
        labels = tuple(dict.fromkeys(marker.name for marker in reading.markers))
        for label in spec.values:
            if label not in labels:
                self.refuse(problem(f"{key}.values.{label}", Missing(), "is not a marker of the statement", labels))
        if not any(one is None for one in markers):
            own = tuple(self._own(spec, table, marker) for marker in reading.markers)
            self.statements[name] = _Statement(reading, table, tuple(one for one in markers if one), own, spec)

    def _own(self, spec: _models.Statement, table: TableInfo, marker: Marker) -> bool:
        return marker.name not in spec.values and marker.name == marker.column and marker.within in ("", "same")

    def _marker(self, name: str, spec: _models.Statement, table: TableInfo, marker: Marker) -> Json | None:
        """The value of a marker; None, with an error reported, if there is none."""
        key = f"statements.{name}"
        column = table.columns.get(marker.column)
        given = spec.values.get(marker.name)
        if marker.column and column is None:
            self.refuse(problem(f"{key}.cql", marker.column, f"is not a column of {table.name}", tuple(table.columns)))
            return None
        if given is None:
            column = column if self._own(spec, table, marker) else table.columns.get(marker.name)
            if column is not None and marker.relation not in LIMITS and marker.within in ("", "same"):
                return column.value
            what = f"the marker at character {marker.at + 1} has no value: set values.{marker.name}"
            self.refuse(problem(f"{key}.cql", Missing(), what))
            return None
        kind = self._kind(marker, column, given, f"{key}.values.{marker.name}")
        return None if kind is None else self.makes.value(given, kind, f"{key}.values.{marker.name}")

    def _kind(
        self, marker: Marker, column: _tables.ColumnInfo | None, given: _models.Column, key: str
    ) -> _types.CqlType | None:
        """The type of a marker."""
        if given.type:
            return _tables.type_of(given.type, self.types, key, self.refuse)
        if marker.relation in LIMITS:
            return _types.CqlType(LIMITS[marker.relation])
        if column is None:
            self.refuse(problem(key, Missing(), "requires a type: the marker is not compared with a column"))
            return None
        if marker.within == "list":
            return _types.CqlType("list", (column.kind,))
        if marker.within in ("element", "key"):
            members = column.kind.bare.members
            return members[0 if marker.within == "key" else -1] if members else column.kind
        return column.kind

    def _statement_fields(self, name: str) -> Json:
        """The statement in the agent's order."""
        statement = self.statements[name]
        reading, spec = statement.reading, statement.spec
        placed = self._places(statement)
        partition = [placed[column] for column in statement.table.partition if column in placed]
        whole = len(partition) == len(statement.table.partition)
        wants_row = self._wants_row(statement, placed) if spec.wants_row is None else spec.wants_row
        return {
            "name": name,
            "cql": self._qualified(statement),
            "values": list(statement.markers),
            "partition_key": partition if whole else [],
            "writes": reading.writes,
            "consistency": spec.consistency,
            "conditional": reading.conditional,
            "page_rows": spec.page_rows,
            "max_pages": spec.max_pages or (DEFAULT_PAGES if spec.page_rows else 1),
            "wants_row": wants_row,
            "expect": self._expected(statement, placed) if not reading.writes and spec.compare else [],
        }

    def _qualified(self, statement: _Statement) -> str:
        """The statement with its table qualified by the keyspace."""
        return cql_statement.qualified(statement.reading.cql, self.keyspace)

    def _fills(self, name: str) -> Json:
        """The fields of a statement that determine which rows it writes."""
        fields = self._statement_fields(name)
        return {key: fields[key] for key in ("cql", "values")}

    def _places(self, statement: _Statement) -> dict[str, int]:
        """Index of the marker by column, for columns with an equality."""
        return {
            marker.column: index
            for index, marker in enumerate(statement.reading.markers)
            if marker.relation in ("=", "values") and marker.column and not marker.condition and not marker.within
        }

    def _wants_row(self, statement: _Statement, placed: Mapping[str, int]) -> bool:
        """Whether a row must exist: the partition depends on the key alone, and no drawn value restricts the rows."""
        if statement.reading.writes or not all(column in placed for column in statement.table.partition):
            return False
        narrowing = [
            statement.markers[index]["make"]["kind"]
            for index, marker in enumerate(statement.reading.markers)
            if marker.relation not in LIMITS
        ]
        equal = all(marker.relation == "=" for marker in statement.reading.markers if marker.relation not in LIMITS)
        return equal and all(make in (*CERTAIN, "row") for make in narrowing)

    def _expected(self, statement: _Statement, placed: Mapping[str, int]) -> list[Json]:
        """Expected values of the first row, `any` for unknown ones; empty if all are unknown."""
        table = statement.table
        selected = table.in_order() if statement.reading.selected is None else statement.reading.selected
        if not selected:
            return []
        known = (
            column in placed and statement.own[placed[column]] and table.columns[column].make in IDENTIFYING
            for column in table.primary_key
        )
        if not all(known):
            return []
        expected = []
        for name in selected:
            column = table.columns[name]
            certain = name in table.primary_key or self._comparable(table, name)
            expected.append(column.value if certain and column.spec.compare else self._any(column))
        return expected if any(value["make"]["kind"] != "any" for value in expected) else []

    def _any(self, column: _tables.ColumnInfo) -> Json:
        return {"type": column.kind.wire(), "make": {"kind": "any"}}

    def _comparable(self, table: TableInfo, name: str) -> bool:
        """Whether every statement that writes the column writes the value determined by the key (and version)."""
        column = table.columns[name]
        make = column.value["make"]
        if column.make not in COMPARABLE or column.spec.static or column.kind.name == "counter":
            return False
        if make.get("versioned") and column.kind.bare.name not in _types.SIZED:
            return False
        for other in self.statements.values():
            if other.table.name != table.name or not other.reading.writes:
                continue
            own = {
                marker.column
                for marker, is_own in zip(other.reading.markers, other.own, strict=True)
                if is_own and marker.relation in ("values", "set") and not marker.condition
            }
            touched = name in other.reading.assigned or other.reading.verb == "insert"
            if touched and name not in own:
                return False
        return True

    def _steps(self, key: str, steps: _models.Steps) -> list[Json]:
        return [self._step(key, index, step, steps) for index, step in enumerate(steps.each())]

    def _step(self, key: str, index: int, step: _models.Step, steps: _models.Steps) -> Json:
        place = f"{key}.steps.{index}" if steps.steps else key
        names = (step.statement,) if step.statement is not None else step.batch
        for name in names:
            if name not in self.file.statements:
                end = "statement" if step.statement is not None else "batch"
                self.refuse(problem(f"{place}.{end}", name, "unknown statement", tuple(self.file.statements)))
        known = [self.statements[name] for name in names if name in self.statements]
        if step.statement is not None:
            return {"kind": "execute", "statement": step.statement}
        for statement, name in zip(known, names, strict=False):
            if not statement.reading.writes:
                self.refuse(problem(f"{place}.batch", name, "is a SELECT, which is not allowed in a batch"))
        repeat = step.repeat or ONCE
        if bounds(repeat)[0] < 1:
            self.refuse(problem(f"{place}.repeat", Missing(), f"must be at least 1, not {short_form(repeat)}"))
        mode = step.mode or ("counter" if any(one.table.counts for one in known) else "logged")
        return {
            "kind": "batch",
            "statements": list(step.batch),
            "mode": mode,
            "repeat": repeat,
            "next_key": bool(step.next_key),
        }

    def _populate(self, records: int) -> tuple[list[Json], int]:
        given = self.file.populate
        if given is None:
            inserts = [name for name, one in self.statements.items() if one.reading.verb == "insert"]
            if len(inserts) != 1 and not self.errors:
                what = (
                    f"must be given: {len(inserts)} statements are INSERTs, so it is unclear which one fills the tables"
                )
                self.refuse(problem("populate", Missing(), what, tuple(self.file.statements), near=False))
            return [{"kind": "execute", "statement": name} for name in inserts[:1]], 1
        steps = self._steps("populate", given)
        stride = given.stride or 1
        if given.stride is None:
            for step in steps:
                if step.get("next_key") and step["repeat"]["name"] == "fixed":
                    stride = max(stride, int(step["repeat"]["value"]))
        return steps, stride

    def _operation(self, index: int, operation: _models.Operation) -> Json:
        key = f"operations.{index}"
        return {
            "name": operation.name,
            "weight": operation.weight,
            "keys": self._keys(f"{key}.keys", operation.keys),
            "steps": self._steps(key, operation),
        }

    def _keys(self, key: str, text: str) -> Json:
        if text == "new":
            return {"kind": "new"}
        if text in CHOOSERS:
            return {"kind": "existing", "distribution": text}
        if "(" not in text and not text.isdigit():
            forms = ("new", *CHOOSERS, "or a distribution such as 'zipfian(0..999)'")
            self.refuse(problem(key, text, "unknown choice of keys", forms))
            return {"kind": "new"}
        try:
            number = distribution(text)
        except ValueError as error:
            self.refuse(problem(key, text, str(error)))
            return {"kind": "new"}
        if bounds(number)[0] < 0:
            self.refuse(problem(key, text, "keys cannot be negative"))
        return {"kind": "drawn", "number": number}

    def _weights(self, weights: Mapping[str, float]) -> None:
        names = [operation.name for operation in self.file.operations]
        for index, name in enumerate(names):
            if name in names[:index]:
                self.refuse(problem(f"operations.{index}.name", name, "is already the name of another operation"))
        if math.fsum(weights.get(name, 0.0) for name in names) <= 0:
            self.refuse(problem("operations", Missing(), "all weights are 0"))

    def _explanation(self, program: Json, populate: Sequence[Json], stride: int) -> Explanation:
        total = math.fsum(operation["weight"] for operation in program["operations"])
        specs = {operation.name: operation for operation in self.file.operations}
        return Explanation(
            about=self.file.about,
            records=program["records"],
            record_bytes=round(sum(self._bytes(step) for step in populate) / stride),
            filling=_words(populate),
            operations=tuple(
                OperationShape(
                    name=operation["name"],
                    share=operation["weight"] / total,
                    keys=specs[operation["name"]].keys,
                    does=_words(operation["steps"]),
                    kind=self._cost(operation),
                    bytes=round(sum(self._bytes(step) for step in operation["steps"])),
                )
                for operation in program["operations"]
            ),
        )

    def _bytes(self, step: Json) -> float:
        """Approximate bytes of the values in a request."""
        each = sum(_tables.bytes_of(value) for name in _names(step) for value in self.statements[name].markers)
        return each * (mean(step["repeat"]) if step["kind"] == "batch" else 1.0)

    def _cost(self, operation: Json) -> str:
        """The YCSB operation with about the same cost."""
        steps = [self.statements[name] for step in operation["steps"] for name in _names(step)]
        writes = {one.reading.writes for one in steps}
        if len(writes) == 2:
            return "read_modify_write"
        if writes == {True}:
            return "insert" if operation["keys"]["kind"] == "new" else "update"
        return "scan" if any(one.spec.page_rows for one in steps) else "read"


def _names(step: Json) -> list[str]:
    return [step["statement"]] if step["kind"] == "execute" else list(step["statements"])


def _words(steps: Sequence[Json]) -> str:
    """The requests in words."""
    parts = []
    for step in steps:
        if step["kind"] == "execute":
            parts.append(step["statement"])
            continue
        times = "" if step["repeat"] == ONCE else f"{short_form(step['repeat'])} x "
        parts.append(f"{step['mode']} batch of {times}{' + '.join(step['statements'])}")
    return ", then ".join(parts)
