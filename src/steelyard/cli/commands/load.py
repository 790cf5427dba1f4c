"""`steelyard load WORKLOAD --contact ADDRESS`: the load engine alone, against a running cluster.

Creates the tables and fills them if asked, drives the load, prints a line per second, and reports at the end what was
sent, what was done and what went wrong, in plain words.
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

from pydantic import ValidationError
from rich.console import Console

from steelyard import engine_order
from steelyard.cli.load_options import (
    Consistency,
    Contact,
    Create,
    Duration,
    Operations,
    OrderFile,
    Populate,
    Protocol,
    Rate,
    ReplicationFactor,
    Schedule,
    Seed,
    Settings,
    ShowCount,
    Threads,
    WarmUp,
    Workers,
    WorkloadName,
)
from steelyard.cli.signature import Json
from steelyard.cli.terminal import load_output
from steelyard.cli.terminal.output import message_console, say
from steelyard.dropin import agent_run, other_tables, wording
from steelyard.dropin.contacts import with_ports
from steelyard.dropin.given import protocols_of, settings_of, workload_of
from steelyard.engine_order import without_meaning
from steelyard.format import listed
from steelyard.model.data_model import Schema
from steelyard.model.errors import EngineError, StudyError
from steelyard.model.load import Load
from steelyard.node import agent
from steelyard.plugins import find
from steelyard.shown_text import json_text, shown_json
from steelyard.system.base import Endpoint
from steelyard.tomlfile.problems import from_validation, problem
from steelyard.wire import schedule as schedules
from steelyard.wire.order import CQL, POSTGRESQL, Order, Tls, Ycsb
from steelyard.workload.base import Explains, Workload

EXAMPLES = (
    ("steelyard load ycsb-a -c 10.0.0.1 --create --populate", "Create the tables and fill them."),
    ("steelyard load ycsb-a -c 10.0.0.1 --rate 2000 -d 60", "Offer 2,000 operations per second for 60 s."),
    ("steelyard load studies/workloads/timeseries.toml --show 5", "Print five operations; send nothing."),
)
EXIT_DONE, EXIT_ERRORS, EXIT_INTERRUPTED = 0, 1, 130
DEFAULT_DURATION_S = 10.0
SHOW_TIMEOUT_S = 30.0
POPULATE_THREADS = 64
DRIVING = ("operations", "duration_s", "rate_per_s", "schedule", "phases")
"""Fields of `load` of which one means that load is driven, not only tables filled."""
OF_DRIVING = ("warm_up_s", "read_consistency", "write_consistency")
"""Load fields that populating ignores."""
OF_STUDIES = ("engine", "capacity_threads", "capacity_s")
"""Fields that only the laboratory uses."""
DIFFERENT = "drop that table if it is not needed, or load its columns or another table (--set, or a workload file)"
Driven = tuple[agent_run.LoadResult, load_output.Courses, schedules.Schedule | None]
"""Outcome of an order, the course of each of its phases, and its schedule (None if its phases have their own)."""
UNUSED_CONTACTS = ("127.0.0.1:9042",)
"""Contacts of an order that is only looked at."""


@dataclass(frozen=True)
class Options:
    """Options that hold for every order of the command."""

    workers: int | None
    creates: bool
    """Whether keyspace and tables are made first."""
    show: int | None
    """Print that many operations of an order instead of sending it."""
    as_json: bool
    console: Console


def load(
    workload: WorkloadName = None,
    contact: Contact = None,
    create: Create = False,
    populate: Populate = False,
    show_count: ShowCount = None,
    order: OrderFile = None,
    threads: Threads = None,
    rate: Rate = None,
    schedule: Schedule = None,
    duration: Duration = None,
    operations: Operations = None,
    warm_up: WarmUp = None,
    consistency: Consistency = None,
    protocol: Protocol = None,
    replication_factor: ReplicationFactor = 1,
    settings: Settings = None,
    seed: Seed = 1,
    workers: Workers = None,
    as_json: Json = False,
) -> int:
    """Run the command. Returns the exit code: 0 done, 1 done with errors or with operations that were due and not
    sent, 130 interrupted."""
    options = Options(workers=workers, creates=create, show=show_count, as_json=as_json, console=message_console())
    named = {"threads": threads, "rate_per_s": rate, "schedule": schedule, "duration_s": duration,
             "operations": operations, "warm_up_s": warm_up, "read_consistency": consistency,
             "write_consistency": consistency}  # fmt: skip
    given = {name: value for name, value in named.items() if value is not None}
    if order is not None:
        others = {"workload": workload, "create": create, "populate": populate, "settings": settings,
                  "protocol": protocol}  # fmt: skip
        refused = [*(name for name, value in others.items() if value), *given]
        return _raw(order, contact or (), refused, options)
    if workload is None:
        raise StudyError("name a workload: a TOML file, or one of these names", _names_hint())
    fields, chosen = split(settings or (), given)
    source = workload_of(workload, chosen)
    schema = source.schema()
    spoken = _protocol(source, protocol, None if show_count is not None else options.console)
    if create and spoken != CQL:
        by_hand = f" and execute there: {'; '.join(schema.in_sql())}" if spoken == POSTGRESQL else ""
        raise StudyError(f"--create has no effect over {spoken}", f"leave it out{by_hand}")
    contacts = with_ports(contact or (), spoken) or (UNUSED_CONTACTS if show_count is not None else ())
    if not contacts:
        raise StudyError("name the cluster: --contact ADDRESS[:PORT]", "or see what would be sent: --show 5")
    compared = populate or "validate_fraction" in chosen or not isinstance(source.order(), Ycsb)  # else whose rows?
    endpoint = Endpoint(spoken, contacts, schema.keyspace, schema.table, compared=compared)
    wanted, drives = _load_of(fields, filling=create or populate)
    if unmeant := list(without_meaning(wanted, f"workload {source.name}", spoken)):
        raise unmeant[0]
    measured = engine_order.measure(wanted, endpoint, schema, source, seed)
    if show_count is not None:
        return show(measured, show_count, as_json)
    if isinstance(source, Explains):
        load_output.explained(source.name, source.explain(), options.console)
    at_once = wanted.threads if "threads" in fields else POPULATE_THREADS
    filling = engine_order.populate(endpoint, schema, source, at_once, connected_as=wanted)
    steps = [*([filling] if populate else []), *([measured] if drives else [])]
    with wording.spoken(wording.LOAD):
        return asyncio.run(_all(options, schema, filling, steps, replication_factor))


async def _all(
    options: Options, schema: Schema, filling: Order, steps: Sequence[Order], replication_factor: int
) -> int:
    """Create where that is asked for, then one order after another; none after one with errors."""
    if options.creates:
        await _create(filling.contacts, schema, replication_factor, filling.tls)
        tables = ", ".join(table.name for table in schema.all_tables())
        say(options.console, f"keyspace {schema.keyspace}: {tables}: created if missing, the rest is unchanged")
    outcomes: list[Driven] = []
    for order in steps:
        outcomes.append(await _driven(order, options, schema if order.target.protocol == CQL else None))
        if outcomes[-1][0].interrupted or outcomes[-1][0].main.totals.errors:
            break
    return _end(outcomes, options)


async def _create(contacts: Sequence[str], schema: Schema, replication_factor: int, tls: Tls | None) -> None:
    """Keyspace and tables on a cluster that is not ours: nothing that is there already is changed."""
    statements = (schema.create_keyspace(replication_factor), *schema.create_rest())
    await agent_run.cql(contacts, statements, tls=tls)


async def _driven(order: Order, options: Options, schema: Schema | None = None) -> Driven:
    """Run an order. `schema`: of its workload, if it is known."""
    schedule = order.schedule
    workers = options.workers or agent_run.workers_for(schedules.in_flight(schedule), schedules.steady_per_s(schedule))
    lines = load_output.Lines(options.console)
    try:
        outcome = await agent_run.drive(
            order, workers=workers, on_connected=lines.connected, on_interval=lines.interval
        )
        return outcome, lines.courses, None if order.phases else schedule
    except EngineError as error:
        if schema is None:
            raise

        async def rows(statements: Sequence[str]) -> Any:
            return await agent_run.cql(order.contacts, statements, tls=order.tls)

        absent = error.hint if options.creates else "--create makes keyspace and tables"
        raise await other_tables.explained(error, schema, rows, absent, DIFFERENT) from None


def _end(outcomes: Sequence[Driven], options: Options) -> int:
    if options.as_json:
        print(json_text([load_output.as_data(*one) for one in outcomes], indent=1))
    else:
        for outcome, courses, schedule in outcomes:
            load_output.print_outcome(outcome, load_output.paper(), courses, schedule)
    if any(outcome.interrupted for outcome, *_ in outcomes):
        return EXIT_INTERRUPTED
    ends = [phase.totals for outcome, *_ in outcomes for phase in outcome.phases.values()]
    return EXIT_ERRORS if any(end.errors or end.unsent for end in ends) else EXIT_DONE


def _raw(path: Path, contacts: Sequence[str], refused: Sequence[str], options: Options) -> int:
    """`--order`: run an order unchanged, but for its contacts if any are given. `refused`: options without effect."""
    if refused:
        raise StudyError(f"--order is complete: {refused[0]} would have no effect", "change the order instead")
    try:
        raw = json.loads(path.read_text(encoding="utf-8-sig"))
        if contacts:
            raw = {**raw, "contacts": with_ports(contacts, raw["target"]["protocol"])}
        order = Order.model_validate(raw)
    except (OSError, LookupError, TypeError, ValueError) as error:
        problems = from_validation(error, "", Order) if isinstance(error, ValidationError) else ()
        why = "; ".join(one.message for one in problems) or error
        raise StudyError(f"{path}: not an order: {why}", "see docs/reference/wire.md", path=str(path)) from error
    if options.show is not None:
        return show(order, options.show, options.as_json)

    async def body() -> int:
        return _end([await _driven(order, options)], options)

    with wording.spoken(wording.LOAD):
        return asyncio.run(body())


def _protocol(workload: Workload, asked: str | None, console: Console | None) -> str:
    """The protocol asked for, or the first that the workload can be sent over, which is said if there are others.
    Raises StudyError."""
    able = protocols_of(workload)
    if asked is not None and asked not in able:
        raise problem("--protocol", asked, f"workload {workload.name} cannot be sent over it", able)
    if asked is None and len(able) > 1 and console is not None:
        say(console, f"over {able[0]}, the default; --protocol {listed(able[1:], 'or')} for other servers")
    return asked or able[0]


def split(words: Sequence[str], given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Fields of `load`, and settings of the workload, of `--set NAME=VALUE`. `given`: fields that have an option of
    their own. Raises StudyError."""
    fields = dict(given)
    settings: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise StudyError(f"--set {word}: must be NAME=VALUE", "such as --set records=1000", read=word)
        if name.startswith("load."):
            field = name.removeprefix("load.")
            if field not in Load.model_fields:
                raise problem(f"--set {name}", value, "no such key", tuple(Load.model_fields))
            if field in OF_STUDIES:
                raise StudyError(f"--set {name} has no effect outside a study", "leave it out", read=name)
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
        raise StudyError(f"--set {word}: not JSON: {error}", "such as --set load.rates_per_s=[100,200]") from error


def _load_of(fields: Mapping[str, Any], *, filling: bool) -> tuple[Load, bool]:
    """Schedule of the load, and whether load is driven: a command that creates and fills drives only on request."""
    given = dict(fields)
    drives = not filling or any(name in given for name in DRIVING)
    if unused := [name for name in OF_DRIVING if name in given and not drives]:
        what = f"{unused[0]} would have no effect: tables are filled at ALL, and no load is driven"
        raise StudyError(what, "give --duration or --operations too")
    if not any(name in given for name in ("operations", "duration_s", "phases")):
        given["duration_s"] = DEFAULT_DURATION_S
    if "rate_per_s" in given:
        given.setdefault("schedule", "constant")
    if given.get("schedule", "closed") != "closed":
        given.setdefault("threads", POPULATE_THREADS)
    load_settings = settings_of(Load, given, "load")
    assert isinstance(load_settings, Load)
    if load_settings.wants_capacity:
        raise StudyError("load.capacity_fraction: only a study measures a cluster's capacity", "give --rate")
    return load_settings, drives


def show(order: Order, count: int, as_json: bool) -> int:
    """Print the first operations of an order with their values, without sending anything."""
    with tempfile.TemporaryDirectory(prefix="steelyard-show-") as folder:
        path = Path(folder) / "order.json"
        path.write_text(order.text, encoding="utf-8")
        argv = [str(agent.find()), "ops", "--order", str(path), "--count", str(count), "--values"]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=SHOW_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            message = f"{count:,} operations were not generated within {SHOW_TIMEOUT_S:g} s"
            raise EngineError(message, "--show fewer") from None
    if done.returncode != 0:
        raise EngineError(done.stderr.strip() or f"the agent exited with code {done.returncode}")
    if as_json:
        sys.stdout.write(shown_json(done.stdout))
        return EXIT_DONE
    load_output.operations([json.loads(line) for line in done.stdout.splitlines()], order, load_output.paper())
    return EXIT_DONE


def _names_hint() -> str:
    return f"allowed: a path that ends in .toml, {', '.join(find.names('workload'))}"
