from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.tomlfile.positions import key_lines, line_of

TEXT = '''\
# a comment with [brackets] and = signs
top = "a # b"

[study]            # trailing
question = """
line = 6 is text, not a key
"quoted\\""" ends here"""
'notes' = \'\'\'x
y\'\'\'

[system.yaml]
"memtable.heap" = "64MiB"
inner = { one = 1, two = [1, 2] }

[factors]
site.nodes = [
  1,  # a comment, with a comma
  3,
]
"load.threads" = [1, 2]

[[design.treatments]]
nodes = 1
[[design.treatments]]
nodes = 3
[design.treatments.extra]
deep = true
[other]
listed = [{ nodes = 1 },
          { nodes = 2, workload = "x" }]
'''

EXPECTED = {
    "top": 2,
    "study": 4,
    "study.question": 5,
    "study.notes": 8,
    "system.yaml": 11,
    "system.yaml.memtable.heap": 12,
    "system.yaml.inner.two": 13,
    "system.yaml.inner.two.1": 13,
    "factors.site.nodes": 16,
    "factors.site.nodes.0": 17,
    "factors.site.nodes.1": 18,
    "factors.load.threads": 20,
    "design.treatments": 22,
    "design.treatments.0.nodes": 23,
    "design.treatments.1": 24,
    "design.treatments.1.nodes": 25,
    "design.treatments.1.extra.deep": 27,
    "other.listed.0.nodes": 29,
    "other.listed.1.workload": 30,
}


def test_every_way_to_write_a_key_has_its_line() -> None:
    tomllib.loads(TEXT)
    found = key_lines(TEXT)
    assert {key: found.get(key) for key in EXPECTED} == EXPECTED


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a = 1", {"a": 1}),
        ("[a]\nb = 1", {"a": 1, "a.b": 2}),
        ("[[a]]\n[[a]]", {"a": 1, "a.0": 1, "a.1": 2}),
        ("a = [1,\n2]", {"a": 1, "a.0": 1, "a.1": 2}),
        ("a.1 = 2", {"a": 1, "a.1": 1}),
        ("1 = 2", {"1": 1}),
    ],
)
def test_the_first_line_is_1_and_so_is_the_second_item(mark: str, text: str, lines: dict[str, int]) -> None:
    assert key_lines(mark + text) == lines
    assert line_of(lines, f"{next(iter(lines))}.nothing") == 1


def test_text_that_looks_like_a_key_is_none() -> None:
    assert not any("line" in key for key in key_lines(TEXT))


@pytest.mark.parametrize(("key", "line"), [("study.nothing.deeper", 4), ("system.yaml.x", 11), ("nowhere.at.all", 0)])
def test_an_unknown_key_is_placed_at_the_nearest_table(key: str, line: int) -> None:
    assert line_of(key_lines(TEXT), key) == line


def _paths(value: Any, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [found for key, inner in value.items() for found in _paths(inner, f"{path}.{key}".lstrip("."))]
    return [path]


words = st.text("abcdef-_", min_size=1, max_size=6)
scalars = st.one_of(st.integers(), st.booleans(), st.text(" #=[]{},'ab", max_size=8))
tables = st.dictionaries(words, scalars, min_size=1, max_size=4)


@settings(deadline=None)
@given(st.dictionaries(words, tables, max_size=4), st.lists(st.sampled_from(["", "# [x] = 1", "  "]), max_size=3))
def test_every_key_of_any_tables_is_found_where_it_stands(document: dict[str, Any], blank: list[str]) -> None:
    lines = []
    for name, table in document.items():
        lines += [*blank, f"[{name}]"]
        for key, value in table.items():
            shown = str(value).lower() if isinstance(value, bool) else value
            lines.append(f"{key} = " + (f'"{value}" # c' if isinstance(value, str) else str(shown)))
    text = "\n".join(lines)
    assert tomllib.loads(text) == document
    found = key_lines(text)
    for path in _paths(document):
        key = path.rpartition(".")[2]
        assert lines[found[path] - 1].startswith(f"{key} = ")
