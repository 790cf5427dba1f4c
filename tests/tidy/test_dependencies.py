"""What is installed with the package is what it imports: no more, no less."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

OF_AUTHORS = {"pytest"}
"""`steelyard.testing` holds suites for authors of plug-ins, who have it."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirements: list[str]) -> set[str]:
    return {normal(re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0]) for one in requirements}


def imported() -> Iterator[str]:
    """Top-level modules that the package imports and that are neither ours nor Python's own."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules = [node.module]
            else:
                continue
            tops = {module.partition(".")[0] for module in modules}
            yield from tops - {"steelyard", "__future__"} - sys.stdlib_module_names


def test_the_package_imports_what_it_depends_on() -> None:
    distributions = importlib.metadata.packages_distributions()
    used = {normal(distributions[name][0]) for name in set(imported())}
    needed = named(PROJECT["dependencies"])
    assert needed - used == set(), "installed with the package, yet never imported by it"
    # What comes with them, such as pydantic-core with pydantic.
    along = {name for one in needed for name in named(importlib.metadata.requires(one) or [])}
    extras = PROJECT["optional-dependencies"]
    optional = named([*extras["java"], *extras["predict"], *extras["labs"]]) | OF_AUTHORS
    assert used - needed - along - optional == set(), "imported, yet not installed with the package"


def test_every_dependency_is_said_why() -> None:
    page = (ROOT / "docs" / "decisions" / "dependencies.md").read_text(encoding="utf-8").lower()
    assert {name for name in named(PROJECT["dependencies"]) if name not in page} == set()
