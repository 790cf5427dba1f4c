"""Dry run of a plan's workloads in the agent: finds errors that only the agent can find, as it knows the CQL types.

Nothing is sent: the agent reads an order and generates one operation from it.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

from steelyard import engine_order
from steelyard.judging.settings_hash import canonical
from steelyard.model.errors import EngineError, StudyError
from steelyard.model.plan import Plan
from steelyard.model.study import Load
from steelyard.node import agent
from steelyard.plugin import Plugins
from steelyard.plugin_factory import make_workload
from steelyard.system.base import Endpoint
from steelyard.workload.base import Workload

MOST_ASKED = 64
"""Maximum number of workload settings to try; further ones are not checked."""
TIMEOUT_S = 30.0
PROGRAM = "program"
STATEMENT = re.compile(r"statements\.([A-Za-z0-9_-]+)")


def refused_by_agent(plan: Plan, plugins: Plugins | None = None) -> tuple[StudyError, ...]:
    """Errors in workloads that are programs; none if no agent is installed."""
    try:
        agent.find()
    except EngineError:
        return ()
    plugins = plugins or Plugins()
    distinct = {canonical(trial.settings.part("workload")): trial.settings for trial in plan.trials}
    errors: dict[str, StudyError] = {}
    for settings in list(distinct.values())[:MOST_ASKED]:
        name = settings.workload.name
        for refusal in _refusals(make_workload(plugins, settings)):
            message = f"{_place(plugins, name, refusal)}: {refusal}"
            errors[message] = StudyError(message, key="workload.name", read=name)
    return tuple(errors.values())


def _place(plugins: Plugins, name: str, refusal: str) -> str:
    """Name of the workload; for a file also the line of the statement that the agent names."""
    source = getattr(plugins.find("workload", name), "source", None)
    statement = STATEMENT.search(refusal)
    line = source.place(f"statements.{statement[1]}") if source is not None and statement else 0
    return f"workload {name}" + (f":{line}" if line else "")


def _refusals(workload: Workload) -> Iterator[str]:
    if workload.order().get("kind") != PROGRAM:
        return
    schema = workload.schema()
    endpoint = Endpoint(workload.protocol, ("127.0.0.1:9042",), schema.keyspace, schema.table)
    for order in (
        engine_order.populate(endpoint, schema, workload, 1),
        engine_order.measure(Load(operations=1), endpoint, schema, workload, 1),
    ):
        argv = [str(agent.find()), "ops", "--order", "-", "--count", "1", "--values"]
        text = json.dumps(order)
        try:
            done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            yield f"the agent did not make one operation of it within {TIMEOUT_S:g} s"
            continue
        if done.returncode != 0:
            yield done.stderr.strip().removeprefix("steelyard-agent: ")
