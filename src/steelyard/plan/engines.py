"""Checks of a plan against its engines before anything starts: unsupported protocols and loads.

The agent generates one operation of each workload without sending it: only the agent knows the CQL types of a program.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

from steelyard import engine_order
from steelyard.engine.base import DrivenByWords, Selective
from steelyard.format import listed
from steelyard.judging.dilation import effective_load
from steelyard.model.errors import EngineError, StudyError
from steelyard.model.load import Load
from steelyard.model.plan import Plan
from steelyard.node import agent
from steelyard.plan.abilities import Abilities, distinct
from steelyard.plugins.find import Plugins
from steelyard.system.base import Endpoint
from steelyard.wire.order import OTHER_ENGINES, Order
from steelyard.wire.program import Program
from steelyard.workload.base import Workload

MOST_ASKED = 64
"""Maximum number of workload settings that the agent tries; others are not checked."""
TIMEOUT_S = 30.0
STATEMENT = re.compile(r"statements\.([A-Za-z0-9_-]+)")


def unspoken(plan: Plan, abilities: Abilities) -> Iterator[StudyError]:
    """Errors for workloads whose protocol their system does not speak."""
    for settings in distinct(plan, "system", "workload"):
        system, workload = abilities.system(settings), abilities.workload(settings)
        if system.protocol not in workload.protocols:
            name, spoken = settings.workload.name, listed(workload.protocols, "or")
            yield StudyError(
                f"workload {name} uses {spoken}, but system {settings.system.name} speaks {system.protocol}",
                "choose another workload or another system",
                key="workload.name",
                read=name,
            )


def without_meaning(plan: Plan, abilities: Abilities) -> Iterator[StudyError]:
    """Errors for settings of the client that the protocol of their system does not have."""
    for settings in distinct(plan, "system", "load"):
        name = settings.system.name
        yield from engine_order.without_meaning(settings.load, f"system {name}", abilities.system(settings).protocol)


def refused(plan: Plan, abilities: Abilities) -> Iterator[StudyError]:
    """Errors for loads that their engine refuses. Engines without `check` accept every load that the agent knows."""
    for settings in distinct(plan, "system", "workload", "load", "site", "load_site", "node"):
        name = settings.engine
        engine = abilities.engine(settings)
        if settings.load.schedule == "search" and not isinstance(engine, DrivenByWords):
            yield StudyError(
                f"engine {name} cannot search: it accepts no further phases while it runs",
                'use load.engine = "agent" or another schedule',
                key="load.engine",
                read=name,
            )
            continue
        if not isinstance(engine, Selective):
            if (spoken := abilities.system(settings).protocol) in OTHER_ENGINES:
                lacks, hint = OTHER_ENGINES[spoken]
                message = f"engine {name} {lacks}, but system {settings.system.name} speaks {spoken}"
                yield StudyError(message, hint, key="load.engine", read=name)
            continue
        load = effective_load(settings)
        if any(offered.capacity_fraction is not None for offered in load.offered):
            # Its rates are known only once the cluster runs.
            continue
        try:
            workload, protocol = abilities.workload(settings), abilities.system(settings).protocol
            for order in _orders(workload, protocol, load, settings.data.populate_threads, abilities.plugins):
                engine.check(order, settings.load_nodes)
        except (EngineError, StudyError) as error:
            yield StudyError(error.message, error.hint, key="load.engine", read=name)


def _orders(workload: Workload, protocol: str, load: Load, threads: int, plugins: Plugins) -> tuple[Order, ...]:
    """Orders that populate and load a table, with an address to which nothing is sent."""
    schema = workload.schema()
    endpoint = Endpoint(protocol, ("127.0.0.1:9042",), schema.keyspace, schema.table)
    return (
        engine_order.populate(endpoint, schema, workload, threads),
        engine_order.measure(load, endpoint, schema, workload, 1, plugins),
    )


def refused_by_agent(plan: Plan, abilities: Abilities) -> tuple[StudyError, ...]:
    """Errors in workloads of kind program; none if no agent is installed."""
    try:
        agent.find()
    except EngineError:
        return ()
    errors: dict[str, StudyError] = {}
    for settings in distinct(plan, "workload")[:MOST_ASKED]:
        name = settings.workload.name
        for refusal in _refusals(abilities.workload(settings), abilities.plugins):
            message = f"{_place(abilities.plugins, name, refusal)}: {refusal}"
            errors[message] = StudyError(message, key="workload.name", read=name)
    return tuple(errors.values())


def _place(plugins: Plugins, name: str, refusal: str) -> str:
    """Name of the workload, for a file with the line of the statement that the agent names."""
    source = getattr(plugins.find("workload", name), "source", None)
    statement = STATEMENT.search(refusal)
    line = source.place(f"statements.{statement[1]}") if source is not None and statement else 0
    return f"workload {name}" + (f":{line}" if line else "")


def _refusals(workload: Workload, plugins: Plugins) -> Iterator[str]:
    if not isinstance(workload.order(), Program):
        return
    for order in _orders(workload, workload.protocols[0], Load(operations=1), 1, plugins):
        argv = [str(agent.find()), "ops", "--order", "-", "--count", "1", "--values"]
        try:
            done = subprocess.run(
                argv, input=order.text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            yield f"the agent did not generate an operation within {TIMEOUT_S:g} s"
            continue
        if done.returncode != 0:
            yield done.stderr.strip().removeprefix("steelyard-agent: ")
