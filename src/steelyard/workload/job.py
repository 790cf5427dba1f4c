"""Jobs on a cluster: one of the system's own, or a jar or script of one's own; one job is one operation.

The files `wordcount.toml`, `sort.toml` and `terasort.toml` are the system's own jobs. They differ only in their
defaults.
"""

from __future__ import annotations

import json
from typing import Any, Final, Self

from pydantic import Field, model_validator

from steelyard.model.data_model import Schema
from steelyard.model.errors import StudyError
from steelyard.model.job_inputs import CHECKS, Kind
from steelyard.model.value import Value
from steelyard.wire.order import SPARK, JobInput, Jobs

NAME: Final = "job"
FILES: Final = {"program": "program of the job"}
EASY: dict[str, Any] = {"easy": True}
"""The setting can change between trials of one start: inputs are kept next to each other."""
MB: Final = 1_000_000


class Settings(Value):
    """A job, its input, and what must come out."""

    program: str = Field(default="", json_schema_extra=EASY)
    """Jar or script that is submitted, relative to the study; empty: the system's own job of the workload's name."""
    main_class: str = Field(default="", json_schema_extra=EASY)
    """Class of a jar that is executed."""
    arguments: tuple[str, ...] = Field(default=("{input}", "{output}"), json_schema_extra=EASY)
    """Arguments of the program. `{input}` and `{output}` are the URLs of the input and of a folder that does not
    exist."""
    input_mb: int = Field(default=100, ge=0, le=250_000, json_schema_extra=EASY)
    """Size of the input in millions of bytes; 0: no input."""
    input_kind: Kind = Field(default="text", json_schema_extra=EASY)
    """text: lines of words, whose frequencies follow Zipf's law; tera: lines of 100 bytes with a key of 10."""
    seed: int = Field(default=1, ge=0, le=2**63 - 1, json_schema_extra=EASY)
    """Seed of the input."""
    expected: str = Field(default="", json_schema_extra=EASY)
    """Content that the last line of the job must have: a JSON object, whose keys must all be there with these values.
    `counts`: the number of words of the input and a digest of their counts; `order`: its lines in order. Empty:
    anything. Another line is an error of kind `invalid`."""
    idle_s: float = Field(default=0.0, ge=0, le=86_400, json_schema_extra=EASY)
    """Seconds without load before each job of a closed loop; they are not part of its time."""

    @model_validator(mode="after")
    def _can_be_checked(self) -> Self:
        asked = self.expected
        if asked in CHECKS and not self.input_mb:
            raise ValueError(f"expected {asked!r} needs an input: set input_mb to 1 or more")
        if asked and asked not in CHECKS and not _is_object(asked):
            raise ValueError(f"expected must be {' or '.join(CHECKS)}, a JSON object or empty, not {asked!r}")
        return self


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


class Job:
    """A job that is submitted again and again."""

    protocols: tuple[str, ...] = (SPARK,)
    writes = False
    """Its output is removed."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings, self.name = settings, name

    def schema(self) -> Schema:
        """The input: path, kind, bytes and seed."""
        of = self.settings
        path = f"/inputs/{of.input_kind}-{of.input_mb}mb-{of.seed}"
        return Schema(inputs=((path, of.input_kind, of.input_mb * MB, of.seed),) if of.input_mb else ())

    def data(self) -> dict[str, Any]:
        """No records: nothing is filled."""
        return {"records": 0}

    def order(self) -> Jobs:
        """The `work` of an order."""
        of = self.settings
        inputs = [
            JobInput(path=path, kind=of.input_kind, bytes=size, seed=seed)
            for path, _, size, seed in self.schema().inputs
        ]
        return Jobs(
            name=self.name, program=of.program, main_class=of.main_class,
            arguments=of.arguments if of.program else (), input=inputs[0] if inputs else None, expected=of.expected,
            idle_s=of.idle_s,
        )  # fmt: skip


def create(settings: Settings, name: str = NAME) -> Job:
    """The workload under its settings; `name`: of the job. Raises StudyError for no job."""
    if name == NAME and not settings.program:
        hint = "name a jar or a script, relative to the study; or choose workload wordcount, sort or terasort"
        raise StudyError("workload job has no program", hint, key="workload.program", read=settings.program)
    return Job(settings, name)
