"""No file knows two classes of one name: a reader of it need not ask which one is meant.

A file knows the classes that it defines, and all classes of the modules that it imports from.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.tidy.test_circles import PACKAGES, files_of, imported

IN_EVERY_PLUG_IN = {"Settings"}


def known_twice(files: Mapping[str, Path]) -> dict[str, dict[str, list[str]]]:
    """Module -> class name -> the modules that define it, where there are several."""
    classes: dict[str, set[str]] = {}
    imports: dict[str, set[str]] = {}
    for module, path in files.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes[module] = {node.name for node in tree.body if isinstance(node, ast.ClassDef)} - IN_EVERY_PLUG_IN
        imports[module] = set(imported(tree, module, path.name == "__init__.py", files))
    twice = {}
    for module in files:
        definers: dict[str, list[str]] = defaultdict(list)
        for other in sorted({module, *imports[module]} & set(files)):
            for name in classes[other]:
                definers[name].append(other)
        if shared := {name: places for name, places in definers.items() if len(places) > 1}:
            twice[module] = shared
    return twice


def test_no_file_knows_two_classes_of_one_name() -> None:
    assert known_twice(files_of(PACKAGES)) == {}


@pytest.mark.parametrize(
    ("importer", "wanted"),
    [
        ("from a import C\nfrom b import C as D", {"C": ["a", "b"]}),
        ("import a\nclass C: ...", {"C": ["a", "m"]}),
        ("import a\nfrom b import f", {"C": ["a", "b"]}),
        ("from a import Settings\nclass Settings: ...", {}),
        ("import a", {}),
    ],
)
def test_what_counts_as_known(tmp_path: Path, importer: str, wanted: dict[str, list[str]]) -> None:
    defines = "class C: ...\nclass Settings: ..."
    for name, text in {"a": defines, "b": defines, "m": importer}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    assert known_twice(files_of(tmp_path.iterdir())).get("m", {}) == wanted
