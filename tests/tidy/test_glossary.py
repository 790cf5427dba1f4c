"""The glossary as a test: words that it does not use are in no name, and its places in the code are there.

Counts are ratchets: lower them when you can, never raise them in passing.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from steelyard.events.base import KINDS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "steelyard"
PAGE = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
STILL_THERE = {"laid": 1, "pointed": 1, "tolerance": 2}
"""Names with a word that the glossary does not use: how many there are yet. `tolerance` is a setting of Kubernetes, of
that meaning."""
EMPTY_LOCALS = {"one": 0, "found": 2, "told": 0, "said": 0, "made": 2}
"""Names that say nothing of what they hold, for values that live longer than a comprehension: how many there may be.
The four are fields that are written to files and to `--json`."""
PLAIN_PAGES = [
    *(ROOT / name for name in ("README.md", "STYLE.md", "CONTRIBUTING.md", "docs/reference/commands.md")),
    *(
        path
        for folder in ("tutorial", "howto", "explanation", "reference/numbers")
        for path in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
]
NOT_PLAIN = re.compile(
    r"\b(mend(s|ed|ing)?|heed(s|ed|ing)?|anew|nobody|somebody|anybody|whoever|besides?|wholly|told|tells?"
    r"|all the same|so many|by itself|stands? there|carr(y|ies|ied|ying) out|(or|,) else)\b",
    re.IGNORECASE,
)
"""Words and turns that a native engineer does not write: fix, use, again, no one, next to, report, anyway, that many,
automatically, is given, run, otherwise."""
READING_ROOMS = (
    "analysis",
    "dropin",
    "export",
    "judging",
    "model",
    "reading",
    "reference",
    "report",
    "serve",
    "verify",
)
"""Rooms whose keys and code are free of it: see the test at the end."""
PLAIN_ROOMS = sorted({path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {*READING_ROOMS})
"""All others: messages, hints, `--help`, descriptions of settings and docstrings are held to it whole."""
NOT_PROSE = {"beside"}
"""Keys of `--json`, and names that other rooms give."""


def rows() -> list[list[str]]:
    """Lines of the table of terms, as cells."""
    table = PAGE.partition("## Terms\n")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def not_used(*, nouns: bool) -> list[str]:
    """Words that stand in no name; or those that are used, but not as a noun."""
    last = [row[3] if len(row) > 3 else "" for row in rows()]
    pattern = r"(\w+) \(as a noun\)" if nouns else r"`(\w+)`"
    return sorted({word for cell in last for word in re.findall(pattern, cell)})


def words(name: str) -> set[str]:
    """The words of a name, in the singular: `HostNames` -> host, name."""
    parts = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", name)
    return {form for part in parts for form in (part.lower(), part.lower().removesuffix("s"))}


def trees(room: str = "") -> Iterator[tuple[Path, ast.Module]]:
    """The modules below a folder of the package. Each is parsed and forgotten: together they are 1.7 million objects,
    through which the garbage collector would look in every later test."""
    for path in sorted((PACKAGE / room).rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def names(path: Path, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Kind and name of everything that a module names, and of the module."""
    for part in path.relative_to(PACKAGE).with_suffix("").parts[-2:]:
        yield "module", part
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name):
                yield "class", name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield "function", name
                arguments = node.args
                for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                    yield "argument", argument.arg
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield "field", name


def named(word: str) -> Sequence[tuple[str, str, str]]:
    """File, kind and name of what has a word in its name."""
    return package()[0].get(word, ())


@cache
def package() -> tuple[Mapping[str, Sequence[tuple[str, str, str]]], Counter[str]]:
    """What has each word in its name, and how often each name is bound, in one look through all modules."""
    by_word: dict[str, list[tuple[str, str, str]]] = {}
    bindings: Counter[str] = Counter()
    for path, tree in trees():
        for kind, name in names(path, tree):
            for word in words(name):
                by_word.setdefault(word, []).append((str(path.relative_to(PACKAGE)), kind, name))
        bindings.update(bound(tree))
    return by_word, bindings


def test_the_page_has_terms_and_words_that_are_not_used() -> None:
    assert len(rows()) > 40
    assert {"experiment", "latency", "host", "driver", "golden", "foreign"} <= set(not_used(nouns=False))
    assert not_used(nouns=True) == ["run"]


@pytest.mark.parametrize("word", not_used(nouns=False))
def test_a_word_that_is_not_used_is_in_no_name(word: str) -> None:
    found = sorted(set(named(word)))
    assert len(found) <= STILL_THERE.get(word, 0), found


@pytest.mark.parametrize("word", [*not_used(nouns=False), *not_used(nouns=True)])
def test_a_word_that_is_not_used_is_in_no_event_or_class(word: str) -> None:
    assert [name for name in KINDS if word in name.split("-")] == []
    classes = [name for _, kind, name in named(word) if kind == "class"]
    assert len(classes) <= STILL_THERE.get(word, 0), classes


def test_every_place_of_the_page_is_there() -> None:
    places = [place for row in rows() for place in re.findall(r"`([a-z_/]+(?:\.py(?::\w+)?|/))`", row[2])]
    assert len(places) > 40
    for place in places:
        path, _, name = place.partition(":")
        assert (PACKAGE / path).exists(), place
        assert not name or re.search(rf"^(class|def) {name}\b", (PACKAGE / path).read_text(), re.MULTILINE), place


def bound(tree: ast.Module) -> Iterator[str]:
    """Names that are bound by an assignment, a loop, `with`, `except`, `:=` or a pattern, outside of comprehensions."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.comprehension | ast.Lambda):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name
        pending += ast.iter_child_nodes(node)


@pytest.mark.parametrize("name", EMPTY_LOCALS)
def test_locals_are_called_what_they_hold(name: str) -> None:
    assert package()[1][name] <= EMPTY_LOCALS[name]


@pytest.mark.parametrize("path", PLAIN_PAGES, ids=lambda path: path.name)
def test_prose_of_pages_is_plain_english(path: Path) -> None:
    """Code, quotes of the program in code letters, and targets of links are free."""
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = [match.group() for match in NOT_PLAIN.finditer(" ".join(prose.split()))]
    assert found == [], f"{path.relative_to(ROOT)}: {found}"


def texts(tree: ast.Module) -> Iterator[str]:
    """Strings and docstrings of a module; of a formatted one, its literal parts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in NOT_PROSE:
            yield " ".join(node.value.split())


@pytest.mark.parametrize("room", PLAIN_ROOMS)
def test_strings_of_a_room_are_plain_english(room: str) -> None:
    found = [
        (str(path.relative_to(PACKAGE)), match.group(), text[:80])
        for path, tree in trees(room)
        for text in texts(tree)
        for match in NOT_PLAIN.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize("room", PLAIN_ROOMS)
def test_a_docstring_of_a_room_starts_with_a_noun_or_a_verb(room: str) -> None:
    """`What it prints` is the output; `Why it cannot` is the reason."""
    found = [
        (str(path.relative_to(PACKAGE)), node.value.value[:80])
        for path, tree in trees(room)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if node.value.value.startswith(("What ", "Why ", "How ", "Who "))
    ]
    assert found == []


@pytest.mark.parametrize("room", READING_ROOMS)
def test_strings_and_docstrings_of_the_reading_half_are_plain_english(room: str) -> None:
    """Strings of one word are keys, text between backticks is code; both are free."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {match.group()}"
        for path, tree in trees(room)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) > 1
        for match in NOT_PLAIN.finditer(re.sub(r"`[^`]*`", " ", " ".join(node.value.split())))
    ]
    assert found == []
