"""Free space before each trial: one that would not fit is not begun, so that a full disk costs no trial.

`check` compares the whole plan with the disk beforehand; here is what others have filled since.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from steelyard.format import data_size
from steelyard.model.errors import FileError
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan.abilities import Abilities
from steelyard.plan.requirements import STORE_BYTES_PER_TRIAL, written_bytes
from steelyard.store import layout

MARGIN = 2.0
"""This many times the expected bytes must be free."""


@dataclass
class DiskRoom:
    """Watches the disks of the store and of the nodes' folders."""

    store: Path
    state: Path
    abilities: Abilities
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free
    largest_bytes: int = STORE_BYTES_PER_TRIAL // 2
    """Bytes of the largest trial sealed so far."""

    def sealed(self, record: TrialRecord) -> None:
        """Take note of how large a trial is in the store."""
        folder = self.store / layout.TRIALS / layout.trial_folder(record.id, record.attempt)
        self.largest_bytes = max(self.largest_bytes, sum(path.stat().st_size for path in folder.rglob("*")))

    def require(self, settings: TrialSettings) -> None:
        """Raises FileError, with the free and the needed space, if the next trial may not fit."""
        needed = {self.store: MARGIN * self.largest_bytes}
        if self.state.is_dir():
            grows_bytes = MARGIN * written_bytes(settings, self.abilities)
            if os.stat(self.state).st_dev == os.stat(self.store).st_dev:
                needed[self.store] += grows_bytes
            else:
                needed[self.state] = grows_bytes
        for folder, needed_bytes in needed.items():
            free_bytes = self.free_bytes(folder)
            if free_bytes < needed_bytes:
                raise FileError(
                    f"{folder}: {data_size(free_bytes)} of disk are free, the next trial may need "
                    f"{data_size(needed_bytes)}",
                    "free some space and run the same command to resume: no sealed trial is lost",
                    path=str(folder),
                )
