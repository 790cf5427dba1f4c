"""`steelyard load WORKLOAD --contact ADDRESS`: the load engine by itself, against a cluster that runs already.

Creates the tables and fills them if asked, drives the load, prints a line a second, and says at the end what was sent,
what was done and what went wrong, in plain words.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from rich.console import Console

from steelyard import engine_order, plugin
from steelyard.cli.terminal import load_output
from steelyard.dropin import driving
from steelyard.model.data_model import Schema
from steelyard.model.errors import EngineError, StudyError
from steelyard.model.study import Load
from steelyard.node import agent
from steelyard.study.problems import from_validation, problem
from steelyard.system.base import Endpoint
from steelyard.workload.base import Explains, Workload

EXIT_DONE, EXIT_ERRORS, EXIT_INTERRUPTED = 0, 1, 130
DEFAULT_PORT = 9042
DEFAULT_DURATION_S = 10.0
SHOW_TIMEOUT_S = 30.0
POPULATE_THREADS = 64
DRIVING = ("operations", "duration_s", "rate_per_s", "schedule", "phases")
"""Fields of `load` of which one means that load is driven, not only tables filled."""
OF_DRIVING = ("warm_up_s", "read_consistency", "write_consistency")
"""Fields that filling does not heed."""
OF_STUDIES = ("engine", "capacity_threads", "capacity_s")
"""Fields that only the laboratory heeds."""
MISSING = ("does not exist", "unconfigured table")
"""What Cassandra says of a keyspace or a table that is not there."""
NOBODY = ("127.0.0.1:9042",)
"""Contacts of an order that is only looked at."""


@dataclass(frozen=True)
class Asked:
    """The command line."""

    workload: str | None
    order: Path | None
    contacts: tuple[str, ...]
    create: bool
    populate: bool
    replication_factor: int
    show: int | None
    load: Mapping[str, Any]
    """Fields of `load` as a study has them."""
    settings: tuple[str, ...]
    """`name=value`: settings of the workload, or fields of `load`."""
    seed: int
    workers: int | None
    as_json: bool


def load(asked: Asked, console: Console) -> int:
    """Carry out the command. Returns the exit code: 0 done, 1 done with errors, 130 interrupted."""
    if asked.order is not None:
        return _raw(asked, console)
    if asked.workload is None:
        raise StudyError("name a workload: a TOML file, or one of those by name", _names_hint())
    fields, settings = _split(asked)
    workload = made(asked.workload, settings)
    schema = workload.schema()
    contacts = with_ports(asked.contacts) or (NOBODY if asked.show is not None else ())
    if not contacts:
        raise StudyError(
            "name the cluster: --contact ADDRESS[:PORT]", "or --show 5 to see what the workload would send"
        )
    endpoint = Endpoint(workload.protocol, contacts, schema.keyspace, schema.table)
    given, drives = _load_of(fields, filling=asked.create or asked.populate)
    order = engine_order.measure(given, endpoint, schema, workload, asked.seed)
    if asked.show is not None:
        return show(order, asked.show, asked.as_json)
    if isinstance(workload, Explains):
        load_output.explained(workload.name, workload.explain(), console)
    threads = given.threads if "threads" in fields else POPULATE_THREADS
    filling = {
        **engine_order.populate(endpoint, schema, workload, threads),
        **engine_order.connections(given, endpoint),
    }
    return asyncio.run(_all(asked, schema, filling, order if drives else None, console))


async def _all(
    asked: Asked, schema: Schema, filling: Mapping[str, Any], order: Mapping[str, Any] | None, console: Console
) -> int:
    if asked.create:
        await _create(filling["contacts"], schema, asked.replication_factor, filling.get("tls"))
        tables = ", ".join(table.name for table in schema.all_tables())
        console.print(f"created keyspace {schema.keyspace}: {tables}", highlight=False, markup=False)
    outcomes: list[Driven] = []
    if asked.populate:
        outcomes.append(await _driven(filling, asked, console))
    whole = not outcomes or (not outcomes[0][0].interrupted and not outcomes[0][0].main.totals.errors)
    if order is not None and whole:
        outcomes.append(await _driven(order, asked, console))
    return _end(outcomes, asked, console)


async def _create(
    contacts: Sequence[str], schema: Schema, replication_factor: int, tls: Mapping[str, str | None] | None
) -> None:
    """Keyspace and tables on a cluster that is not ours: nothing that is there already is changed."""
    statements = (schema.create_keyspace(replication_factor), *schema.create_rest())
    await driving.cql(contacts, statements, tls=tls)


Driven = tuple[driving.Outcome, load_output.Courses]
"""What an order came to, and the course of each of its phases."""


async def _driven(order: Mapping[str, Any], asked: Asked, console: Console) -> Driven:
    schedule = order["schedule"]
    places = int(schedule.get("threads") or schedule.get("in_flight") or 1)
    workers = asked.workers or driving.workers_for(places, schedule.get("rate_per_s"))
    lines = load_output.Lines(console)
    try:
        outcome = await driving.drive(order, workers=workers, on_connected=lines.connected, on_interval=lines.interval)
        return outcome, lines.courses
    except EngineError as error:
        missing = any(words in error.message for words in MISSING)
        error.hint = "--create makes keyspace and tables" if missing and not asked.create else error.hint
        raise


def _end(outcomes: Sequence[Driven], asked: Asked, console: Console) -> int:
    if asked.as_json:
        json.dump([load_output.as_data(*outcome) for outcome in outcomes], sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        for outcome, courses in outcomes:
            load_output.told(outcome, load_output.paper(), courses)
    if any(outcome.interrupted for outcome, _ in outcomes):
        return EXIT_INTERRUPTED
    failed = any(phase.totals.errors for outcome, _ in outcomes for phase in outcome.phases.values())
    return EXIT_ERRORS if failed else EXIT_DONE


def _raw(asked: Asked, console: Console) -> int:
    """`--order`: an order as it stands, but for its contacts where some are given."""
    assert asked.order is not None
    given = [name for name in ("workload", "create", "populate", "settings") if getattr(asked, name)]
    if given := [*given, *(name for name, value in asked.load.items() if value is not None)]:
        raise StudyError(f"--order says it all: {given[0]} would mean nothing", "change the order instead")
    try:
        order = json.loads(asked.order.read_text(encoding="utf-8"))
        if not isinstance(order, dict) or not {"contacts", "schedule", "workload"} <= order.keys():
            raise ValueError("it has no contacts, schedule and workload")
    except (OSError, ValueError) as error:
        raise StudyError(
            f"{asked.order}: no order: {error}", "see docs/reference/wire.md", path=str(asked.order)
        ) from error
    if asked.contacts:
        order["contacts"] = list(with_ports(asked.contacts))
    if asked.show is not None:
        return show(order, asked.show, asked.as_json)

    async def body() -> int:
        return _end([await _driven(order, asked, console)], asked, console)

    return asyncio.run(body())


def with_ports(contacts: Sequence[str]) -> tuple[str, ...]:
    """`address:port` of each contact; several may stand in one word with commas between."""
    found = []
    for word in (part.strip() for contact in contacts for part in contact.split(",") if part.strip()):
        address, colon, port = word.rpartition(":")
        if word.startswith("[") and word.endswith("]"):
            address, colon, port = word, "", ""
        if not colon:
            found.append(f"{word}:{DEFAULT_PORT}")
        elif port.isdigit() and 0 < int(port) < 65536 and address:
            found.append(word)
        else:
            raise StudyError(
                f"--contact {word}: is no address and port", "such as 10.0.0.1 or 10.0.0.1:9042", read=word
            )
    return tuple(dict.fromkeys(found))


def made(name: str, settings: Mapping[str, str]) -> Workload:
    """A workload by the path of its file or by name, with settings as the command line has them. Raises StudyError."""
    module = plugin.find("workload", name)
    model: type[BaseModel] = module.Settings
    workload: Workload = module.create(_validated(model, settings, "workload"))
    return workload


def _validated(model: type[BaseModel], settings: Mapping[str, Any], prefix: str) -> BaseModel:
    """Settings, given as text. Raises StudyError."""
    raw: dict[str, Any] = {}
    for name, value in settings.items():
        outer, _, inner = name.partition(".")
        if inner and isinstance(raw.setdefault(outer, {}), dict):
            raw[outer][inner] = value
        elif inner or outer in raw:
            raise StudyError(f"--set {outer} and a part of it, {outer}.NAME: one of the two", read=name)
        else:
            raw[outer] = value
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        found = from_validation(error, prefix, model)
        raise StudyError("\n".join(one.message for one in found), errors=found) from error


def _split(asked: Asked) -> tuple[dict[str, Any], dict[str, str]]:
    """Fields of `load`, and settings of the workload."""
    fields = {name: value for name, value in asked.load.items() if value is not None}
    settings: dict[str, str] = {}
    for word in asked.settings:
        name, equals, value = word.partition("=")
        if not equals:
            raise StudyError(f"--set {word}: must be NAME=VALUE", "such as --set records=1000", read=word)
        if name.startswith("load."):
            field = name.removeprefix("load.")
            if field not in Load.model_fields:
                raise problem(f"--set {name}", value, "no such key", tuple(Load.model_fields))
            if field in OF_STUDIES:
                raise StudyError(f"--set {name}: only a study heeds it", "leave it out", read=name)
            if field in fields:
                raise StudyError(f"--set {name}: load.{field} is given twice", "give it once", read=name)
            fields[field] = _listed(word, value)
        elif (name := name.removeprefix("workload.")) in settings:
            raise StudyError(f"--set {name}: is given twice", "give it once", read=name)
        else:
            settings[name] = value
    return fields, settings


def _listed(word: str, value: str) -> Any:
    """A value as the command line has it; lists and tables as JSON."""
    if value[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise StudyError(f"--set {word}: no JSON: {error}", "such as --set load.rates_per_s=[100,200]") from error


def _load_of(fields: Mapping[str, Any], *, filling: bool) -> tuple[Load, bool]:
    """How the load is driven; and whether it is: a command that creates and fills drives only what it is told to."""
    given = dict(fields)
    drives = not filling or any(name in given for name in DRIVING)
    if unused := [name for name in OF_DRIVING if name in given and not drives]:
        what = f"{unused[0]} would mean nothing: tables are filled at ALL, and no load is driven"
        raise StudyError(what, "give --duration or --operations too")
    if not any(name in given for name in ("operations", "duration_s", "phases")):
        given["duration_s"] = DEFAULT_DURATION_S
    if "rate_per_s" in given:
        given.setdefault("schedule", "constant")
    if given.get("schedule", "closed") != "closed":
        given.setdefault("threads", POPULATE_THREADS)
    found = _validated(Load, given, "load")
    assert isinstance(found, Load)
    if found.wants_capacity:
        raise StudyError("load.capacity_fraction: only a study measures what a cluster can do", "give --rate")
    return found, drives


def show(order: Mapping[str, Any], count: int, as_json: bool) -> int:
    """Print the first operations of an order with their values, without sending anything."""
    with tempfile.TemporaryDirectory(prefix="steelyard-show-") as folder:
        path = Path(folder) / "order.json"
        path.write_text(json.dumps(order), encoding="utf-8")
        argv = [str(agent.find()), "ops", "--order", str(path), "--count", str(count), "--values"]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=SHOW_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            message = f"{count:,} operations were not made within {SHOW_TIMEOUT_S:g} s"
            raise EngineError(message, "--show fewer") from None
    if done.returncode != 0:
        raise EngineError(done.stderr.strip() or f"the agent ended with {done.returncode}")
    if as_json:
        sys.stdout.write(done.stdout)
        return EXIT_DONE
    load_output.operations([json.loads(line) for line in done.stdout.splitlines()], order, load_output.paper())
    return EXIT_DONE


def _names_hint() -> str:
    return f"allowed: a path that ends in .toml, {', '.join(plugin.names('workload'))}"
