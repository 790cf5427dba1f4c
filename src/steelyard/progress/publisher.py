"""Publisher of progress: folds each event into the state once and shows the state to every view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from steelyard.events.base import Event
from steelyard.progress.state import Live, beginning, fold


class View(Protocol):
    """Anything that shows the state: a screen, lines, the live file. It must return quickly."""

    def show(self, live: Live, event: Event) -> None:
        """Take the newest state, and the event that led to it."""
        ...


class Publisher:
    """A watcher of the conductor. A view that cannot take any more (a closed terminal, a full disk) is left out from
    then on and takes nothing from the others: nothing that only looks may stop a study."""

    def __init__(self, clock: Callable[[], float], *views: View) -> None:
        self._clock = clock
        self._views = list(views)
        self.live = beginning(clock())

    def show_to(self, *views: View) -> None:
        """Add views, which are shown what comes from now on."""
        self._views += views

    def tell(self, event: Event) -> None:
        """Take note of an event."""
        self.live = fold(self.live, event, self._clock())
        for view in tuple(self._views):
            try:
                view.show(self.live, event)
            except (OSError, SystemExit):
                self._views.remove(view)
