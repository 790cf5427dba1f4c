"""Recorder of the laboratory's events: the journal gets those that are kept, the watcher gets all."""

from __future__ import annotations

from steelyard.events.base import Event, Kept, Silent, Watcher
from steelyard.events.shown import Trouble
from steelyard.store import StoreWriter


class Recorder:
    """Writes an event down, if its class says so, then passes it on.

    A watcher that cannot take any more (a closed terminal, a full disk) is left out afterwards: nothing that only
    looks may stop a study, least of all its clean-up. A journal that cannot be written stops it.
    """

    def __init__(self, writer: StoreWriter, watcher: Watcher) -> None:
        self._writer = writer
        self._watcher = watcher

    def tell(self, event: Event) -> None:
        """Take an event. Raises OSError if the journal cannot be written."""
        if isinstance(event, Kept):
            self._writer.event(event)
        if isinstance(event, Trouble):
            conceal = self._writer.conceal
            event = Trouble(conceal.text(event.message), conceal.text(event.hint))
        try:
            self._watcher.tell(event)
        except (OSError, SystemExit):
            self._watcher = Silent()
