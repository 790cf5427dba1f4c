"""Help of the commands as plain text: usage, what it does, arguments, options, examples.

Written here and not by the library: that one shows types (`<float range> [x>=1e-06]`) and frames, and has no examples.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Final

import typer.core

from steelyard.cli.examples import EXAMPLES

WIDTH: Final = 80
LEAST_WIDTH: Final = 40
INDENT: Final = "  "
GAP: Final = 2
LONGEST_TERM: Final = 30
"""A longer option stands on a line of its own."""
ANYTHING: Final = "VALUE"
"""Stands for the value of an option that does not name it."""


class Command(typer.core.TyperCommand):
    """A command with examples."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help into the formatter."""
        parts = [_usage(self, ctx), _sentence(self), *_parameters(self.get_params(ctx)), _examples(ctx)]
        formatter.write("\n\n".join(part for part in parts if part) + "\n")


class Group(typer.core.TyperGroup):
    """A command with commands of its own, by panel."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help into the formatter."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            panel = getattr(command, "rich_help_panel", None)
            lines = panels.setdefault(panel if isinstance(panel, str) else "Commands", [])
            lines.append((name, _plain(command.help or "")))
        commands = [_listing(f"{panel}:", lines) for panel, lines in panels.items()]
        options = _parameters(self.get_params(ctx))
        parts = [_usage(self, ctx), _sentence(self), *commands, *options, _examples(ctx)]
        formatter.write("\n\n".join(part for part in parts if part) + "\n")


def _width() -> int:
    return max(LEAST_WIDTH, min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns))


def _wrapped(text: str, indent: str = "", first: str | None = None) -> str:
    return textwrap.fill(
        text, _width(), initial_indent=indent if first is None else first, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _plain(text: str) -> str:
    return " ".join(text.split())


def _usage(command: Any, ctx: Any) -> str:
    pieces = command.collect_usage_pieces(ctx)
    words = " ".join(piece.replace("{", "").replace("}", "") for piece in pieces)
    return _wrapped(f"Usage: {ctx.command_path} {words}", INDENT * 2, "")


def _sentence(command: Any) -> str:
    return _wrapped(_plain(command.help or ""))


def _parameters(parameters: Iterable[Any]) -> list[str]:
    arguments, options = [], []
    for parameter in parameters:
        if getattr(parameter, "hidden", False):
            continue
        text = _plain(getattr(parameter, "help", None) or "")
        if parameter.param_type_name == "argument":
            arguments.append((_argument_name(parameter), text))
        else:
            options.append((_option_name(parameter), _with_default(text, parameter)))
    return [_listing("Arguments:", arguments), _listing("Options:", options)]


def _argument_name(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _option_name(parameter: Any) -> str:
    names = ", ".join(sorted(parameter.opts, key=lambda word: word.startswith("--")))
    if parameter.is_flag or parameter.name == "help":
        return names
    return f"{names} {parameter.metavar or ANYTHING}"


def _with_default(text: str, parameter: Any) -> str:
    default = parameter.default
    if parameter.is_flag or default is None or callable(default) or parameter.name == "help":
        return text
    shown = f"{default:g}" if isinstance(default, float) else str(default)
    return f"{text} Default: {shown}."


def _listing(head: str, lines: Sequence[tuple[str, str]]) -> str:
    """Terms on the left, sentences on the right."""
    if not lines:
        return ""
    room = max((len(term) for term, _ in lines if len(term) <= LONGEST_TERM), default=LONGEST_TERM)
    indent = " " * (len(INDENT) + room + GAP)
    rows = [head]
    for term, text in lines:
        if len(term) > room:
            rows.append(INDENT + term)
            rows.append(_wrapped(text, indent))
        else:
            rows.append(_wrapped(text, indent, f"{INDENT}{term:<{room}}{' ' * GAP}").rstrip())
    return "\n".join(rows)


def _examples(ctx: Any) -> str:
    words: list[str] = []
    while ctx.parent is not None:
        words.insert(0, ctx.info_name)
        ctx = ctx.parent
    lines = [f"{_wrapped(f'# {what}', INDENT)}\n{INDENT}{line}" for line, what in EXAMPLES.get(" ".join(words), ())]
    return "\n".join(["Examples:", *lines]) if lines else ""
