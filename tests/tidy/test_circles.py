"""No import circle between two Python files: each can be read, tested and moved with what is below it alone.

Every import counts, also within a function and below `TYPE_CHECKING`: files that must be known together are a circle,
whenever they are loaded. An import of a module is one of the packages around it too, for their `__init__.py` runs
first; only a file's own packages are left out, as they are being imported already. What `steelyard.plugins.find` finds
by name are the modules of the seams: it counts as importing each of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from steelyard.plugins import find

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (ROOT / "src" / "steelyard", ROOT / "tools")
Graph = Mapping[str, frozenset[str]]


def files_of(places: Iterable[Path]) -> dict[str, Path]:
    """Dotted name of every module -> its file. `places`: top-level packages and modules."""
    found = {}
    for place in places:
        for path in [place] if place.suffix == ".py" else sorted(place.rglob("*.py")):
            parts = path.relative_to(place.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def packages_of(name: str) -> Iterator[str]:
    """`a.b.c` -> `a`, `a.b`."""
    parts = name.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts)))


def imported(tree: ast.Module, importer: str, is_package: bool, known: Mapping[str, Path]) -> Iterator[str]:
    """Modules that a file names in an import statement, wherever that stands, or in `import_module("...")`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                up = node.level - is_package
                around = importer.split(".")
                module = ".".join([*around[: len(around) - up], *filter(None, [module])])
            names = (f"{module}.{alias.name}" for alias in node.names)
            yield from (name if name in known else module for name in names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            yield from (
                item.value for item in node.args if isinstance(item, ast.Constant) and isinstance(item.value, str)
            )


def graph_of(places: Iterable[Path]) -> Graph:
    """Module -> modules of ours that it imports."""
    files = files_of(places)
    graph = {}
    for name, path in files.items():
        own = {name, *packages_of(name)}
        is_package = path.name == "__init__.py"
        named = {
            item
            for item in imported(ast.parse(path.read_text(encoding="utf-8")), name, is_package, files)
            if item in files
        }
        around = {package for item in named for package in packages_of(item)} - own
        graph[name] = frozenset((named | around) - {name})
    return graph


def circles(graph: Graph) -> set[frozenset[str]]:
    """Strongly connected components of more than one module."""
    reached: dict[str, set[str]] = {}
    for name in graph:
        seen: set[str] = set()
        ahead = list(graph[name])
        while ahead:
            module = ahead.pop()
            if module not in seen:
                seen.add(module)
                ahead += graph[module]
        reached[name] = seen
    return {
        frozenset(other for other in seen if name in reached[other]) for name, seen in reached.items() if name in seen
    }


def test_no_two_files_import_each_other() -> None:
    graph = dict(graph_of(PACKAGES))
    seams = {name for name in graph if name.startswith(tuple(f"steelyard.{seam}." for seam in find.SEAMS))}
    assert len(graph) > 300, "the sources are not where this test looks"
    assert len(seams) > 20, "the plug-ins are not where this test looks"
    graph["steelyard.plugins.find"] |= seams
    found = circles(graph)
    assert found == set(), "\n".join(", ".join(sorted(circle)) for circle in found)


def test_what_users_install_needs_no_tool_of_the_repository() -> None:
    graph = graph_of(PACKAGES)
    assert any(name.startswith("tools.") for name in graph)
    assert [name for name, known in graph.items() if name.startswith("steelyard") and "tools" in known] == []


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"a.py": "import b", "b.py": ""}, []),
        ({"a.py": "import b", "b.py": "def f():\n    import a"}, ["a b"]),
        ({"a.py": "from p import m", "p/__init__.py": "", "p/m.py": "import a"}, ["a p.m"]),
        ({"p/__init__.py": "from p.x import f", "p/x.py": "from q import g", "q.py": "from p.y import h", "p/y.py": ""},
         ["p p.x q"]),
        ({"p/__init__.py": "from p.x import f", "p/x.py": "from p import y", "p/y.py": ""}, []),
        ({"p/__init__.py": "from .x import f", "p/x.py": "from . import y", "p/y.py": "from .x import f"}, ["p.x p.y"]),
        ({"a.py": 'importlib.import_module("b")', "b.py": "if TYPE_CHECKING:\n    from a import A"}, ["a b"]),
        ({"a.py": "import b", "b.py": "import c", "c.py": "import a", "d.py": "import a, e", "e.py": "import d"},
         ["a b c", "d e"]),
    ],
)  # fmt: skip
def test_what_counts_as_a_circle(tmp_path: Path, files: dict[str, str], wanted: list[str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = circles(graph_of(tmp_path.iterdir()))
    assert sorted(" ".join(sorted(circle)) for circle in found) == wanted
