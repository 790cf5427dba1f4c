"""An opened store: its study, sealed trials, frame and results, each read or computed on first use, and once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from steelyard.analysis.analyse import analyse
from steelyard.analysis.frame import TrialFrame, frame_of
from steelyard.analysis.results import Results
from steelyard.analysis.statistic import Seconds
from steelyard.judging.covariates import with_links_after
from steelyard.judging.looks import look_of
from steelyard.judging.noise_floor import FoundFloor
from steelyard.judging.stopping import decision_of
from steelyard.model.damage import Damage
from steelyard.model.errors import StoreError
from steelyard.model.look import Look
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.model.trial import Attempt, CellKey, TrialRecord, by_cell
from steelyard.reading.level_facts import emulated, of_systems_themselves
from steelyard.reading.within_trials import TrialsWithin, seconds_of_cells, within_trials
from steelyard.store.read import Store


@dataclass(frozen=True)
class Opened:
    """A store with its records. Trials that are sealed later are not seen: open it again."""

    store: Store
    study: Study
    """The study as it was last run, with the confidence of this look."""
    records: tuple[TrialRecord, ...]
    """Every sealed attempt as `trial.json` has it, in order of time."""
    number: int = 1
    """Which look at the store this is; compared with another, which one at both."""
    executor: Executor | None = None
    """Reads within trials; None: this process does."""

    @property
    def folder(self) -> Path:
        """The study's folder with links resolved: equal folders are the same store."""
        return self.store.folder.resolve()

    @property
    def damages(self) -> tuple[Damage, ...]:
        """Files of the store that were skipped so far, or read although they were changed: what rests on them is
        not in the numbers. It grows with what is read."""
        return self.store.damages

    @cached_property
    def plan(self) -> Plan | None:
        """The plan; None in a store that has none."""
        return self.store.plan

    @cached_property
    def look(self) -> Look:
        """The look at the study that these trials give."""
        decision = decision_of(self.plan, self.records, self.study)
        return look_of(self.plan, self.records, self.study, self.number, decision)

    @cached_property
    def floor(self) -> FoundFloor:
        """The noise floor that the store holds for these trials."""
        return self.store.noise_floor(self.records)

    @cached_property
    def _with_links(self) -> tuple[TrialRecord, ...]:
        return with_links_after(self.records, self.store.links_after)

    @cached_property
    def frame(self) -> TrialFrame:
        """The trial frame: what every function of `steelyard.analysis` takes. It has the measures that were sealed with
        the trials, and the covariates of every start."""
        return frame_of(self._with_links, self.study)

    @cached_property
    def values(self) -> Mapping[Attempt, float]:
        """As `values_of`, of the study's response."""
        return self.values_of(self.study.analysis.response)

    @cached_property
    def cells(self) -> Mapping[CellKey, list[TrialRecord]]:
        """Used trials that have a value of the study's response, by treatment; both in order of time."""
        return by_cell(record for record in self.records if record.key in self.values)

    @cached_property
    def within(self) -> TrialsWithin:
        """Data within the trials that have a value of the study's response."""
        return within_trials(self.store, self.cells, self.study.analysis, self.executor)

    @cached_property
    def results(self) -> Results:
        """All results of the analysis as typed values, as the report shows them."""
        themselves = of_systems_themselves(self.store, self.records)
        return analyse(
            self._with_links, self.study, seed=self.study.design.seed, within=self.within.of_analysis, plan=self.plan,
            floor=self.floor, emulated=emulated(self.store, self.records), look=self.number,
            of_system=themselves.caveats, unlike=themselves.unlike,
        )  # fmt: skip

    def seconds_of(self, response: str) -> Sequence[Seconds]:
        """The seconds of the used trials that have a value of a response, by treatment."""
        if response == self.study.analysis.response:
            return self.within.of_analysis.seconds
        used = self.values_of(response)
        cells = by_cell(record for record in self.records if record.key in used)
        return seconds_of_cells(self.store, cells, self.executor)

    def values_of(self, response: str) -> dict[Attempt, float]:
        """Used trials, controls aside, to their value of a response."""
        rows = self.frame.values(response)
        return dict(zip(zip(rows["trial_id"], rows["attempt"], strict=True), rows[response], strict=True))


def sealed_trials(store: Store) -> tuple[TrialRecord, ...]:
    """Every sealed attempt of a store, in order of time. Raises StoreError if there is none."""
    records = store.trials()
    damages = [damage.words() for damage in store.damages if not damage.harmless]
    if not records and damages:
        more = f" and {len(damages) - 1} more" if len(damages) > 1 else ""
        raise StoreError(
            f"{store.folder} has no sealed trial that can be read: {damages[0]}{more}",
            f"`steelyard verify {store.folder}` names all; restore the store from a copy, or run the study again",
            path=str(store.folder),
        )
    if not records:
        raise StoreError(
            f"{store.folder} has no sealed trial yet",
            "wait for the first trial, or run the study",
            path=str(store.folder),
        )
    return records
