"""The laboratory and the plan import seams by their base only: no shipped plug-in, whatever its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.plugins import find

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "steelyard"
FILES = sorted(path for room in ("lab", "plan", "judging", "model") for path in (PACKAGE / room).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Modules, and names in modules, that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


@pytest.mark.parametrize("seam", find.SEAMS)
def test_a_seam_is_imported_by_its_base_only(seam: str) -> None:
    names = [(path.name, name) for path in FILES for name in imported(path) if name.startswith(f"steelyard.{seam}.")]
    assert [(file, name) for file, name in names if name.split(".")[2] != "base"] == []
