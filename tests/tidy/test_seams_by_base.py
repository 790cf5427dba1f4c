"""Plan, laboratory and reading half know no plug-in: neither by its name nor by its module, whatever its name.

What they must know of one, it says by an ability, a fact of its nodes, or a setting.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard import plugin

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "steelyard"
ROOMS = ("lab", "plan", "judging", "model", "reading", "report", "analysis")
FILES = sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))
KNOWN_AS_ELSE = {
    # Defaults of a study.
    ("model/study.py", "local"), ("model/study.py", "os"), ("model/load.py", "agent"),
    ("model/trial_settings.py", "agent"),
    # A measure names its probe.
    ("model/measure.py", "os"), ("model/responses/energy.py", "energy"),
    # A section of the page.
    ("analysis/statistic.py", "energy"), ("report/page.py", "energy"),
    # A program among a trial's versions.
    ("lab/trial.py", "agent"),
    ("model/former_words.py", "local"),
}  # fmt: skip
"""File and string: what has the name of a plug-in, and may."""


def strings(path: Path) -> Iterator[str]:
    """Every string of a file as a whole."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_plug_in_is_named() -> None:
    names = {name for seam in plugin.SEAMS for name in plugin.names(seam)}
    assert {"cassandra", "simulated", "local", "docker", "agent", "os", "ycsb-a"} <= names
    named = {(str(path.relative_to(PACKAGE)), text) for path in FILES for text in strings(path) if text in names}
    assert named - KNOWN_AS_ELSE == set()


def imported(path: Path) -> Iterator[str]:
    """Modules, and names in modules, that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


@pytest.mark.parametrize("seam", plugin.SEAMS)
def test_no_plug_in_is_imported(seam: str) -> None:
    plug_ins = [f"steelyard.{seam}.{name.replace('-', '_')}" for name in plugin.names(seam)]
    assert plug_ins
    assert FILES
    names = [(path.name, name) for path in FILES for name in imported(path)]
    assert [(file, name) for file, name in names if name.startswith(tuple(plug_ins))] == []
