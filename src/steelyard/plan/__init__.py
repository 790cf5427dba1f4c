"""Plans: expansion of a study into ordered trials, with estimates of cost and detectable differences.

Here `estimate` is the module; the function in it has the same name.
"""

from steelyard.node.machine import Machine, read_machine
from steelyard.plan import estimate
from steelyard.plan.detectable_difference import Resolution, resolution
from steelyard.plan.estimate import PlanEstimate
from steelyard.plan.expand import expand
from steelyard.plan.notes import warnings
from steelyard.plan.preflight import refusals

__all__ = [
    "Machine",
    "PlanEstimate",
    "Resolution",
    "estimate",
    "expand",
    "read_machine",
    "refusals",
    "resolution",
    "warnings",
]
