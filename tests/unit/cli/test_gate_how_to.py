"""The how-to of gates: its commands are understood, and its snippets are what the services read."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

from steelyard.cli import main
from steelyard.plan import expand
from steelyard.plugins.find import Plugins
from steelyard.study import read

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "howto" / "gate-a-build.md").read_text(encoding="utf-8")
LINES = sorted(
    set(re.findall(r"(steelyard (?:check|run|gate) .*?)(?:\s{2,}#.*| \|\| .*|')?$", TEXT, flags=re.MULTILINE))
)


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_the_page_is_understood(line: str) -> None:
    _, *words = shlex.split(re.split(r"'\)|' ", line)[0])
    group = typer.main.get_command(main.command_line(words[0]))
    with group.make_context("steelyard", words) as context:
        name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])  # type: ignore[attr-defined]
        assert command.make_context(name, rest, parent=context).params is not None


def test_the_page_has_commands_of_every_service() -> None:
    assert len(LINES) >= 8
    for service in ("GitHub Actions", "GitLab CI", "Jenkins"):
        part = TEXT.partition(f"### {service}\n")[2].partition("\n### ")[0]
        assert "steelyard run studies/gate.toml --plain" in part
        assert "steelyard gate store/gate --junit gate.xml --markdown" in part


def test_the_factors_of_the_page_are_those_of_the_study() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, flags=re.DOTALL)
    study = tomllib.loads((ROOT / "studies" / "gate.toml").read_text(encoding="utf-8"))
    assert tomllib.loads(block)["factors"] == study["factors"]


def test_the_study_measures_both_builds_in_every_block() -> None:
    plugins = Plugins(ROOT / "studies")
    study = read(ROOT / "studies" / "gate.toml", plugins=plugins)
    plan = expand(study, plugins)
    assert plan.hard == ("system.source",)
    sources = {block: {t.treatment["system.source"] for t in plan.trials if t.block == block} for block in range(1, 13)}
    assert all(levels == {"main=builds/main", "commit=builds/commit"} for levels in sources.values())
    assert study.analysis.equivalence_margin_percent == 2
