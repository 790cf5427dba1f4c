"""Docstrings of fields: of classes anywhere in a file, of bases, and what stands in for them."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType

import pytest
from pydantic import Field, create_model

from steelyard.field_docs import field_docs
from steelyard.model.value import Value


class Base(Value):
    first: int = 1
    """Of the base."""
    second: int = 2
    """Of the base, too,
    in two lines."""
    plain: int = 3
    "a text in one pair of quotes"
    bare: int = 4


class Derived(Base):
    second: int = 5
    third: int = Field(default=6, description="Given.")
    """Not looked at."""

    class Within(Value):
        """A class within a class."""

        deep: str = ""
        """Found as well."""


@dataclass(frozen=True)
class Data:
    one: int
    """Of a dataclass."""
    other: int = 0


def test_docstrings_are_those_of_the_class_or_of_the_nearest_base() -> None:
    assert field_docs(Derived) == {
        "first": "Of the base.",
        "second": "Of the base, too,\nin two lines.",
        "plain": "a text in one pair of quotes",
        "third": "Given.",
    }
    assert field_docs(Derived.Within) == {"deep": "Found as well."}
    assert field_docs(Data) == {"one": "Of a dataclass."}


def test_classes_of_functions_and_of_blocks_are_found() -> None:
    with nullcontext():

        class Local(Value):
            here: int = 1
            """In a function, in a block."""

    assert field_docs(Local) == {"here": "In a function, in a block."}


def test_a_schema_says_what_fields_mean() -> None:
    properties = Derived.model_json_schema()["properties"]
    assert properties["second"]["description"] == "Of the base, too,\nin two lines."
    assert "description" not in properties["bare"]


def test_models_without_a_source_have_what_their_fields_say(monkeypatch: pytest.MonkeyPatch) -> None:
    made = create_model("Made", __base__=Base, more=(int, Field(1, description="Said.")))
    assert field_docs(made)["more"] == "Said."
    assert field_docs(made)["first"] == "Of the base."
    typed = ModuleType("typed_in")
    monkeypatch.setitem(sys.modules, "typed_in", typed)
    exec("from steelyard.model.value import Value\nclass Typed(Value):\n    a: int = 1\n    'lost'\n", vars(typed))
    assert field_docs(typed.Typed) == {}
