"""First study files: a commented file for each kind of question, from the templates of the package.

A template is `template/SYSTEM/QUESTION.toml`. After the line of its schema, its first comment is the question that it
answers; its comments that begin with `#   steelyard` are the commands to type next. `$name` and `$schema` are replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

from pydantic import ValidationError

from steelyard.model.errors import StudyError
from steelyard.model.study import About
from steelyard.study import schema
from steelyard.tomlfile.problems import from_validation, problem

FOLDER: Final = Path(__file__).parent / "template"
QUESTIONS: Final = ("scale", "compare", "search", "gate", "grow", "repeat")
SYSTEMS: Final = ("cassandra", "simulated")
SUFFIX: Final = ".toml"
COMMAND: Final = "#   steelyard "
SCHEMAS: Final = ("./study.schema.json", "./schema/study.schema.json", "../schema/study.schema.json")
"""Where the schema of study files may lie, relative to a new one; the first is where it is written otherwise."""


@dataclass(frozen=True)
class NewStudy:
    """A written study file with its schema and the next commands."""

    path: Path
    schema: Path
    """The schema that editors use."""
    commands: tuple[str, ...]
    """Commands to type next, each with its comment."""


def about(question: str, system: str = SYSTEMS[0]) -> str:
    """The question of a template, from its first comment."""
    return _template(question, system).splitlines()[1].removeprefix("# ").partition("?")[0] + "?"


def write(name: str, question: str, system: str, folder: Path) -> NewStudy:
    """Write `NAME.toml`, and the schema of study files unless one of `SCHEMAS` exists.

    Raises StudyError for a name, a question or a system that cannot be, and where there is such a file already.
    """
    name = name.removesuffix(SUFFIX)
    _check(name, question, system)
    existing = next((place for place in SCHEMAS if (folder / place).is_file()), None)
    text = Template(_template(question, system)).substitute(name=name, schema=existing or SCHEMAS[0])
    path = folder / f"{name}{SUFFIX}"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise StudyError(f"{path} exists, and is left as it is", "give another name", path=str(path)) from error
    if existing is None:
        (folder / SCHEMAS[0]).write_text(schema.text(), encoding="utf-8")
    commands = tuple(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith(COMMAND))
    return NewStudy(path, folder / (existing or SCHEMAS[0]), commands)


def _check(name: str, question: str, system: str) -> None:
    if "/" in name:
        hint = f"the file is written into the current folder: cd {Path(name).parent}, then give {Path(name).name!r}"
        raise problem("NAME", name, "must be a name and not a path", hint=hint)
    try:
        About(name=name, question=question)
    except ValidationError as error:
        raise from_validation(error, "", About)[0] from error
    if question not in QUESTIONS:
        raise problem("--question", question, "no such question", QUESTIONS)
    if system not in SYSTEMS:
        raise problem("--system", system, "there is no first study of this system", SYSTEMS)


def _template(question: str, system: str) -> str:
    return (FOLDER / system / f"{question}{SUFFIX}").read_text(encoding="utf-8")
