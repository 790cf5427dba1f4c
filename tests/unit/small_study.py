"""The text of a small study, and what prevents a plan, for tests of what happens before or around a session."""

from __future__ import annotations

from steelyard.model.errors import StudyError
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.node.machine import Machine
from steelyard.plan.abilities import Abilities
from steelyard.plan.estimate import estimate
from steelyard.plan.preflight import refusals

SMALL_STUDY = """\
[study]
name = "small"
question = "what is refused?"
[site]
name = "local"
[system]
name = "simulated"
[workload]
name = "ycsb-a"
records = 10
[load]
operations = 10
[design]
starts = 2
[factors]
nodes = [1, 2]
"""


def refused_on(machine: Machine, study: Study, plan: Plan) -> tuple[StudyError, ...]:
    """Errors that prevent a plan on a machine, with an empty store."""
    abilities = Abilities()
    cost = estimate(plan, study, cores=machine.cores, abilities=abilities)
    return refusals(study, plan, machine, (), cost, abilities)
