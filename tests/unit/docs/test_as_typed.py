"""What the pages show as typed: commands are understood, TOML is accepted. What needs more than parsing is run by tests
of its page: `grep -r howto tests`."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from steelyard.dropin.stress.parse import parse_settings
from steelyard.dropin.stress.run.command import without_load
from steelyard.dropin.ycsb import command as ycsb_command
from steelyard.model.errors import StudyError
from steelyard.model.link import NamedLink
from steelyard.model.profile import Profile
from steelyard.plugins.find import Plugins, any_file
from steelyard.site.ssh import inventory
from steelyard.study import read_text
from steelyard.study import schema as study_schema
from steelyard.workload import _file as workload_file
from tests.unit.cli.test_main import understood

ROOT = Path(__file__).resolve().parents[3]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:sudo )?steelyard [^`]+)`")
TYPED = re.compile(r"\s*(?:\$ )?(?:sudo )?(?:\S*/)?steelyard +(.+)")
SHELLS = ("", "sh", "bash", "console")
ENDS = re.compile(r"\s+#\s| \|\| | \| | && | > | 2> ")
"""What ends a command: a comment, or what the shell does with it."""
GRAMMAR = re.compile(r"[\[|]|\b(COMMAND|SHELL)\b|\.\.\.$")
"""A command with these is a form, not a command."""
REST = {
    "study": '[study]\nname = "mine"\nquestion = "?"\n',
    "site": '[site]\nname = "local"\n',
    "system": '[system]\nname = "cassandra"\n',
    "workload": '[workload]\nname = "ycsb-a"\nrecords = 5000\n',
    "load": "[load]\noperations = 1000\n",
}
"""Sections that a fragment of a study leaves out."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [content for language, content in BLOCK.findall(text) if language in languages]


def commands() -> Iterator[tuple[str, str]]:
    """Every command of a page, from blocks and from sentences; in a sentence, a command may be only named."""
    for page in PAGES:
        for block in blocks(page, *SHELLS):
            for line in block.replace("\\\n", " ").splitlines():
                typed = TYPED.match(line)
                if typed:
                    yield name(page), ENDS.split(typed[1])[0].strip()
        for span in INLINE.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
            line = " ".join(span.split()).partition("steelyard ")[2]
            if " " in line and not GRAMMAR.search(line):
                yield name(page), ENDS.split(line)[0]


def parsed(words: list[str]) -> object:
    """A command, parsed and not run."""
    if words[0] == "stress":
        return without_load(words[1:]) or parse_settings.read(words[1:])
    if words[0] == "ycsb":
        return ycsb_command.parse(words[1:])
    return understood(f"steelyard {shlex.join(words)}")


@pytest.mark.parametrize(("page", "line"), sorted(set(commands())))
def test_a_command_of_a_page_is_understood(
    page: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("workloads").mkdir()
    Path("workloads", "workloada").write_text("recordcount=1000\n")
    assert parsed(shlex.split(line))


def completed(fragment: str, page: Path) -> str:
    """A fragment of a study with what it leaves out: the page's factors and policies if it is about them, the usual
    sections."""
    keys = tomllib.loads(fragment)
    parts = [fragment]
    for earlier in blocks(page, "toml") if keys.keys() & {"analysis", "design"} else ():
        for part in re.split(r"^(?=\[)", earlier, flags=re.MULTILINE):
            if part.startswith(("[factors]", "[policy]")) and tomllib.loads(part).keys().isdisjoint(keys):
                parts.append(part)
                keys |= tomllib.loads(part)
    parts += [text for section, text in REST.items() if section not in keys]
    parts += [REST[seam] for seam in ("site", "system", "workload") if keys.get(seam) and "name" not in keys[seam]]
    text = "\n".join(parts)
    if keys.get("load", {"operations": 1}).keys().isdisjoint(("operations", "duration_s", "schedule", "phases")):
        text = text.replace("[load]\n", "[load]\noperations = 1000\n")
    return text


def write_files(page: Path, folder: Path) -> None:
    """The files that a page has the reader write: a block of Python that begins with `# name.py`, a workload."""
    for content in blocks(page, "python"):
        named = re.match(r"# (\w+\.py)\n", content)
        for place in (folder, folder / "probes") if named else ():
            place.mkdir(exist_ok=True)
            (place / named[1]).write_text(content, encoding="utf-8")
    for content in blocks(page, "toml"):
        found = tomllib.loads(content)
        if kind_of(found) == "workload" and "name" in found:
            (folder / f"{found['name']}.toml").write_text(content, encoding="utf-8")


def kind_of(found: dict[str, Any]) -> str:
    """Which file of Steelyard a block is from."""
    if found.keys() & {"tables", "statements", "operations"}:
        return "workload"
    if "machine" in found:
        return "inventory"
    if "cores" in found:
        return "profile"
    return "link" if "link" in found and "title" in found else "study"


def without_required(schema: Any) -> Any:
    """A schema that any part of its document fulfils."""
    if isinstance(schema, dict):
        return {key: without_required(part) for key, part in schema.items() if key != "required"}
    return [without_required(part) for part in schema] if isinstance(schema, list) else schema


def refusals_of_a_workload(text: str) -> list[str]:
    """Lines of the error; a part of a file also lacks what it refers to."""
    try:
        workload_file.read_text(text)
    except StudyError as error:
        return error.message.splitlines()
    return []


STUDY_PARTS = jsonschema.Draft202012Validator(without_required(study_schema.schema()))
TOML = [(name(page), number) for page in PAGES for number, _ in enumerate(blocks(page, "toml"))]


@pytest.mark.parametrize(("page", "number"), TOML)
def test_toml_of_a_page_is_accepted(page: str, number: int, tmp_path: Path) -> None:
    path = ROOT / page
    text = blocks(path, "toml")[number]
    found = tomllib.loads(text)
    kind = kind_of(found)
    if kind == "study":
        assert [error.message for error in STUDY_PARTS.iter_errors(json.loads(json.dumps(found, default=str)))] == []
        write_files(path, tmp_path)
        read_text(completed(text, path), str(tmp_path / "study.toml"), plugins=Plugins(tmp_path, trust=any_file))
    if kind == "inventory":
        (tmp_path / "inventory.toml").write_text(text, encoding="utf-8")
        assert inventory.read(tmp_path / "inventory.toml").machines
    if kind == "workload":
        whole = "name" in found
        assert [line for line in refusals_of_a_workload(text) if whole or "no such key" in line] == []
    if kind == "profile":
        Profile.model_validate(found)
    if kind == "link":
        NamedLink.model_validate(found)


def test_blocks_of_every_kind_are_found() -> None:
    kinds = {kind_of(tomllib.loads(blocks(ROOT / page, "toml")[number])) for page, number in TOML}
    assert kinds == {"study", "workload", "inventory", "profile", "link"}
    assert len({page for page, _ in commands()}) > 25
