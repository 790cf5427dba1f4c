"""`steelyard agent ...`: the agent alone; it replaces this process."""

from __future__ import annotations

import os
from typing import NoReturn

import typer

from steelyard.node.agent import find


def agent(context: typer.Context) -> NoReturn:
    """Become the agent; there is no return. Raises EngineError where there is none."""
    program = str(find())
    os.execv(program, [program, *context.args])
