"""The table of contents: what it lists is there, what is there is listed, and listing it costs nothing."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from steelyard.cli import commands, main
from steelyard.model.errors import StudyError
from tests.unit.cli.screen import printed

NAMES = [name for panel in main.CONTENTS.values() for name in panel]
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "commands.md"


def test_every_module_of_a_command_is_listed() -> None:
    assert sorted(NAMES) == sorted(info.name for info in pkgutil.iter_modules(commands.__path__))


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_a_body_and_stands_on_the_page(name: str) -> None:
    module = importlib.import_module(f"steelyard.cli.commands.{name}")
    assert isinstance(getattr(module, "app", None), typer.Typer) or callable(getattr(module, name))
    assert f"steelyard {name}" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in main.UNCHANGED])
def test_every_option_stands_on_the_page(name: str) -> None:
    done = CliRunner(env={"COLUMNS": "300", "NO_COLOR": "1"}).invoke(main.command_line(name), [name, "--help"])
    assert done.exit_code == 0
    page = PAGE.read_text(encoding="utf-8")
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", done.output)) - {"--help"}
    assert {option for option in options if option not in page} == set()


def test_help_imports_no_command() -> None:
    program = (
        "import sys; sys.argv = ['steelyard', '--help']\n"
        "from steelyard.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit as ended:\n    assert ended.code == 0\n"
        "dear = ('steelyard.cli.commands', 'polars', 'scipy', 'altair')\n"
        "heavy = [name for name in sys.modules if name.startswith(dear)]\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f" {name} " in done.stdout for name in NAMES)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["audit", "hajji2016"], 0),
        (["audit", "srinadhuni2018"], 1),
        (["reference", "list"], 0),
        (["check", "--scale", "0", "x.toml"], 2),
        (["chek"], 2),
    ],
)
def test_the_exit_code_is_what_the_command_returns(words: list[str], code: int) -> None:
    assert CliRunner().invoke(main.command_line(words[0]), words).exit_code == code


def test_a_refusal_is_said_with_its_hint_and_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(wanted: str) -> typer.Typer:
        error = StudyError(f"{wanted} [is] wrong", "do this")
        error.add_note("and know that")
        raise error

    def command() -> int:
        with pytest.raises(SystemExit) as ended:
            main.main()
        assert isinstance(ended.value.code, int)
        return ended.value.code

    monkeypatch.setattr(sys, "argv", ["steelyard", "--version", "check"])
    monkeypatch.setattr(main, "command_line", refuse)
    found = printed(command)
    assert (found.code, found.out) == (2, "")
    assert found.err.splitlines() == ["steelyard: check [is] wrong", "  do this", "  and know that"]
