"""Heavy libraries are loaded by those who compute with them, when they do: `steelyard.heavy`."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.serve.stores import FAULT, VOIDED, a_record, write

SOURCE = Path(__file__).resolve().parents[2] / "src" / "steelyard"
HEAVY = ("distributed", "numpy", "polars", "scipy", "statsmodels")
STATUS_NEEDS_NONE_OF = (*HEAVY, "asyncio", "jinja2", "steelyard.lab", "steelyard.report", "steelyard.wire.record")
"""Modules that `status` must not load: it is called while a study is measured, on the same processor."""
LOADED = """
import sys
from steelyard.cli.main import main
sys.argv = ["steelyard", *sys.argv[1:]]
try:
    main()
finally:
    print("LOADED", *sys.modules)
"""


def at_import(path: Path) -> set[str]:
    """Top packages that a module imports outside of its functions and of TYPE_CHECKING."""
    names: set[str] = set()

    def walk(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for child in node.orelse:
                walk(child)
            return
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        if isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
        for child in ast.iter_child_nodes(node):
            walk(child)

    walk(ast.parse(path.read_text(encoding="utf-8")))
    return names


def loaded(code: str, *words: str, state: Path) -> set[str]:
    """Modules that a fresh process has loaded at its end."""
    environment = {"STEELYARD_STATE": str(state), "PYTHONPATH": str(SOURCE.parent), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("LOADED ")) if done.stdout else ("",)
    assert line, done.stderr
    return set(line.split()[1:])


def test_nobody_imports_a_heavy_library_but_heavy() -> None:
    offenders = {str(path.relative_to(SOURCE)): at_import(path) & set(HEAVY) for path in SOURCE.rglob("*.py")}
    assert {name: found for name, found in offenders.items() if found} == {}


def test_status_loads_nothing_heavy(tmp_path: Path) -> None:
    store = write(tmp_path / "s", [a_record(0), a_record(1, VOIDED), a_record(2, FAULT)])
    modules = loaded(LOADED, "status", str(store), state=tmp_path / "state")
    assert "steelyard.cli.commands.status" in modules
    assert modules.isdisjoint(STATUS_NEEDS_NONE_OF), modules & set(STATUS_NEEDS_NONE_OF)


@pytest.mark.parametrize("command", ["run", "check", "report"])
def test_a_command_that_is_imported_loads_no_statistics_library_yet(tmp_path: Path, command: str) -> None:
    code = f"import sys, steelyard.cli.commands.{command}; print('LOADED', *sys.modules)"
    assert loaded(code, state=tmp_path).isdisjoint({"scipy.stats", "scipy.special", "scipy.optimize"})
