"""The laboratory, the plan and the command line import seams by their base only: no plug-in, and nothing of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.plugins import find

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "steelyard"
FILES = sorted(path for room in ("cli", "lab", "plan", "judging", "model") for path in (PACKAGE / room).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Modules, and names in modules, that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


@pytest.mark.parametrize("seam", find.SEAMS)
def test_only_the_base_of_a_seam_is_imported(seam: str) -> None:
    names = [(path.name, name.split(".")) for path in FILES for name in imported(path)]
    of_seam = [(file, words[2]) for file, words in names if words[:2] == ["steelyard", seam] and len(words) > 2]
    assert of_seam
    assert [(file, module) for file, module in of_seam if module != "base"] == []
