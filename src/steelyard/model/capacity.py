"""Capacity key: trials with the same key share one capacity measurement. Used by the plan and the laboratory."""

from __future__ import annotations

import json

from steelyard.model.load import Load, Offered
from steelyard.model.trial_settings import TrialSettings

OF_THE_TRIAL = frozenset({*Offered.model_fields, "threads", "operations", "duration_s", "phases", "backlog_limit"})
"""Fields of a load that capacity does not depend on."""


def capacity_key(settings: TrialSettings) -> str:
    """Key of a trial's capacity: trials of one start with the same key have the same capacity. Capacity is measured
    only for loads that need it."""
    load = settings.load
    asked = {name: getattr(load, name) for name in Load.model_fields if name not in OF_THE_TRIAL}
    return json.dumps({**settings.part("workload"), "load": asked}, sort_keys=True)
