"""JSON schemas of what commands print with `--json`, generated from the types of the values that they print.

A file `schema/output/NAME.schema.json` for each command: its words joined by hyphens. A reader must ignore fields that
it does not know: the schemas allow them, and later versions may add some. `tests/unit/tools/test_json_outputs.py` holds
the real output of every command against its schema, closed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from steelyard.analysis import statistics
from steelyard.analysis.cells import ObjectiveVerdict
from steelyard.analysis.comparisons.confounders import Difference
from steelyard.analysis.comparisons.two_sided import Contrast
from steelyard.analysis.statistics.look import LookRow
from steelyard.analysis.treatments import Treatment
from steelyard.cli import commands
from steelyard.field_docs import described
from steelyard.judging.noise_floor import FoundFloor
from steelyard.judging.stopping import Decision, Rule
from steelyard.lab.conductor import Outcome
from steelyard.lab.leftovers import Found
from steelyard.model.calibration import Calibration
from steelyard.model.damage import Damage
from steelyard.model.estimate import Estimate
from steelyard.model.named_level import Level
from steelyard.model.plan import Plan
from steelyard.model.study import About
from steelyard.model.value import Value
from steelyard.node.machine import Machine
from steelyard.plan.detectable_difference import Resolution
from steelyard.plan.estimate import PlanEstimate
from steelyard.plan.gate_forecast import GateForecast
from steelyard.plan.stopping_forecast import Expected
from steelyard.progress.reason_words import ReasonGroup
from steelyard.reference.comparison import PublishedPair
from steelyard.reference.tables import Table as PublishedTable
from steelyard.selftest.stall import Proof
from steelyard.store.measured_again import MeasuredAgain
from steelyard.verify.checklist import Verification
from steelyard.wire.record import Connected
from steelyard.workload.base import Explanation

REF: Final = "#/$defs/{model}"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
FOLDER: Final = "schema/output"
Schema = dict[str, Any]


class StudyProblem(Value):
    """One error of a study file."""

    message: str
    hint: str
    path: str
    line: int
    """0 if it is not known."""
    key: str


class Forecast(Value):
    """Forecast of the blocks that a stopping rule needs."""

    rule: Rule
    expected: tuple[Expected, ...]


class FloorOfCheck(FoundFloor):
    """Noise floor that applies to the study."""

    said: str
    """The same in words."""


class Checked(Value):
    """A study that can be planned."""

    study: About
    treatments: tuple[Treatment, ...]
    aliases: tuple[str, ...]
    """Aliases of a fractional design, in words."""
    workloads: dict[str, Explanation]
    """Explanation of each workload, by name."""
    plan: Plan
    estimate: PlanEstimate | None
    """Estimate for the trials whose parts exist; None if there are none."""
    machine: Machine
    resolution: tuple[Resolution, ...]
    """Detectable differences, by factor."""
    warnings: tuple[str, ...]
    until: Forecast | None
    """None without a stopping rule."""
    noise_floor: FloorOfCheck
    gate: tuple[GateForecast, ...]
    """Forecast of a gate over each factor; empty without `--gate`."""
    missing: tuple[StudyProblem, ...]
    """Parts that the study names and that do not exist yet."""
    errors: tuple[StudyProblem, ...]
    """Reasons to refuse the study; empty if it can run."""


class Refused(Value):
    """A study that cannot be planned."""

    errors: tuple[StudyProblem, ...]


class CellOfStatus(Value):
    """One cell, as the report counts it."""

    cell: str
    """`workload A, 3 nodes`."""
    attempts_not_valid: int
    valid: int
    n: int
    """Used trials."""
    starts: int
    response: str
    value: Estimate | None
    value_text: str
    carried: str
    """Of searches: the rate that the cell carries within their limits, or the bounds, in a sentence; else empty."""
    not_valid: dict[str, int]
    """Reason to number of attempts."""
    objective: ObjectiveVerdict | None
    """Whether the cell meets the study's objective, by the interval over starts; None without an objective."""


class Status(Value):
    """Progress of a study."""

    study: str
    store: str
    """The study's folder."""
    planned: int | None
    """Trials of the plan; None if the plan cannot be read."""
    done: int
    look: LookRow
    """Which look at the study this is, and whether it is finished."""
    not_needed: int
    """Trials that a stopping rule made unnecessary."""
    not_run: tuple[str, ...]
    """Why trials are not run that need a threshold from others; each reason once."""
    until: Decision | None
    valid: int
    attempts: int
    reasons: dict[str, int]
    """Kind of reason to number of attempts."""
    reason_groups: tuple[ReasonGroup, ...]
    state: str
    """`in progress`, `finished`, `interrupted` or `failed`."""
    why: str
    process: int | None
    """Process that is currently writing the store."""
    command: tuple[str, ...]
    """Command that resumes the study; empty if there is none."""
    last_event: dict[str, Any] | None
    """The last line of the journal, with its `words`: those of the terminal where it is of an activity."""
    waiting: str
    """Busy programs while the study waits for a quiet machine, otherwise empty."""
    objective: str | None
    """The objective that the study declares, such as `response_ms_p99 < 10`; None without one."""
    cells: tuple[CellOfStatus, ...]
    measured_again: tuple[MeasuredAgain, ...]
    """Attempts that were removed or set aside and measured again."""
    other_limits: tuple[str, ...]
    """Limits that attempts were judged by and that differ from the study's."""
    limits: tuple[str, ...]
    """What limits the answer, most important first; empty while the study is in progress."""
    damages: tuple[Damage, ...]


class ComparedSide(Value):
    """One side of a comparison."""

    name: str
    fixed: dict[str, Level]
    """Factor to the level that this side is fixed to."""


class Compared(Value):
    """Two stores, or two treatments of one."""

    a: ComparedSide
    b: ComparedSide
    looks: tuple[str, ...]
    """Which look this is, and whether a study is unfinished; empty at the only look of finished studies."""
    unit_of_replication: str
    comparisons: tuple[Contrast, ...]
    differences: tuple[Difference, ...]
    """Other differences between the sides."""
    warnings: tuple[str, ...]
    noise_floor: tuple[str, ...]
    missing: tuple[str, ...]
    """Parts that only one side has."""
    limits: tuple[str, ...]
    """What limits the answer, most important first."""


class OwnTreatment(Value):
    """A treatment of the store, compared with published numbers."""

    treatment: str
    n: int
    facets: dict[str, Any]


class ComparedWithPublished(Value):
    """The store's results compared with published ones."""

    reference: str
    beside: tuple[PublishedPair, ...]
    own: tuple[OwnTreatment, ...]
    remarks: tuple[str, ...]


class LeaseElsewhere(Value):
    """A lease of another state folder."""

    lease: str
    state_folder: str


class Cleaned(Value):
    """Leftovers of killed studies."""

    leases: tuple[Found, ...]
    elsewhere: tuple[LeaseElsewhere, ...]


class PhaseOfLoad(Value):
    """One phase of a load; times in milliseconds."""

    execution_s: float
    operations: int
    asked_per_s: float | None
    """Rate of the schedule; None for a closed loop, or if it varies."""
    rate_per_s: float | None
    """Achieved rate: operations without error per second."""
    errors: int
    errors_by_kind: dict[str, int]
    unsent: int
    """Operations that were due and not sent: neither done nor failed."""
    error_texts: dict[str, tuple[str, ...]]
    not_found: int
    rows: int
    reconnections: int
    dropped: int
    cpu_s: float
    busiest_thread_fraction: float
    lag_ms_p99: float | None
    pacing_ms_p99: float | None
    response_ms: dict[str, Estimate | None]
    """`p50`, `p95` ... to the percentile; None if there are too few operations."""
    by_operation: dict[str, dict[str, Any]]
    """Operation to `outcomes` (outcome to number) and percentiles such as `response_ms_p99`."""


class Loaded(Value):
    """One completed load."""

    connected: Connected | dict[str, Any]
    """Empty if no connection was made."""
    interrupted: bool
    phases: dict[str, PhaseOfLoad]


class ShownStatement(Value):
    """A statement of a step, with the values that it binds."""

    name: str
    values: tuple[Any, ...]


class ShownStep(Value):
    """Statements that are sent together."""

    statements: tuple[ShownStatement, ...]


class ShownOperation(Value):
    """One operation of a workload file; `--show` prints one per line."""

    index: int
    kind: str
    key_number: int
    steps: tuple[ShownStep, ...]


class ShownYcsbOperation(Value):
    """One operation of a YCSB workload; `--show` prints one per line."""

    index: int
    kind: str
    key: str
    key_number: int
    field: int | None
    scan_length: int
    values: dict[str, Any]


class TableOfReport(Value):
    """One table of the report."""

    about: dict[str, str]
    """Column to its meaning, with the unit."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    """Values in the order of the columns."""


class _AsPrinted(GenerateJsonSchema):
    """Fields with a default are printed like all others; those of dataclasses have their docstrings, too."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Whether every output has the field."""
        return True

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """The schema with the meanings of the fields."""
        return described(super().dataclass_schema(schema), schema["cls"])


def _plain(kind: Any) -> Schema:
    return TypeAdapter(kind).json_schema(mode="serialization", ref_template=REF, schema_generator=_AsPrinted)


def of(kind: Any, title: str) -> Schema:
    """The schema of a type as it is printed."""
    schema = _plain(kind)
    return {"$schema": DIALECT, **schema, "title": title}


def extended(schema: Schema, definition: str, **properties: Schema) -> Schema:
    """The schema with more fields in one of its definitions; an empty name is the whole."""
    target = schema["$defs"][definition] if definition else schema
    target["properties"] |= properties
    target["required"] = [*target.get("required", []), *properties]
    return schema


def _number(about: str) -> Schema:
    return {"type": "number", "description": about}


def _yes_no(about: str) -> Schema:
    return {"type": "boolean", "description": about}


def _run() -> Schema:
    schema = of(Outcome, "steelyard run --json")
    schema = extended(
        schema,
        "",
        store={"type": "string", "description": "The study's folder."},
        interrupted=_yes_no("Whether it was interrupted."),
        look=_plain(LookRow),
    )
    decision = _plain(Decision)
    schema.setdefault("$defs", {}).update(decision.pop("$defs", {}))
    schema["properties"]["until"] = decision | {"description": "With a stopping rule: its last decision."}
    return schema


def _report() -> Schema:
    schema = of(dict[str, TableOfReport], "steelyard report --json")
    table = schema.pop("additionalProperties")
    titles = {**{one.name: one.title for one in statistics.every()}, "limits": "What limits the answer"}
    schema["properties"] = {name: {**table, "description": title} for name, title in titles.items()}
    schema["required"] = list(schema["properties"])
    return schema


def _verify() -> Schema:
    checks = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "Kind of check to its result.",
    }
    return extended(
        of(Verification, "steelyard verify --json"), "", sound=_yes_no("Whether nothing differs."), checks=checks
    )


def _stall() -> Schema:
    checks = {
        "type": "object",
        "additionalProperties": {"type": "boolean"},
        "description": "Condition to whether it holds.",
    }
    return extended(
        of(Proof, "steelyard selftest stall --json"),
        "",
        error_fraction=_number("Relative error of the measured p99."),
        checks=checks,
        passed=_yes_no("Whether every condition holds."),
    )


def _calibrate() -> Schema:
    ceiling = _number("The ceiling, operations per second: measured_per_s over the busy share of the worker's thread.")
    return extended(of(Calibration, "steelyard calibrate --json"), "Ceiling", per_s=ceiling)


def _compare() -> Schema:
    schema = of(Compared | ComparedWithPublished, "steelyard compare --json")
    sentence = {"type": "string", "description": "The row in words."}
    return extended(schema, "PublishedPair", sentence=sentence)


def _shown() -> Schema:
    schema = of(ShownOperation | ShownYcsbOperation, "One line of steelyard load --show --json")
    batch = {"type": "string", "description": "The kind of batch, if the statements are one."}
    schema["$defs"]["ShownStep"]["properties"]["batch"] = batch
    return schema


def _published(title: str, rows: Schema | None) -> Schema:
    """Tables without internal fields; `rows` in place of the rows themselves."""
    schema = of(tuple[PublishedTable, ...], title)
    table = schema["$defs"]["Table"]
    table["properties"].pop("spread")
    table["required"].remove("spread")
    if rows is not None:
        table["properties"]["rows"] = rows
    return schema


def _declared() -> dict[str, Callable[[], Schema]]:
    """Schemas of the commands whose module declares the type that `--json` prints."""
    modules = {one.name: import_module(f"{commands.__name__}.{one.name}") for one in iter_modules(commands.__path__)}
    return {
        name: partial(of, module.JSON_TYPE, f"steelyard {name} --json")
        for name, module in modules.items()
        if hasattr(module, "JSON_TYPE")
    }


SCHEMAS: Final[Mapping[str, Callable[[], Schema]]] = {
    **_declared(),
    "calibrate": _calibrate,
    "check": lambda: of(Checked | Refused, "steelyard check --json"),
    "clean": lambda: of(Cleaned, "steelyard clean --json"),
    "compare": _compare,
    "load": lambda: of(tuple[Loaded, ...], "steelyard load --json"),
    "load-show": _shown,
    "reference-list": lambda: _published("steelyard reference list --json", {"type": "integer"}),
    "reference-show": lambda: _published("steelyard reference show --json", None),
    "report": _report,
    "run": _run,
    "selftest-stall": _stall,
    "status": lambda: of(Status, "steelyard status --json"),
    "verify": _verify,
}
"""Name of the file to the function that makes the schema. The name is a command with `--json`, its words joined by
hyphens. A command whose output is one type declares it, as `JSON_TYPE` of its module; here are those that print more or
less than a type. `load-show` is separate, because `load --show --json` prints other lines."""


def text(name: str) -> str:
    """The schema as the text of its file."""
    return json.dumps(_open(SCHEMAS[name]()), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _open(schema: Any) -> Any:
    """The schema without the rule that an object has no further fields."""
    if isinstance(schema, list):
        return [_open(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _open(value) for key, value in schema.items()}
    if kept.get("additionalProperties") is False:
        del kept["additionalProperties"]
    return kept


def _maker(name: str) -> Callable[[], str]:
    return lambda: text(name)


FILES: Final[Mapping[str, Callable[[], str]]] = {f"{FOLDER}/{name}.schema.json": _maker(name) for name in SCHEMAS}
"""Path below the repository's root to the function that makes the file's text."""
