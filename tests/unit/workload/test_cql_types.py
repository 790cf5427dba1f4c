"""Types of CQL: what is one, and where what is none goes wrong."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.node import agent
from steelyard.workload import _types

LEAVES = [name for name in _types.SIMPLE if name != "counter"]
TYPES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        inner.map("list<{}>".format),
        inner.map("frozen<set< {} >>".format),
        st.tuples(inner, inner).map(lambda pair: f"MAP<{pair[0]},{pair[1]}>"),
        st.lists(inner, min_size=1, max_size=3).map(lambda members: f"tuple<{', '.join(members)}>"),
        st.tuples(inner, st.integers(1, 8192)).map(lambda pair: f"vector<{pair[0]}, {pair[1]}>"),
    ),
    max_leaves=5,
)


@given(TYPES)
def test_every_type_is_read_and_written_so_that_it_is_read_again(text: str) -> None:
    found = _types.parse(text)
    assert _types.parse(found.wire()) == found


@given(TYPES, st.sampled_from(["<", ">", ",", "<>", " x", "'", "1"]))
def test_what_stands_behind_a_type_is_refused_at_its_place(text: str, more: str) -> None:
    with pytest.raises(_types.TypeProblem) as caught:
        _types.parse(text + more)
    assert 1 <= caught.value.position <= len(text + more) + 1
    assert f"at character {caught.value.position}: " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("", 1, "a type expected"),
        ("txt", 1, "did you mean 'text'?"),
        ("list<txt>", 6, "did you mean 'text'?"),
        ("list", 5, "'<' expected"),
        ("list<int", 9, "',' or '>' expected"),
        ("map<int>", 1, "map needs 2 types, not 1"),
        ("set<int, int>", 1, "set needs 1 type, not 2"),
        ("tuple<>", 7, "a type expected"),
        ("vector<float>", 13, "',' expected"),
        ("vector<float, 0>", 15, "1 to 8192"),
        ("list<counter>", 6, "counters cannot be within"),
        ("int int", 5, "the end expected"),
        ("list<" * 20 + "int" + ">" * 20, 86, "more than 16 types"),
        ("address", 1, "unknown type 'address'"),
    ],
)
def test_the_position_and_what_is_allowed_are_said(text: str, position: int, says: str) -> None:
    with pytest.raises(_types.TypeProblem, match="at character") as caught:
        _types.parse(text)
    assert caught.value.position == position
    assert says in str(caught.value)


def test_a_user_defined_type_is_a_tuple_on_the_wire() -> None:
    address = _types.CqlType("address", (_types.parse("text"), _types.parse("int")), fields=("street", "number"))
    found = _types.parse("map<text, frozen<address>>", {"address": address})
    assert found.wire() == "map<text, frozen<tuple<text, int>>>"


def order_with(types: list[str]) -> dict[str, Any]:
    make = {"kind": "random", "size": {"name": "fixed", "value": 2.0}}
    return {
        "format": 1,
        "contacts": ["127.0.0.1:1"],
        "target": {
            "protocol": "cql",
            "keyspace": "k",
            "read_consistency": "ONE",
            "write_consistency": "ONE",
            "routing": "token",
        },
        "action": "load",
        "work": {
            "kind": "program",
            "records": 1,
            "statements": [
                {
                    "name": "put",
                    "cql": "INSERT",
                    "values": [{"type": text, "make": make} for text in types],
                    "writes": True,
                }
            ],
            "populate": [{"kind": "execute", "statement": "put"}],
            "operations": [
                {
                    "name": "put",
                    "weight": 1.0,
                    "keys": {"kind": "new"},
                    "steps": [{"kind": "execute", "statement": "put"}],
                }
            ],
        },
        "seed": 1,
        "schedule": {"kind": "closed", "threads": 1},
        "stop": {"operations": 1, "duration_s": None},
        "timeout_ms": 1000,
        "interval_s": 1.0,
    }


def accepted(folder: Path, types: list[str]) -> subprocess.CompletedProcess[str]:
    path = folder / "order.json"
    path.write_text(json.dumps(order_with(types)))
    argv = [str(agent.find()), "ops", "--order", str(path), "--count", "1", "--values"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.agent
@settings(max_examples=8, deadline=None)
@given(st.lists(TYPES.map(lambda text: _types.parse(text).wire()), min_size=20, max_size=20))
def test_the_agent_takes_what_we_take(tmp_path_factory: pytest.TempPathFactory, types: list[str]) -> None:
    small = [text for text in types if "vector" not in text]
    done = accepted(tmp_path_factory.mktemp("types"), small)
    assert done.returncode == 0, done.stderr


@pytest.mark.agent
@pytest.mark.parametrize("text", ["", "txt", "list", "map<int>", "vector<float, 0>", "vector<float, 8193>", "int int"])
def test_the_agent_refuses_what_we_refuse(tmp_path: Path, text: str) -> None:
    with pytest.raises(_types.TypeProblem):
        _types.parse(text)
    done = accepted(tmp_path, [text])
    assert done.returncode != 0
    assert "type" in done.stderr
