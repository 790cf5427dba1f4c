"""The style as a test: sizes, words, imports, pages. Limits are ratchets: lower them when you can, never raise them
in passing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.analysis import statistics
from steelyard.analysis.statistic import Section
from steelyard.plugins import find

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for folder in ("src/steelyard", "tools") for path in (ROOT / folder).rglob("*.py"))
CRATES = sorted((ROOT / "crates").glob("*/src/**/*.rs"))
FUNCTION_LINES = 75
FILE_LINES = 500
RUST_FILE_LINES = 600


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_sizes_and_docstrings(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert text.count("\n") <= FILE_LINES, f"{path.name} is too long: split it by what it does"
    if text.strip():
        assert ast.get_docstring(tree), f"{path.name}: a module opens with why it exists"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno
            assert lines <= FUNCTION_LINES, f"{path.name}:{node.lineno} {node.name} has {lines} lines"
        if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Name) and node.type.id == "Exception":
            body = [type(statement) for statement in node.body]
            assert body != [ast.Pass], f"{path.name}:{node.lineno} swallows every error"


@pytest.mark.parametrize("path", CRATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_rust_sizes(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= RUST_FILE_LINES, f"{path.name} is too long: split it by what it does"
    assert text.startswith("//!"), f"{path}: a module opens with why it exists"


def test_imports_keep_to_the_plan() -> None:
    found = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("seam", find.SEAMS)
def test_every_plug_in_has_a_page(seam: str) -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md"))
    for name in find.names(seam):
        assert re.search(rf"`{re.escape(name)}`", pages), f"{seam} {name} has no page in docs/reference"


def _kept_contracts(seam: str) -> set[str]:
    """Names of plug-ins that stand in a class that inherits the contract of their seam."""
    found: set[str] = set()
    for path in sorted((ROOT / "tests" / "contract" / seam).glob("test_*.py")):
        heirs = {f"{seam.capitalize()}Contract"}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef) or not heirs & {ast.unparse(base) for base in node.bases}:
                continue
            heirs.add(node.name)
            for item in node.body:
                if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "module":
                    found |= {item.value.value} if isinstance(item.value, ast.Constant) else set()
    return found


@pytest.mark.parametrize("seam", find.SEAMS)
def test_every_plug_in_keeps_the_contract_of_its_seam(seam: str) -> None:
    assert (ROOT / "src" / "steelyard" / "testing" / f"{seam}.py").is_file()
    lacking = set(find.names(seam)) - _kept_contracts(seam)
    assert not lacking, f"no class in tests/contract/{seam} inherits the contract for {', '.join(sorted(lacking))}"


@pytest.mark.parametrize("name", ["page.py", "tables/generic.py"])
def test_the_page_knows_no_statistic_by_name(name: str) -> None:
    """What is shown in a form of its own is registered in `report/forms.py`; the page asks for it."""
    every = statistics.every()
    names = {one.name for one in every} - set(Section)  # which are anchors of the page
    rows = {one.row.__name__ for one in every}
    assert {"comparison", "steady"} <= names
    for node in ast.walk(ast.parse((ROOT / "src" / "steelyard" / "report" / name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant):
            assert node.value not in names, f"{name}:{node.lineno} names the statistic {node.value}"
        if isinstance(node, ast.Name):
            assert node.id not in rows, f"{name}:{node.lineno} names the rows {node.id}"
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("steelyard.analysis.statistics."), f"{name}:{node.lineno}"


def test_the_command_line_parses_calls_and_prints() -> None:
    """What computes, conducts or finds out is below it, where a notebook and another program reach it, too."""
    files = sorted((ROOT / "src" / "steelyard" / "cli").rglob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in files]
    assert sum(text.count("\n") for text in texts) < 5700
    for path, text in zip(files, texts, strict=True):
        assert not re.search(r"steelyard\.heavy|import (numpy|polars|scipy)", text), path.name


def test_nothing_unfinished() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    marks = re.compile(r"\b(TODO|FIXME|XXX)\b|unimplemented!|todo!\(")
    for name in tracked:
        path = ROOT / name
        if path.suffix not in (".py", ".rs") or path == Path(__file__) or not path.is_file():
            continue
        assert not marks.search(path.read_text(encoding="utf-8")), name


def test_links_in_documents_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http", "mailto:")):
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
