"""Copy of this machine's noise floor into a study's store, so that readers of the store need nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.judging.noise_floor import FoundFloor
from steelyard.lab.parts import Parts
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord
from steelyard.store import Store, StoreWriter
from steelyard.store.journal import NoiseFloorSought


def bring(study: Study, writer: StoreWriter, parts: Parts, records: Sequence[TrialRecord]) -> FoundFloor | None:
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
        writer.event(NoiseFloorSought(found=False, why=sought.why))
    else:
        sha256 = writer.noise_floor(sought.floor)
        floor = sought.floor
        writer.event(NoiseFloorSought(found=True, study=floor.study, made_s=floor.made_s, sha256=sha256))
    return sought
