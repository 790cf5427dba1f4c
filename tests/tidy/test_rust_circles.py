"""Import circles between Rust files: none, but for the closed sum types listed here.

A circle means that neither file can be read alone. The check reads text, not compiler output: paths that begin with
`crate::`, `super::` or `self::`, in `use` lines and in code, followed through re-exports to the file that holds the
item. Tests inside of a file (`#[cfg(test)]`) and files of tests (`*_tests.rs`, `tests.rs`) may look wherever they want.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

CRATES = Path(__file__).parents[2] / "crates"

ALLOWED = {
    # A value source may be random, and a random collection holds value sources: one recursive sum type in two files.
    frozenset({"steelyard-client/program/random_values.rs", "steelyard-client/program/value_source.rs"}),
    # YCSB's workload is one of two that compile to requests; its statements are built from the types of requests.
    frozenset({"steelyard-client/program/requests.rs", "steelyard-client/program/ycsb_statements.rs"}),
}

COMMENT = re.compile(r"//[^\n]*")
STRING = re.compile(r'"(?:\\.|[^"\\])*"')
TESTS = re.compile(r"#\[cfg\(test\)\](?:\s*#\[[^\]]*\])*\s*(?:pub(?:\(crate\))? )?mod \w+\s*(?:;|\{.*\Z)", re.DOTALL)
MENTION = re.compile(r"\b(?:crate|super|self)::(?:\w+::)*(?:\w+|\{|\*)")
REEXPORT = re.compile(r"\bpub(?:\(\w+\))? use ([^;]+);")


@cache
def text_of(file: Path) -> str:
    """The file without comments, strings and its tests."""
    return STRING.sub('""', TESTS.sub("", COMMENT.sub("", file.read_text())))


def expanded(tree: str) -> list[str]:
    """`a::{b, c::{d, self}}` as a::b, a::c::d, a::c; a new name after `as` is dropped."""
    head, brace, rest = tree.partition("{")
    if not brace:
        path = re.sub(r"\s+as \w+", "", tree).strip()
        return [path.removesuffix("::self")] if path else []
    items, depth, item = [], 0, ""
    for letter in rest:
        if letter == "}" and depth == 0:
            break
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            items.append(item)
            item = ""
        else:
            item += letter
    return [path for part in [*items, item] for path in expanded(head.strip() + part.strip()) if part.strip()]


def paths_of(file: Path) -> set[str]:
    """Every path within its own crate that the file mentions."""
    text = text_of(file)
    found = set()
    for match in MENTION.finditer(text):
        if not match[0].endswith("{"):
            found.add(match[0])
            continue
        depth, end = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found.update(expanded(text[match.start() : end]))
    return found


def module_of(source: Path, file: Path) -> tuple[str, ...]:
    """`src/program/mod.rs` and `src/program.rs` are the module program."""
    parts = file.relative_to(source).with_suffix("").parts
    return () if parts in {("lib",), ("main",)} else parts[:-1] if parts[-1] == "mod" else parts


def is_test(file: Path) -> bool:
    return file.stem.endswith("_tests") or file.stem == "tests"


class Crate:
    """The files of one crate, by module path."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.files = {module_of(source, file): file for file in source.rglob("*.rs") if not is_test(file)}

    def home(self, module: tuple[str, ...], path: str, *, depth: int = 0) -> tuple[str, ...] | None:
        """The module that holds what `path` means when `module` says it."""
        assert depth < 8, f"re-exports of {path} go in a circle"
        parts = path.split("::")
        here: tuple[str, ...] = () if parts[0] == "crate" else module[:-1] if parts[0] == "super" else module
        names = parts[1:]
        while names and names[0] == "super":
            here, names = here[:-1], names[1:]
        while names and (*here, names[0]) in self.files:
            here, names = (*here, names[0]), names[1:]
        if names and here in self.files:
            for reexport in REEXPORT.findall(text_of(self.files[here])):
                for other in expanded(reexport):
                    if other.rsplit("::", 1)[-1] == names[0] and (target := self.reexported(here, other)):
                        return self.home(here, target, depth=depth + 1)
        return here if here in self.files else None

    def reexported(self, module: tuple[str, ...], path: str) -> str | None:
        """A re-export's path in the long form; None if it is of another crate."""
        first = path.split("::", maxsplit=1)[0]
        if first in {"crate", "super", "self"}:
            return path
        return f"self::{path}" if (*module, first) in self.files else None

    def imports(self) -> dict[str, set[str]]:
        """The files that each file needs."""
        needs: dict[str, set[str]] = {}
        for module, file in self.files.items():
            homes = {self.home(module, path) for path in paths_of(file) | self.children_named(module)}
            needs[self.name(module)] = {self.name(home) for home in homes if home is not None and home != module}
        return needs

    def children_named(self, module: tuple[str, ...]) -> set[str]:
        """Paths that begin with a child module's bare name; what is only re-exported is not needed by the parent."""
        text = REEXPORT.sub("", text_of(self.files[module]))
        children = {other[-1] for other in self.files if other and other[:-1] == module}
        return {f"self::{name}" for name in re.findall(r"(?<![\w:.])(\w+)::", text) if name in children}

    def name(self, module: tuple[str, ...]) -> str:
        return f"{self.source.parent.name}/{self.files[module].relative_to(self.source)}"


def circles(needs: dict[str, set[str]]) -> set[frozenset[str]]:
    """Groups of more than one file of which each needs each other, directly or by way of others."""

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        todo = list(needs[start])
        while todo:
            file = todo.pop()
            if file not in seen:
                seen.add(file)
                todo.extend(needs.get(file, ()))
        return seen

    reached = {file: reach(file) for file in needs}
    groups = {frozenset({file, *(other for other in reached[file] if file in reached[other])}) for file in needs}
    return {group for group in groups if len(group) > 1}


def crates() -> list[Crate]:
    return [Crate(source) for source in sorted(CRATES.glob("*/src"))]


def test_no_rust_file_needs_a_file_that_needs_it() -> None:
    assert len(crates()) >= 9
    found = {circle for crate in crates() for circle in circles(crate.imports())}
    assert found == ALLOWED, "\n".join(" - ".join(sorted(circle)) for circle in found ^ ALLOWED)


def test_the_crates_are_layers() -> None:
    """wire <- workload <- load <- client <- agent; neither workloads nor the driving loop know a protocol."""
    known = {
        folder.name: set(re.findall(r"^(steelyard-\w+)\.workspace", _dependencies(folder), re.MULTILINE))
        for folder in CRATES.iterdir()
    }
    assert known["steelyard-load"] == {"steelyard-wire", "steelyard-workload"}
    assert known["steelyard-workload"] == {"steelyard-wire"}
    assert {"steelyard-load", "steelyard-workload"} <= known["steelyard-client"]
    assert not any("steelyard-agent" in needs for needs in known.values())


def _dependencies(folder: Path) -> str:
    return (folder / "Cargo.toml").read_text().partition("[dependencies]")[2].partition("[dev-dependencies]")[0]


def test_the_parser_sees_what_rust_means(tmp_path: Path) -> None:
    source = tmp_path / "some-crate" / "src"
    (source / "deep").mkdir(parents=True)
    (source / "lib.rs").write_text(
        "mod low;\nmod high;\nmod deep;\npub use low::{Fact, Other as Renamed};\nfn f() { high::g() }\n"
    )
    (source / "low.rs").write_text("// crate::high is only a comment\nfn f() { crate::high::g() }\n")
    tests = "#[cfg(test)]\nmod tests {\n    use crate::x::Y;\n}\n"
    (source / "high.rs").write_text(f"use crate::{{deep::{{self, Leaf}}, Fact}};\n{tests}")
    (source / "deep" / "mod.rs").write_text("mod leaf;\npub use leaf::Leaf;\n")
    (source / "deep" / "leaf.rs").write_text("use super::super::low::Fact;\n")
    needs = Crate(source).imports()
    name = "some-crate/{}".format
    assert needs[name("high.rs")] == {name("low.rs"), name("deep/mod.rs"), name("deep/leaf.rs")}
    assert needs[name("lib.rs")] == {name("high.rs")}
    assert needs[name("low.rs")] == {name("high.rs")}
    assert needs[name("deep/leaf.rs")] == {name("low.rs")}
    # A file that only passes names on is no part of a circle.
    assert circles(needs) == {frozenset({name("low.rs"), name("high.rs"), name("deep/leaf.rs")})}
