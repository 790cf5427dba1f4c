"""This machine's noise floor: the kept one copied into a study's store, and a new one kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steelyard.analysis.comparisons import identical_systems
from steelyard.analysis.frame import frame_of
from steelyard.analysis.statistics import noise_floor
from steelyard.events.base import Watcher
from steelyard.events.kept import NoiseFloorSought
from steelyard.judging.noise_floor import FoundFloor
from steelyard.lab.parts import LabParts
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.node import noise_floor as kept
from steelyard.node.folders import state_folder
from steelyard.store import Store, StoreWriter


def bring(
    study: Study, writer: StoreWriter, watcher: Watcher, parts: LabParts, records: Sequence[TrialRecord]
) -> FoundFloor | None:
    """The kept floor that holds for these trials, written into the store and the journal; or why there is none;
    None as long as no trial says which machine it was made on (a start that failed has no facts).

    What lies in the store already stays where none holds now. A study of identical systems measures its own and gets
    none.
    """
    if study.design.kind == "same":
        return FoundFloor(why="this study measures it")
    of = Store(writer.folder).circumstances(records)
    if not any(one.machines for one in of):
        return None
    sought = parts.noise_floor(of)
    if sought.floor is None:
        watcher.tell(NoiseFloorSought(found=False, why=sought.why))
    else:
        sha256 = writer.noise_floor(sought.floor)
        floor = sought.floor
        watcher.tell(NoiseFloorSought(found=True, study=floor.study, made_s=floor.made_s, sha256=sha256))
    return sought


def keep(folder: Path, *, scaled: bool) -> str:
    """Keep the floor that a study of identical systems found for later studies here. Returns a sentence on what it
    found, or on why nothing is kept. A study with `--scale` (`scaled`) says nothing about the trials of others."""
    if scaled:
        return "no noise floor is kept of a study with --scale"
    store = Store(folder)
    records, study = store.trials(), store.study
    frame = frame_of(records, study)
    of = store.circumstances(records)
    measured = identical_systems.measured(frame, study.study.name, of[0]) if of else None
    if measured is None:
        least = identical_systems.LEAST_DEGREES
        return f"no noise floor is kept: it needs at least {least + 1} starts with two or more used trials in some"
    where = kept.write(state_folder(), measured)
    floors = identical_systems.floors_of(frame, None, study.analysis.confidence, study)
    table = noise_floor.noise_floor(frame, study.analysis.response, floors, study)
    return f"{table.sentence}\nkept in {where}: later studies here are judged against it"
