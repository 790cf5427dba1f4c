"""Error messages about TOML files: file, line, value, allowed values, the nearest valid name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from steelyard.model.errors import StudyError
from steelyard.model.file_format import OTHER_FORMAT, READS
from steelyard.model.one_of import OneOf
from steelyard.model.responses import SHORT_NAMES
from steelyard.model.secret import redacted
from steelyard.tomlfile.fields import lookup

LONGEST_READ = 60
MOST_ALLOWED = 12
"""Most valid names to list if there is a near one."""
NAMES = r"^[a-z0-9][a-z0-9_.-]{0,63}$"
"""The pattern of names that become names of folders."""
BOUNDS = {
    "greater_than_equal": ("ge", "must be at least {}"),
    "greater_than": ("gt", "must be more than {}"),
    "less_than_equal": ("le", "must be at most {}"),
    "less_than": ("lt", "must be less than {}"),
    "string_pattern_mismatch": ("pattern", "must match {}"),
}
KINDS = {
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    OTHER_FORMAT: f"this version reads {READS}",
}

OF_OTHER_FORMAT = "use the version of Steelyard that it was written for, or rewrite it for this one"


class Missing:
    """Marks a key that is missing."""


def problem(
    key: str, read: object, what: str, allowed: Sequence[str] = (), *, near: bool = True, hint: str = ""
) -> StudyError:
    """One error, not yet located in its file. `allowed`: valid names to replace what was read, or the end of the
    key."""
    read = redacted(read, key) if isinstance(read, (str, int, float, list, tuple)) else read
    wrong = str(read) if isinstance(read, str) and "no such key" not in what else key.rpartition(".")[2]
    ends = {name.rpartition(".")[2]: name for name in reversed(allowed)}
    ends |= {short: name for short, name in SHORT_NAMES.items() if name in allowed}
    close = difflib.get_close_matches(wrong, [*allowed, *ends], n=1, cutoff=0.5) if near else []
    close = [ends.get(name, name) for name in close]
    tail = f"; did you mean {close[0]!r}?" if close else ""
    if allowed and not (close and len(allowed) > MOST_ALLOWED):
        tail += f"{'' if close else ';'} allowed: {', '.join(allowed)}"
    shown = "" if isinstance(read, (Missing, Mapping)) else f" = {_shorten(read)}"
    return StudyError(f"{key}{shown}: {what}{tail}", hint, key=key, read=read, allowed=allowed)


def _shorten(read: object) -> str:
    text = str(read).lower() if isinstance(read, bool) else repr(read) if isinstance(read, str) else str(read)
    return text if len(text) <= LONGEST_READ else text[:LONGEST_READ] + "..."


def from_validation(
    error: ValidationError, prefix: str, model: type[BaseModel], also: Sequence[str] = ()
) -> list[StudyError]:
    """pydantic's errors in our words. `prefix`: dotted key of the table; `also`: further keys allowed in it."""
    return [_translate(details, prefix, model, also) for details in error.errors(include_url=False)]


def _translate(details: ErrorDetails, prefix: str, model: type[BaseModel], also: Sequence[str]) -> StudyError:
    location = [str(part) for part in details["loc"]]
    key = ".".join([prefix, *location] if prefix else location)
    kind, read, facts = details["type"], details["input"], details.get("ctx", {})
    if kind == "extra_forbidden":
        inner = _model_at(model, _fields(location[:-1]))
        names = tuple(inner.model_fields) if inner else ()
        return problem(key, read, "no such key", (*names, *(also if len(location) == 1 else ())))
    if kind == "missing":
        return problem(key, Missing(), "must be given")
    if kind == "literal_error":
        field = lookup(model, _fields(location)) if location else None
        choices = _choices(field) if field else ()
        return problem(key, read, "not allowed", choices or (str(facts["expected"]),))
    if kind in BOUNDS:
        name, text = BOUNDS[kind]
        return problem(key, read, _as_name(str(read)) if facts[name] == NAMES else text.format(facts[name]))
    if kind == "value_error":
        return problem(key, Missing() if isinstance(read, Mapping) else read, str(facts["error"]))
    text = KINDS.get(kind, details["msg"].replace("Input should be", "must be"))
    hint = OF_OTHER_FORMAT if kind == OTHER_FORMAT else ""
    return problem(key, read, f"{text}{_range(lookup(model, _fields(location)) if location else None)}", hint=hint)


def _range(field: FieldInfo | None) -> str:
    """`, at least 1 and at most 9`: the bounds of a number; empty if it has none."""
    bounds = []
    for item in field.metadata if field else ():
        for name, text in BOUNDS.values():
            if name != "pattern" and getattr(item, name, None) is not None:
                bounds.append(text.removeprefix("must be ").format(getattr(item, name)))
    return f", {' and '.join(bounds)}" if bounds else ""


def _as_name(read: str) -> str:
    """Rule for a name, with the nearest valid one."""
    near = re.sub(r"[^a-z0-9_.]+", "-", read.lower()).strip("-_.")[:64]
    return f"must be lower-case letters, digits, '_', '.' and '-', 64 at most{f'; try {near!r}' if near else ''}"


def _choices(field: FieldInfo) -> tuple[str, ...]:
    """The allowed values of a field that has only a few, or of each item of a list."""
    items = [marker for item in get_args(field.annotation) for marker in getattr(item, "__metadata__", ())]
    known = next((marker for marker in (*field.metadata, *items) if isinstance(marker, OneOf)), None)
    return tuple(known.names()) if known else tuple(str(choice) for choice in get_args(field.annotation))


def _fields(location: Sequence[str]) -> list[str]:
    """The field names of a location, without list indexes."""
    return [part for part in location if not part.isdigit()]


def _model_at(model: type[BaseModel], location: Sequence[str]) -> type[BaseModel] | None:
    if not location:
        return model
    field = lookup(model, location)
    annotation: Any = field.annotation if field else None
    models = (
        one for one in (annotation, *get_args(annotation)) if isinstance(one, type) and issubclass(one, BaseModel)
    )
    return next(models, None)


def placed(error: StudyError, path: str, line: int) -> StudyError:
    """The same error with its location prepended: `studies/x.toml:14: ...`."""
    where = ":".join([*([path] if path else []), *([str(line)] if line else [])])
    return StudyError(
        f"{where}: {error.message}" if where else error.message,
        error.hint,
        path=path,
        line=line,
        key=error.key,
        read=error.read,
        allowed=error.allowed,
    )


def raise_all(errors: Iterable[StudyError], path: str, find_line: Callable[[str], int]) -> None:
    """Raise all errors at once, located and in file order. Does nothing without errors."""
    raise_located([placed(error, path, find_line(error.key)) for error in errors], path)


def raise_located(errors: Iterable[StudyError], path: str) -> None:
    """The same for errors that have their lines."""
    unique = sorted({error.message: error for error in errors}.values(), key=lambda error: error.line)
    if len(unique) == 1:
        raise unique[0]
    if unique:
        first = unique[0]
        raise StudyError(
            "\n".join(error.message for error in unique),
            f"{len(unique)} errors",
            path=path,
            line=first.line,
            key=first.key,
            read=first.read,
            allowed=first.allowed,
            errors=unique,
        )
