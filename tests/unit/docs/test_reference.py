"""The reference of study files and of workload files has every key that their models have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from tools.docs import study_file, workload_file

from steelyard.study import schema as study_schema
from steelyard.workload._models import File

SCHEMA = study_schema.schema()
TABLES_OF_USERS = {
    "levels": "levels.FACTOR.LEVEL", "probe": "probe.NAME", "derived": "derived.NAME", "factors": "", "treatments": "",
    "base": "",
}  # fmt: skip
"""Keys whose names the user chooses: the section of the reference that describes one of them, if it is a table."""


def sections(page: str) -> dict[str, set[str]]:
    """Keys of the rows below each heading; a heading without its marks."""
    found: dict[str, set[str]] = {"": set()}
    heading = ""
    for line in page.splitlines():
        if line.startswith("#"):
            heading = line.strip("#` []")
            found[heading] = set()
        elif row := re.match(r"\| `([^`]+)` \|", line):
            found[heading].add(row[1])
    return found


PAGE = sections(study_file.text())


def models(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Objects with named keys that a value may be."""
    if "$ref" in node:
        yield from models(SCHEMA["$defs"][node["$ref"].rpartition("/")[2]])
    for choice in node.get("anyOf", ()):
        yield from models(choice)
    if "items" in node:
        yield from models(node["items"])
    if "properties" in node:
        yield node


def of_plug_in(title: str) -> str:
    """The heading of the settings of `site docker`, which may stand there with others; empty if there is none."""
    seam, _, name = title.removeprefix("load_").partition(" ")
    return next((heading for heading in PAGE if heading.startswith(f"{seam} `") and f"`{name}`" in f"{heading}`"), "")


def undescribed(node: dict[str, Any], place: str, heading: str) -> Iterator[str]:
    """Dotted keys below a place that neither a row nor a section of the page describes."""
    for model in models(node):
        rows = PAGE.get(heading, set()) | PAGE[of_plug_in(model.get("title", ""))]
        rows |= PAGE["client"] if heading == "load" else set()
        for key, value in model["properties"].items():
            inner = f"{place}.{key}" if place else key
            section = TABLES_OF_USERS.get(key) or of_plug_in(inner.replace(".", " ")) or inner
            if section in PAGE:
                yield from undescribed(value, inner, section)
            elif key not in rows and key not in TABLES_OF_USERS:
                yield inner


def test_every_key_of_the_schema_is_in_the_reference_of_study_files() -> None:
    top = {key for key in SCHEMA["properties"] if key not in PAGE["Keys before the first table"]}
    assert {"study", "design", "server_warm_up", "limits"} <= top
    assert [key for key in top if TABLES_OF_USERS.get(key, key) not in PAGE and key != "factors"] == []
    assert list(undescribed(SCHEMA, "", "Keys before the first table")) == []


def test_a_key_that_the_page_lacks_is_found() -> None:
    planted = {"properties": {"server_warm_up": {"properties": {"deadline_s": {}, "patience": {}}}, "novel": {}}}
    assert list(undescribed(planted, "", "")) == ["server_warm_up.patience", "novel"]


def test_every_key_of_the_models_is_in_the_reference_of_workload_files() -> None:
    page = workload_file.text()
    rows = set().union(*sections(page).values())
    described = {key for key in keys(File) if f"[{key}]" in page or f"[{key}." in page or f"## {key}\n" in page.lower()}
    assert keys(File) - rows - described == {"steps"}
    assert "statements of an operation" in page.lower()


def keys(model: type[BaseModel]) -> set[str]:
    """Keys of a model and of those within it."""
    schema = model.model_json_schema()
    inner = (part.get("properties", {}) for part in schema.get("$defs", {}).values())
    return set(schema["properties"]).union(*inner)
