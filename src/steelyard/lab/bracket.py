"""Phase brackets: each phase has a deadline, and its entry and exit are recorded, also after an error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from steelyard.events.base import Watcher
from steelyard.events.shown import PhaseEntered
from steelyard.format import duration
from steelyard.model.errors import SteelyardError, SystemFault
from steelyard.model.trial import Phase, PhaseTime

OPTIONS = {
    Phase.DEPLOY: "limits.start_timeout_s",
    Phase.POPULATE: "limits.trial_timeout_s",
    Phase.SERVER_WARM_UP: "server_warm_up.deadline_s",
    Phase.SETTLE: "limits.trial_timeout_s",
    Phase.CAPACITY: "limits.trial_timeout_s",
    Phase.MEASURE: "limits.trial_timeout_s",
}
"""The study's options that bound what the system under test does in a phase."""


class PhaseLog:
    """The phases of one start or one trial."""

    def __init__(self, watcher: Watcher, clock: Callable[[], float]) -> None:
        self._watcher = watcher
        self._clock = clock
        self.times: list[PhaseTime] = []

    @asynccontextmanager
    async def bracket(
        self, phase: Phase, timeout_s: float, blame: type[SteelyardError], *, expected_s: float | None = None
    ) -> AsyncIterator[None]:
        """Enter `phase`. When it takes longer than `timeout_s`, `blame` is raised: SystemFault where the system is
        slow, another where the laboratory is."""
        self._watcher.tell(PhaseEntered(phase, timeout_s, expected_s))
        index = len(self.times)
        entered_s = self._clock()
        self.times.append(PhaseTime(phase=phase, entered_s=entered_s))
        try:
            async with asyncio.timeout(timeout_s) as limit:
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            option = OPTIONS.get(phase, "") if issubclass(blame, SystemFault) else ""
            hint = f"if it needs more time, raise {option}" if option else ""
            raise blame(f"phase {phase} took longer than its limit of {duration(timeout_s)}", hint) from error
        finally:
            self.times[index] = PhaseTime(phase=phase, entered_s=entered_s, left_s=self._clock())

    def passed(self, phase: Phase, entered_s: float, left_s: float) -> None:
        """Note a phase that was seen from outside."""
        self.times.append(PhaseTime(phase=phase, entered_s=entered_s, left_s=left_s))
