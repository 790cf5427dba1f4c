"""Check of a plan against its engines, before anything starts: unsupported protocols and loads."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard import engine_order
from steelyard.engine.base import DrivenByWords, Selective
from steelyard.judging.settings_hash import canonical
from steelyard.model.errors import EngineError, StudyError
from steelyard.model.plan import Plan
from steelyard.plan.abilities import Abilities, load_of
from steelyard.plugin import Plugins
from steelyard.plugin_factory import make_engine, make_workload
from steelyard.system.base import Endpoint

ANYWHERE = ("127.0.0.1:9042",)
"""Contacts of an order that is only checked, not sent."""


def unspoken(plan: Plan, abilities: Abilities) -> Iterator[StudyError]:
    """Errors for workloads whose protocol their system does not speak."""
    pairs = {canonical(trial.settings.part("system", "workload")): trial for trial in plan.trials}
    for trial in pairs.values():
        system, workload = abilities.system(trial.settings), make_workload(abilities.plugins, trial.settings)
        if system.protocol != workload.protocol:
            name = trial.settings.workload.name
            yield StudyError(
                f"workload {name} is written in {workload.protocol}, system {trial.settings.system.name} speaks "
                f"{system.protocol}",
                "another workload, or another system",
                key="workload.name",
                read=name,
            )


def refused(plan: Plan, plugins: Plugins | None = None) -> Iterator[StudyError]:
    """Each treatment's load that its engine refuses. Engines without `check` are not asked."""
    plugins = plugins or Plugins()
    parts = ("workload", "load", "site", "load_site", "node")
    distinct = {canonical(trial.settings.part(*parts)): trial.settings for trial in plan.trials}
    for settings in distinct.values():
        name = settings.engine
        engine = make_engine(plugins, name)
        if settings.load.schedule == "search" and not isinstance(engine, DrivenByWords):
            yield StudyError(
                f"engine {name} cannot search: it takes no further phases while it runs",
                'load.engine = "agent", or a fixed schedule',
                key="load.engine",
                read=name,
            )
            continue
        if not isinstance(engine, Selective):
            continue
        load = load_of(settings)
        if any(offered.capacity_fraction is not None for offered in load.offered):
            # Its rates are known only when the cluster runs.
            continue
        workload = make_workload(plugins, settings)
        schema = workload.schema()
        endpoint = Endpoint(workload.protocol, ANYWHERE, schema.keyspace, schema.table)
        load_nodes = settings.load_nodes
        for asked in (
            engine_order.populate(endpoint, schema, workload, settings.data.populate_threads),
            engine_order.measure(load, endpoint, schema, workload, 1, plugins),
        ):
            try:
                engine.check(asked, load_nodes)
            except EngineError as error:
                yield StudyError(error.message, error.hint, key="load.engine", read=name)
