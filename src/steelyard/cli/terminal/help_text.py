"""Help of the commands as plain text: usage, purpose, arguments, options, examples (the context's object).

Written here and not by the library: that one shows types (`<float range> [x>=1e-06]`) and frames, and has no examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import typer.core

ANYTHING: Final = "VALUE"
"""Stands for the value of an option that does not name it."""
Rows = Sequence[tuple[str, str]]
"""Terms, and a sentence about each."""


class Command(typer.core.TyperCommand):
    """A command with examples."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help into the formatter."""
        _write(self, ctx, formatter, {})


class Group(typer.core.TyperGroup):
    """A command with subcommands, by panel."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help into the formatter."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            panel = getattr(command, "rich_help_panel", None)
            rows = panels.setdefault(panel if isinstance(panel, str) else "Commands", [])
            rows.append((name, _plain(command.help or "")))
        _write(self, ctx, formatter, panels)


def _write(command: Any, ctx: Any, formatter: Any, panels: Mapping[str, Rows]) -> None:
    words = " ".join(piece.strip("{}") for piece in command.collect_usage_pieces(ctx))
    formatter.write_usage(ctx.command_path, words)
    formatter.write_paragraph()
    formatter.write_text(_plain(command.help or ""))
    for head, rows in {**panels, **_parameters(command.get_params(ctx))}.items():
        if rows:
            with formatter.section(head):
                formatter.write_dl(rows)
    of_all, of_command = ctx.obj
    with formatter.section("Examples"):
        for line, what in of_command if ctx.parent else of_all:
            if ctx.command_path in line:
                formatter.write_text(f"# {what}")
                formatter.write(f"  {line}\n")


def _plain(text: str) -> str:
    return " ".join(text.split())


def _parameters(parameters: Iterable[Any]) -> dict[str, Rows]:
    arguments, options = [], []
    for parameter in parameters:
        if getattr(parameter, "hidden", False):
            continue
        text = _plain(getattr(parameter, "help", None) or "")
        if parameter.param_type_name == "argument":
            arguments.append((_argument_name(parameter), text))
        else:
            options.append((_option_name(parameter), _with_default(text, parameter)))
    return {"Arguments": arguments, "Options": options}


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
