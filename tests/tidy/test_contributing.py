"""The table of CONTRIBUTING.md as a test: every path that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TOP_LEVEL = {"CHANGELOG.md", "ARCHITECTURE.md", "pyproject.toml", "requirements.lock", "Cargo.toml", "Cargo.lock"}
PLACEHOLDER = "NAME"


def rows() -> list[list[str]]:
    """Lines of the table, as cells."""
    table = PAGE.partition("## Where do I add X")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def paths(cell: str) -> list[str]:
    """Code spans that look like a path of the repository."""
    spans = re.findall(r"`([^`]+)`", cell)
    return [span for span in spans if span in TOP_LEVEL or re.fullmatch(r"[\w.-]+(/[\w.-]+)+", span)]


def there(path: str) -> bool:
    """Whether a path is there; one with a placeholder, whether a file of its pattern is."""
    return any(ROOT.glob(path.replace(PLACEHOLDER, "[!_]*"))) if PLACEHOLDER in path else (ROOT / path).exists()


def test_there_are_many_tasks_and_none_stands_twice() -> None:
    tasks = [row[0] for row in rows()]
    assert len(tasks) >= 20
    assert len(set(tasks)) == len(tasks)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_every_path_of_the_table_is_there(row: list[str]) -> None:
    assert len(row) == 4, row
    assert paths(row[1]) or row[1].startswith("none"), "a task names the files to touch"
    assert row[2], "a task names what proves it"
    assert [path for cell in row for path in paths(cell) if not there(path)] == []


def test_a_seam_is_named_with_its_contract_suite() -> None:
    proofs = " ".join(row[2] for row in rows())
    for seam in re.findall(r"steelyard\.testing\.(\w+)", PAGE):
        assert (ROOT / "src" / "steelyard" / "testing" / f"{seam}.py").is_file()
        assert f"`steelyard.testing.{seam}`" in proofs


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("src/steelyard/site/NAME.py", True),
        ("src/steelyard/site/NAME.rs", False),
        ("src/steelyard/sites", False),
        ("tests/unit/analysis/inference", True),
    ],
)
def test_what_counts_as_there(path: str, found: bool) -> None:
    assert there(path) is found
