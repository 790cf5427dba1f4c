"""The table of contents: what it lists is there, what is there is listed, and listing it costs nothing."""

from __future__ import annotations

import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from steelyard.cli import commands, main
from steelyard.cli.terminal import help_text
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
    assert all(len(line) <= 80 for line in done.output.splitlines() if not line.startswith("  steelyard"))
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", done.output)) - {"--help"}
    assert {option for option in options if option not in page} == set()


HELPED = [
    "",
    *(name for name in NAMES if name not in main.UNCHANGED),
    "reference list",
    "reference show",
    "selftest stall",
]
EXAMPLES = {
    name: importlib.import_module(f"steelyard.cli.commands.{name}").EXAMPLES for name in NAMES if name in HELPED
}


def help_of(command: str) -> str:
    words = command.split()
    done = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(
        main.command_line((words or [""])[0]), [*words, "--help"], prog_name="steelyard"
    )
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("command", HELPED)
def test_a_help_reads_like_sentences_and_fits(command: str) -> None:
    shown = help_of(command)
    assert f"\n  steelyard {command}" in shown.partition("\nExamples:\n")[2]
    assert f" {help_text.ANYTHING} " not in shown
    assert not re.search(r"<\w+>|range|\[x|[╭│╰]", shown)
    assert all(len(line) <= 80 and line == line.rstrip() for line in shown.splitlines())
    texts = re.findall(r"^  (?:-|[A-Z]).*?  +(.*(?:\n {5,}.*)*)", shown, flags=re.MULTILINE)
    assert all(text.rstrip().endswith(".") for text in texts), texts


@pytest.mark.parametrize("line", [line for lines in (main.EXAMPLES, *EXAMPLES.values()) for line, _ in lines])
def test_an_example_is_understood(line: str) -> None:
    assert understood(line) in line.split()


def understood(line: str) -> str:
    """The name of the command that a line calls, which can be parsed; the shipped studies that it names exist."""
    program, *words = shlex.split(line)
    assert program == "steelyard"
    group = typer.main.get_command(main.command_line(words[0]))
    with group.make_context("steelyard", words) as context:
        name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])  # type: ignore[attr-defined]
        while isinstance(command, typer.core.TyperGroup):
            with command.make_context(name, rest, parent=context) as inner:
                words_left = [*inner._protected_args, *inner.args]
                name, command, rest = command.resolve_command(inner, words_left)
        assert command.make_context(name, rest, parent=context).params is not None
    files = [word for word in words if word.startswith("studies/")]
    assert all((PAGE.parents[2] / file).is_file() for file in files)
    return str(name)


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["run", "--quuz"], ["error: no such option: --quuz", "  see: steelyard run --help"]),
        (
            ["report", "s", "--tables"],
            ["error: option '--tables' requires an argument", "  see: steelyard report --help"],
        ),
        (["run"], ["error: missing argument 'STUDY'", "  see: steelyard run --help"]),
        (["verfy"], ["error: no such command 'verfy'. Did you mean 'verify'?", "  see: steelyard --help"]),
    ],
)
def test_words_that_are_not_understood_are_refused_in_the_style_of_all_errors(
    words: list[str], lines: list[str]
) -> None:
    def command() -> int:
        with pytest.raises(SystemExit) as ended:
            main.main(words)
        assert isinstance(ended.value.code, int)
        return ended.value.code

    shown = printed(command)
    assert (shown.code, shown.out, shown.err.splitlines()) == (2, "", lines)


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
        (["check", "--scale", "half", "x.toml"], 2),
        (["chek"], 2),
    ],
)
def test_the_exit_code_is_what_the_command_returns(words: list[str], code: int) -> None:
    assert CliRunner().invoke(main.command_line(words[0]), words).exit_code == code


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "--scale", "half", "x.toml"], "error: invalid value for '--scale': must be a valid number"),
        (["completion", "tcsh"], "error: invalid value for 'SHELL': 'tcsh' is not one of 'bash', 'zsh', 'fish'"),
    ],
)
def test_a_wrong_value_is_answered_in_own_words(words: list[str], message: str) -> None:
    def command() -> int:
        with pytest.raises(SystemExit) as ended:
            main.main(words)
        assert isinstance(ended.value.code, int)
        return ended.value.code

    assert printed(command).err.splitlines()[0] == message


def test_a_refusal_is_said_with_its_hint_and_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(wanted: str) -> typer.Typer:
        error = StudyError(f"{wanted} [is] wrong", "do this")
        error.add_note("and know that")
        raise error

    def command() -> int:
        with pytest.raises(SystemExit) as ended:
            main.main(["--version", "check"])
        assert isinstance(ended.value.code, int)
        return ended.value.code

    # No command has a refusal with a note and a bracket at once.
    monkeypatch.setattr(main, "command_line", refuse)
    found = printed(command)
    assert (found.code, found.out) == (2, "")
    assert found.err.splitlines() == ["error: check [is] wrong", "  do this", "  and know that"]
