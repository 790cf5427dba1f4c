"""Plan, laboratory, reading half and command line know no plug-in: they import seams by their base only. Those but the
command line name none either.

What they must know of one, it says by an ability, a fact of its nodes, or a setting.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from steelyard.plugins import find

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "steelyard"
ROOMS = ("lab", "plan", "judging", "model", "reading", "report", "analysis")
FILES = sorted(path for room in (*ROOMS, "cli") for path in (PACKAGE / room).rglob("*.py"))
KNOWN_AS_ELSE = {
    # Defaults of a study.
    ("model/study.py", "local"), ("model/study.py", "os"), ("model/load.py", "agent"),
    ("model/trial_settings.py", "agent"),
    # A measure names its probe.
    ("model/measure.py", "os"), ("model/responses/energy.py", "energy"),
    ("model/power.py", "meter"),
    ("model/responses/simulated.py", "simulated"),
    # A protocol that has the name of the system that speaks it.
    ("model/client.py", "etcd"), ("model/data_model.py", "etcd"),
    # A section of the page.
    ("analysis/statistic.py", "energy"), ("report/page.py", "energy"),
    # Policies that plans must know: they need no metric.
    ("model/policy.py", "scheduled"), ("model/policy.py", "static-max"),
    # A phase of an activity, and a word of CQL.
    ("analysis/statistics/activities.py", "cleanup"), ("model/activity.py", "cleanup"),
    ("model/cql_statement.py", "partition"),
    # A program among a trial's versions.
    ("lab/trial.py", "agent"),
}  # fmt: skip
"""File and string: what has the name of a plug-in, and may."""
ORDINARY = {"none", "simple", "step", "threshold", "clock"}
"""Names of plug-ins that are words for other things as well."""


def strings(path: Path) -> Iterator[str]:
    """Every string of a file as a whole."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_plug_in_is_named() -> None:
    names = {name for seam in find.SEAMS for name in find.names(seam)} - ORDINARY
    assert {"cassandra", "simulated", "local", "docker", "agent", "os", "ycsb-a"} <= names
    named = {
        (str(path.relative_to(PACKAGE)), text)
        for path in FILES
        if path.relative_to(PACKAGE).parts[0] != "cli"
        for text in strings(path)
        if text in names
    }
    assert named - KNOWN_AS_ELSE == set()


def imported(path: Path) -> Iterator[str]:
    """Modules, and names in modules, that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


@cache
def imports() -> Sequence[tuple[str, Sequence[str]]]:
    """Name of each file, with the words of each of its imports."""
    return [(path.name, name.split(".")) for path in FILES for name in imported(path)]


@pytest.mark.parametrize("seam", find.SEAMS)
def test_only_the_base_of_a_seam_is_imported(seam: str) -> None:
    names = imports()
    of_seam = [(file, words[2]) for file, words in names if words[:2] == ["steelyard", seam] and len(words) > 2]
    assert of_seam
    assert [(file, module) for file, module in of_seam if module != "base"] == []
