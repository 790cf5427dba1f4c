"""Phase brackets: times, deadlines, and what a deadline says."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from steelyard.events.base import Silent
from steelyard.lab.bracket import OPTIONS, PhaseLog
from steelyard.model.errors import SiteError, SteelyardError, SystemFault
from steelyard.model.study import Study
from steelyard.model.trial import Phase


def late(phase: Phase, blame: type[SteelyardError]) -> tuple[PhaseLog, SteelyardError]:
    """The error of a phase that takes too long."""
    seconds = itertools.count()
    log = PhaseLog(Silent(), lambda: float(next(seconds)))

    async def enter() -> None:
        async with log.bracket(phase, 0.01, blame):
            await asyncio.sleep(60.0)

    with pytest.raises(blame) as caught:
        asyncio.run(enter())
    return log, caught.value


def test_a_late_system_is_told_with_the_option_that_bounds_it() -> None:
    log, error = late(Phase.POPULATE, SystemFault)
    assert error.message.startswith("phase populate took longer than its limit of ")
    assert error.hint == "if it needs more time, raise limits.trial_timeout_s"
    assert [(time.entered_s, time.left_s) for time in log.times] == [(0.0, 1.0)]


def test_a_late_laboratory_has_no_option() -> None:
    assert late(Phase.WIPE, SiteError)[1].hint == ""


def test_every_option_exists() -> None:
    for option in OPTIONS.values():
        section, _, field = option.partition(".")
        model = Study.model_fields[section].annotation
        assert field in getattr(model, "model_fields", {}), option
