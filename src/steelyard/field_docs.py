"""Docstrings of the fields of models and dataclasses, read from the source when they are asked for: to read all of them
whenever Steelyard starts would take a quarter of that time."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaValue


@cache
def field_docs(model: type) -> Mapping[str, str]:
    """Meaning of each field: the description that it was given; without one, the docstring below it, in the class or
    the nearest base that has one. Fields without either are left out."""
    docs: dict[str, str] = {}
    for kind in reversed(model.__mro__[:-1]):
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if file is not None and kind is not BaseModel:
            docs |= _of_file(file).get(kind.__qualname__, {})
    given: dict[str, str | None] = {}
    if issubclass(model, BaseModel):
        given = {name: field.description for name, field in model.model_fields.items()}
    elif dataclasses.is_dataclass(model):
        given = dict.fromkeys(field.name for field in dataclasses.fields(model))
    return {name: text for name, says in given.items() if (text := says or docs.get(name))}


def described(schema: JsonSchemaValue, model: type) -> JsonSchemaValue:
    """The JSON schema of a model, its properties with the docstrings of the fields."""
    for name, text in field_docs(model).items():
        if name in schema.get("properties", {}):
            schema["properties"][name].setdefault("description", text)
    return schema


@cache
def _of_file(file: str) -> Mapping[str, Mapping[str, str]]:
    """Docstrings by qualified name of the class and by field."""
    try:
        return dict(_classes(ast.parse(Path(file).read_bytes()), ""))
    except (OSError, SyntaxError):
        return {}


def _classes(tree: ast.AST, path: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield path + node.name, dict(_fields(node))
            yield from _classes(node, f"{path}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _classes(node, f"{path}{node.name}.<locals>.")
        elif isinstance(node, ast.stmt):
            yield from _classes(node, path)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Each annotated name that is followed by a text."""
    for field, after in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            text = after.value.value if isinstance(after.value, ast.Constant) else None
            if isinstance(text, str):
                yield field.target.id, inspect.cleandoc(text)
