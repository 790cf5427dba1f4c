"""Workload files: read TOML, report each error with its line, create a plug-in of kind `workload`.

A study names the file (`workload.name = "sensors.toml"`, relative to the study); its records, weights and parameters
are settings of the workload, so each can be a factor. A hash of the file's content is also a setting: an edited file is
another treatment.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from pydantic import Field, ValidationError, create_model, field_validator, model_validator

from steelyard.field_docs import field_docs
from steelyard.model.data_model import Schema
from steelyard.model.errors import StudyError
from steelyard.model.named_level import Level
from steelyard.model.value import Value
from steelyard.tomlfile.parse import parsed, text_of
from steelyard.tomlfile.positions import key_lines, line_of
from steelyard.tomlfile.problems import from_validation, problem, raise_all
from steelyard.tomlfile.validated import validated
from steelyard.wire.order import CQL
from steelyard.wire.program import Program
from steelyard.workload._compile import Compiled, compiled
from steelyard.workload._models import MOST_RECORDS, Column, DeclaredTable, File, Operation, Populate, Statement, Step
from steelyard.workload.base import Explanation

PARAMETER = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
PARAMETER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
TAKEN = ("name", "records", "validate_fraction", "insert_lag", "weights", "digest")
DIGEST_DIGITS = 16
HARD: dict[str, Any] = {"easy": False}
EASY: dict[str, Any] = {"easy": True}


@dataclass(frozen=True)
class Source:
    """A parsed workload file: its TOML, the lines of its keys, its parameters and its settings."""

    path: str
    raw: Mapping[str, Any]
    lines: Mapping[str, int]
    parameters: Mapping[str, Level]
    digest: str
    plain: File = field(repr=False)
    """The file with every parameter at its default."""

    def file(self, parameters: Mapping[str, Level]) -> File:
        """The file with these values of its parameters. Raises StudyError."""
        return _valid(_put_in(self.raw, {**self.parameters, **parameters}), self.path, self.lines)

    def place(self, key: str) -> int:
        """Line of a key, otherwise of its nearest table."""
        return line_of(dict(self.lines), key)

    def hard(self, parameter: str) -> bool:
        """Whether the filled data or the tables depend on a parameter: whether it is used anywhere other than in an
        operation or a statement that fills nothing."""
        if self.plain.populate:
            filling = {name for step in self.plain.populate.each() for name in (step.statement, *step.batch)}
        else:
            inserts = (name for name, one in self.plain.statements.items() if one.cql.lstrip()[:6].lower() == "insert")
            filling = set(inserts)
        for key, name in _uses(self.raw):
            top, _, rest = key.partition(".")
            easy = top in ("operations", "validate_fraction", "insert_lag", "clustering")
            easy = easy or (top == "statements" and rest.partition(".")[0] not in filling)
            if name == parameter and not easy:
                return True
        return False


def read(path: Path) -> Source:
    """Read and check a workload file. Raises StudyError; see its `errors`."""
    return read_text(text_of(path, "workload file"), str(path))


def read_text(text: str, path: str = "") -> Source:
    """Like `read`; `path` is only for messages."""
    raw = parsed(text, path)
    lines = key_lines(text)
    errors = [*_parameter_problems(raw), *_normalise(raw)]
    raise_all(errors, path, lambda key: line_of(lines, key))
    parameters = dict(raw.get("parameters", {}))
    plain = _valid(_put_in(raw, parameters), path, lines)
    content = {key: value for key, value in raw.items() if key != "about"}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:DIGEST_DIGITS]
    source = Source(path, raw, lines, parameters, digest, plain)
    _compiled(source, plain, _defaults(source))
    return source


def _valid(raw: Mapping[str, Any], path: str, lines: Mapping[str, int]) -> File:
    try:
        return validated(File, raw)
    except ValidationError as error:
        problems = [_nearer(one) for one in from_validation(error, "", File)]
        raise_all(problems, path, lambda key: line_of(dict(lines), key))
        raise


MODELS: tuple[tuple[str, type[Value]], ...] = (
    ("of", Column),
    ("values", Column),
    ("columns", Column),
    ("types", Column),
    ("tables", DeclaredTable),
    ("statements", Statement),
    ("steps", Step),
    ("operations", Operation),
    ("populate", Populate),
)
"""The model that a key belongs to, selected by the first of these words in the key."""


def _nearer(error: StudyError) -> StudyError:
    """The error for an unknown key in a table, with the keys that it allows."""
    parts = error.key.split(".")[:-1]
    model = next((model for word, model in MODELS if word in parts), None)
    if model is None or "no such key" not in error.message:
        return error
    return problem(error.key, error.read, "no such key", tuple(model.model_fields))


def _normalise(raw: dict[str, Any]) -> Iterator[StudyError]:
    """Expand short forms, in place."""
    for name in ("tables", "types", "statements"):
        if name in raw and not isinstance(raw[name], dict):
            yield problem(name, raw[name], "must be a table")
            raw[name] = {}
    for table in raw.get("tables", {}).values():
        if isinstance(table, dict):
            _normalise_table(table)
    for name, fields in raw.get("types", {}).items():
        if isinstance(fields, dict):
            raw["types"][name] = {field_: _column(spec) for field_, spec in fields.items()}
    for name, statement in raw.get("statements", {}).items():
        if isinstance(statement, str):
            raw["statements"][name] = {"cql": statement}
        elif isinstance(statement, dict) and isinstance(statement.get("values"), dict):
            statement["values"] = {label: _marker(spec) for label, spec in statement["values"].items()}
    if isinstance(raw.get("populate"), str):
        raw["populate"] = {"statement": raw["populate"]}
    operations = raw.get("operations")
    for steps in [raw.get("populate"), *(operations if isinstance(operations, list) else ())]:
        if isinstance(steps, dict) and isinstance(steps.get("steps"), list):
            steps["steps"] = [{"statement": one} if isinstance(one, str) else one for one in steps["steps"]]


def _normalise_table(table: dict[str, Any]) -> None:
    if isinstance(table.get("columns"), dict):
        table["columns"] = {name: _column(spec) for name, spec in table["columns"].items()}
    if isinstance(table.get("primary_key"), list):
        table["primary_key"] = ", ".join(map(str, table["primary_key"]))


def _column(spec: Any) -> Any:
    """Expand a type alone to a table with this type."""
    if isinstance(spec, str):
        return {"type": spec}
    if isinstance(spec, dict) and "of" in spec:
        given = spec["of"] if isinstance(spec["of"], list) else [spec["of"]]
        return {**spec, "of": [_column({} if one == "" else one) for one in given]}
    return spec


def _marker(spec: Any) -> Any:
    """Expand a number or a text to a distribution to draw from."""
    if isinstance(spec, (int, float, str)) and not isinstance(spec, bool):
        return {"make": "draw", "number": spec}
    return _column(spec)


def _parameter_problems(raw: Mapping[str, Any]) -> Iterator[StudyError]:
    parameters = raw.get("parameters", {})
    if not isinstance(parameters, dict):
        yield problem("parameters", parameters, "must be a table of names and values")
        return
    used = {name for _, name in _uses(raw)}
    for name, value in parameters.items():
        key = f"parameters.{name}"
        if not PARAMETER_NAME.fullmatch(name) or name in TAKEN or hasattr(FileSettings, name):
            yield problem(key, value, f"not allowed as the name of a parameter, nor are {', '.join(TAKEN)}")
        elif not isinstance(value, (str, int, float, bool)):
            yield problem(key, value, "must be text, a number, true or false")
        elif name not in used:
            yield problem(key, value, f"is not used: '${name}' appears nowhere in this file")
    for key, name in _uses(raw):
        if name not in parameters:
            yield problem(key, f"${name}", "unknown parameter", tuple(f"${known}" for known in parameters))


def _uses(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Dotted key and name of every use of a parameter."""
    pending: list[tuple[str, Any]] = [(key, value) for key, value in raw.items() if key not in ("parameters", "about")]
    while pending:
        key, value = pending.pop()
        if isinstance(value, dict):
            pending += [(f"{key}.{name}", inner) for name, inner in value.items()]
        elif isinstance(value, list):
            pending += [(f"{key}.{index}", inner) for index, inner in enumerate(value)]
        elif isinstance(value, str):
            for name in PARAMETER.findall(value.replace("$$", "")):
                yield key, name


def _put_in(raw: Mapping[str, Any], parameters: Mapping[str, Level]) -> dict[str, Any]:
    """The TOML with parameters replaced by values; `"$name"` alone becomes the value itself, with its type."""

    def put(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: put(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [put(inner) for inner in value]
        if not isinstance(value, str) or "$" not in value:
            return value
        alone = PARAMETER.fullmatch(value)
        if alone and alone[1] in parameters:
            return parameters[alone[1]]
        return PARAMETER.sub(lambda found: _text(parameters.get(found[1], found[0])), value)

    return {key: value if key in ("parameters", "about") else put(value) for key, value in raw.items()}


def _text(value: Level) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class FileSettings(Value):
    """Settings that every workload file offers to a study."""

    weights: dict[str, float] = Field(default_factory=dict, validate_default=True, json_schema_extra=EASY)
    """Shares of the operations by name; each replaces the file's."""

    @classmethod
    def source(cls) -> Source:
        """The file that the settings belong to."""
        raise NotImplementedError

    @field_validator("weights")
    @classmethod
    def _every_weight(cls, given: dict[str, float]) -> dict[str, float]:
        known = {operation.name: operation.weight for operation in cls.source().plain.operations}
        for name, weight in given.items():
            if name not in known:
                raise ValueError(f"unknown operation {name!r}; allowed: {', '.join(known)}")
            if weight < 0:
                raise ValueError(f"the weight of {name} must be at least 0, not {weight:g}")
        return {**known, **given}

    @model_validator(mode="after")
    def _compiles(self) -> Self:
        source = self.source()
        digest = getattr(self, "digest", source.digest)
        if digest != source.digest:
            raise ValueError(f"{source.path} has been edited: its digest is {source.digest}, not {digest}")
        try:
            workload(source, self)
        except StudyError as error:
            raise ValueError(error.message) from error
        return self


def settings_model(source: Source) -> type[FileSettings]:
    """The settings of a file: records, validate_fraction, weights, and each of its parameters."""
    plain = source.plain

    class Bound(FileSettings):
        @classmethod
        def source(cls) -> Source:
            return source

    fields: dict[str, Any] = {
        "records": (int, _setting("records", plain.records, HARD, MOST_RECORDS)),
        "validate_fraction": (float, _setting("validate_fraction", plain.validate_fraction, EASY, 1)),
        "insert_lag": (int | None, _setting("insert_lag", plain.insert_lag, EASY, MOST_RECORDS)),
        "digest": (str, Field(source.digest, json_schema_extra=HARD, description="Hash of the file's contents.")),
    }
    for name, default in source.parameters.items():
        extra = HARD if source.hard(name) else EASY
        says = f"Parameter of {plain.name}."
        fields[name] = (type(default), Field(default, json_schema_extra=extra, description=says))
    model: type[FileSettings] = create_model(
        "Settings", __base__=Bound, __doc__=plain.about or f"The workload {plain.name}.", **fields
    )
    return model


def _setting(name: str, default: Any, extra: dict[str, Any], most: int) -> Any:
    says = field_docs(File)[name]
    return Field(default, json_schema_extra=extra, description=says, ge=0, le=most)


class FileWorkload:
    """A workload defined by a file, under its settings."""

    protocols: tuple[str, ...] = (CQL,)

    def __init__(self, name: str, compilation: Compiled) -> None:
        self.name = name
        self.writes = compilation.writes
        self._compilation = compilation

    def schema(self) -> Schema:
        """Keyspace, types, tables, indexes."""
        return self._compilation.schema

    def data(self) -> dict[str, Any]:
        """Number of records, and a hash of the statements that write them and of their values."""
        return {"records": self._compilation.program.records, "fills": self._compilation.fills}

    def order(self) -> Program:
        """The `work` of an order: a program."""
        return self._compilation.program

    def explain(self) -> Explanation:
        """Operations, shares, sizes."""
        return self._compilation.explanation


def _defaults(source: Source) -> dict[str, Any]:
    plain = source.plain
    return {
        "records": plain.records,
        "validate_fraction": plain.validate_fraction,
        "insert_lag": plain.insert_lag,
        "weights": {operation.name: operation.weight for operation in plain.operations},
    }


def workload(source: Source, settings: FileSettings) -> FileWorkload:
    """The workload of a file under its settings. Raises StudyError with file and line."""
    values = {name: getattr(settings, name) for name in ("records", "validate_fraction", "insert_lag", "weights")}
    parameters = {name: getattr(settings, name) for name in source.parameters}
    compilation = _cached(_Hashed(source, parameters, values))
    return FileWorkload(source.plain.name, compilation)


class _Hashed:
    """Arguments of the compiler; equal if the result is."""

    def __init__(self, source: Source, parameters: Mapping[str, Level], values: Mapping[str, Any]) -> None:
        self.source, self.parameters, self.values = source, parameters, values
        self.text = json.dumps([source.path, source.digest, dict(parameters), dict(values)], sort_keys=True)

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and other.text == self.text


@lru_cache(maxsize=64)
def _cached(key: _Hashed) -> Compiled:
    return _compiled(key.source, key.source.file(key.parameters), key.values)


def _compiled(source: Source, file: File, values: Mapping[str, Any]) -> Compiled:
    try:
        return compiled(file, **values)
    except StudyError as error:
        raise_all(error.errors, source.path, source.place)
        raise


def module_of(path: Path) -> ModuleType:
    """The plug-in module of a workload file. Raises StudyError."""
    source = read(path)
    module = ModuleType(f"steelyard_workload_{path.stem}_{source.digest}")
    settings = settings_model(source)

    def create(chosen: FileSettings) -> FileWorkload:
        """The workload under its settings."""
        return workload(source, chosen)

    module.__doc__ = source.plain.about or f"The workload {source.plain.name}."
    module.__dict__.update(Settings=settings, create=create, source=source)
    return module
