"""Generated part of `docs/reference/system-cassandra.md`: the settings, from their fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from steelyard.field_docs import field_docs
from steelyard.system.cassandra._settings import CassandrasOwn, JvmOption, Settings, TableOption, YamlKey
from tools.docs.marked import cell, with_parts

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "system-cassandra.md"


def settings() -> Iterator[str]:
    """A row for each setting."""
    yield "| setting | default | Cassandra's own | written to | meaning |"
    yield "| --- | --- | --- | --- | --- |"
    for name, field in Settings.model_fields.items():
        own = next((note.text for note in field.metadata if isinstance(note, CassandrasOwn)), "")
        meaning = cell(field_docs(Settings).get(name, "")) + _choices(field)
        cells = (f"`{name}`", _default(field), own, _written_to(name, field), meaning)
        yield f"| {' | '.join(cells)} |"


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    if default is None:
        return "none"
    return f"`{json.dumps(default)}`" if default not in ({}, ()) else "empty"


def _choices(field: FieldInfo) -> str:
    if get_origin(field.annotation) is not Literal:
        return ""
    return f" One of {', '.join(f'`{choice}`' for choice in get_args(field.annotation))}."


def _written_to(name: str, field: FieldInfo) -> str:
    for note in field.metadata:
        if isinstance(note, YamlKey):
            return f"`{note.name}` of `cassandra.yaml`"
        if isinstance(note, JvmOption):
            return f"`{note.text.format('N')}`"
        if isinstance(note, TableOption):
            return f"`{name}` of every table that does not specify its own"
    return ""


PARTS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {"settings": settings}


def page() -> str:
    """The repository's page with its generated part brought up to date."""
    return with_parts(PAGE.read_text(encoding="utf-8"), PARTS)
