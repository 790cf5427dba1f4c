"""Policy of a trial, made from its complete settings; the same for the laboratory and for verification."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType

from steelyard.model.load import Load
from steelyard.model.policy import PolicyChoice
from steelyard.model.trial_settings import TrialSettings
from steelyard.policy.base import Bounds, Policy

RATES = "rates"
"""Setting that stands for the offered rates, which the load gives if the study does not."""
STEP_S = 1.0


def shipped(settings: TrialSettings) -> ModuleType | None:
    """The module of a policy that Steelyard ships; None of any other."""
    name = settings.policy.name.replace("-", "_")
    if not name.isidentifier() or importlib.util.find_spec(f"{__package__}.{name}") is None:
        return None
    module = importlib.import_module(f"{__package__}.{name}")
    return module if hasattr(module, "create") else None


def policy_of(settings: TrialSettings, module: ModuleType) -> Policy:
    """The policy of a trial by its module. Raises ValidationError for settings that the module does not take."""
    own = module.Settings.model_validate(settings.policy.settings)
    if RATES in module.Settings.model_fields and not getattr(own, RATES):
        own = own.model_copy(update={RATES: tuple(rates(settings.load))})
    policy: Policy = module.create(own, bounds(settings.policy, settings.site.nodes))
    return policy


def bounds(choice: PolicyChoice, nodes: int) -> Bounds:
    """The sizes that a policy may ask for."""
    return Bounds(nodes, choice.least(nodes), choice.most(nodes))


def rates(load: Load) -> Iterator[tuple[float, float]]:
    """The offered rate of the measured phases in each second in which it changes: seconds, operations per second;
    nothing if it is not known beforehand."""
    from_s, last = 0.0, None
    for phase in load.offered:
        length_s = getattr(phase, "duration_s", None) or 0.0
        due = [phase.operations_within(second * STEP_S) for second in range(int(length_s / STEP_S) + 1)]
        for place, (before, after) in enumerate(pairwise(due)):
            if before is None or after is None:
                return
            if (rate := (after - before) / STEP_S) != last:
                yield from_s + place * STEP_S, rate
                last = rate
        from_s += length_s
