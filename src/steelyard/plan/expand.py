"""Expansion of a study into its plan: every trial in order, with its identity and seed, before anything starts.

A plan is a split plot. Factors that need a new cluster vary over *starts*, the others over *trials* within a start.
A permutation sorts items by a hash of (seed, place, item): it is uniformly random and does not depend on the version of
a random number generator. Starts are permuted once, then balanced over blocks (`start_order`). Trials get a new
permutation in each turn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from steelyard.judging.design import factors_of
from steelyard.judging.settings_hash import canonical, settings_hash
from steelyard.model.errors import StudyError
from steelyard.model.named_level import Level
from steelyard.model.plan import Plan, PlannedTrial
from steelyard.model.study import Study
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan.start_order import balanced
from steelyard.plugins.find import Plugins
from steelyard.study.fields import names_of
from steelyard.study.settings import hard_settings, is_hard, settings_of
from steelyard.study.treatments import control_of, treatments_of
from steelyard.tomlfile.problems import Missing, problem

CONTROL_REPLICATES_FROM = 10_001
"""Replicate number of the control's first extra trial. It is above the limit of `design.trials`, so that a study with
more trials neither renames an extra nor turns it into an ordinary one. Extra 10,000 + k pairs with replicate k."""
LEAST_CONTROLS_ALONE = 2
"""Extra control trials in a start that has no ordinary trial of the control treatment: fewer would not make an A/A
pair."""
SEED_BITS = 53
"""Every JSON reader keeps integers of up to this many bits exact, including R and JavaScript."""
MAX_TRIALS = 100_000

Item = TypeVar("Item")


@dataclass(frozen=True)
class _Treated:
    """A treatment with its complete settings, or the control's extra trials of it."""

    treatment: dict[str, Level]
    settings: dict[str, Any]
    hash: str
    control: bool = False

    @property
    def key(self) -> str:
        return f"{self.hash}{'-control' if self.control else ''}"


@dataclass(frozen=True)
class _Start:
    """One combination of hard-to-change levels, and the cells that its starts serve."""

    levels: dict[str, Level]
    hash: str
    cells: tuple[_Treated, ...]
    twin: int = 1
    """Number of this system, from 1, among the `twins` identical systems of a block; their starts are numbered in
    sequence."""
    twins: int = 1
    phase: int = 1
    """2 if other trials give it a threshold: it comes after all starts of phase 1. Extra trials of the control then do,
    too, in a start of their own, to show drift between the phases."""

    @property
    def key(self) -> str:
        """Key that is unique within its block; its own hash, so that a study without twins keeps its order."""
        if self.twins > 1:
            return f"{self.hash}-{self.twin}"
        return f"{self.hash}-{self.phase}" if self.phase > 1 and all(cell.control for cell in self.cells) else self.hash


def expand(study: Study, plugins: Plugins | None = None) -> Plan:
    """The plan of a study. Raises StudyError if it is confounded or too large."""
    plugins = plugins or Plugins()
    treatments = treatments_of(study, plugins)
    factors = factors_of(study)
    refuse_confounded(factors, treatments)
    hard = tuple(factor for factor in factors if is_hard(study, factor, plugins))
    refuse_fixed_in_starts(factors, hard, treatments)
    starts = _starts(study, treatments, hard, plugins)
    _refuse_too_many(study, starts)
    trials: list[PlannedTrial] = []
    for phase in sorted({start.phase for start in starts}):
        of_phase = [start for start in starts if start.phase == phase]
        for block in range(1, study.design.starts + 1):
            for start in _ordered_starts(study, of_phase, block):
                for cell, replicate in _ordered_trials(study, start, block):
                    trials.append(_planned(study, hard, block, start, cell, replicate, len(trials)))
    return Plan(study=study.study.name, seed=study.design.seed, factors=factors, hard=hard, trials=tuple(trials))


def _starts(
    study: Study, treatments: Sequence[Mapping[str, Level]], hard: Sequence[str], plugins: Plugins
) -> tuple[_Start, ...]:
    cells: dict[tuple[str, bool], list[_Treated]] = {}
    levels: dict[str, dict[str, Level]] = {}
    control, named = control_of(study), names_of(study)
    placed = [(treatment, False) for treatment in treatments] + ([(control, True)] if control is not None else [])
    for treatment, extra in placed:
        combination = {factor: treatment[factor] for factor in hard}
        settings = settings_of(study, treatment, plugins, named)
        cell = _Treated(dict(treatment), settings, settings_hash(settings), extra)
        levels.setdefault(canonical(combination), combination)
        alone = extra and bool(study.derived)
        cells.setdefault((canonical(combination), alone), []).append(cell)
    twins = len(cells) if study.design.kind == "same" else 1
    fields = [field for factor in hard for field in study.fields_under(factor)]
    hashes = {key: settings_hash(hard_settings(members[0].settings, fields, plugins)) for key, members in cells.items()}
    return tuple(
        _Start(levels[key[0]], hashes[key], tuple(members), min(twins, place), twins, _phase(members, alone=key[1]))
        for place, (key, members) in enumerate(cells.items(), start=1)
    )


def _phase(cells: Sequence[_Treated], *, alone: bool) -> int:
    needs = any(TrialSettings(cell.settings).policy.threshold_of for cell in cells)
    return 2 if alone or needs else 1


def _controls(study: Study, start: _Start) -> int:
    """Number of extra control trials that a start of this combination serves."""
    extra = next((cell for cell in start.cells if cell.control), None)
    if extra is None:
        return 0
    # After phase 1 its partners are the control's trials of that phase.
    paired = start.phase > 1 or any(cell.hash == extra.hash and not cell.control for cell in start.cells)
    return study.design.trials if paired else max(LEAST_CONTROLS_ALONE, study.design.trials)


def _refuse_too_many(study: Study, starts: Sequence[_Start]) -> None:
    a_block = sum(
        study.design.trials * sum(not cell.control for cell in start.cells) + _controls(study, start)
        for start in starts
    )
    total = a_block * study.design.starts
    if total > MAX_TRIALS:
        raise problem("design", Missing(), f"{total} trials; at most {MAX_TRIALS} can be planned")


def _digest(*parts: object) -> bytes:
    return hashlib.sha256("|".join(str(part) for part in parts).encode()).digest()


def _ordered_starts(study: Study, starts: Sequence[_Start], block: int) -> list[_Start]:
    if study.design.order == "published":
        return list(starts)
    labelled = sorted(starts, key=lambda start: _digest(study.design.seed, "start", start.key))
    return [labelled[label] for label in balanced(len(starts), block)]


def _ordered_trials(study: Study, start: _Start, block: int) -> Iterable[tuple[_Treated, int]]:
    """Cells and replicate numbers of one start, in order."""
    controls = _controls(study, start)
    if study.design.order == "published":
        for cell in start.cells:
            for number in range(controls if cell.control else study.design.trials):
                yield cell, number + (CONTROL_REPLICATES_FROM if cell.control else 1)
        return
    for turn in range(max(study.design.trials, controls)):
        present = [cell for cell in start.cells if turn < (controls if cell.control else study.design.trials)]
        salt = (study.design.seed, "trial", block, start.key, turn)
        for cell in sorted(present, key=lambda cell: _digest(*salt, cell.key)):
            yield cell, turn + (CONTROL_REPLICATES_FROM if cell.control else 1)


def _planned(
    study: Study, hard: tuple[str, ...], block: int, start: _Start, cell: _Treated, replicate: int, position: int
) -> PlannedTrial:
    number = (block - 1) * start.twins + start.twin
    return PlannedTrial(
        id=f"{cell.hash}-s{number}-t{replicate}",
        position=position,
        block=block,
        start=f"b{block:02d}-{start.key}",
        start_replicate=number,
        replicate=replicate,
        treatment=cell.treatment,
        hard=hard,
        settings=cell.settings,
        seed=trial_seed(study.design.seed, block, replicate),
        control=cell.control,
    )


def trial_seed(seed: int, start_replicate: int, replicate: int) -> int:
    """Seed of a trial's operations, equal for all treatments: SHA-256 of the three numbers, its first 53 bits."""
    return int.from_bytes(_digest(seed, start_replicate, replicate)[:8]) >> (64 - SEED_BITS)


def refuse_confounded(factors: Mapping[str, Sequence[Level]], treatments: Sequence[Mapping[str, Level]]) -> None:
    """Raise StudyError if two factors always move together: no analysis can separate their effects."""
    varied = [factor for factor, levels in factors.items() if len(levels) > 1]
    for index, first in enumerate(varied):
        for second in varied[index + 1 :]:
            if determines(first, second, treatments) and determines(second, first, treatments):
                raise StudyError(
                    f"factors {first!r} and {second!r} always move together: their effects cannot be separated",
                    "add treatments in which only one of them differs, or set one of them as a plain field",
                    key="design.treatments",
                )


def refuse_fixed_in_starts(
    factors: Mapping[str, Sequence[Level]], hard: Sequence[str], treatments: Sequence[Mapping[str, Level]]
) -> None:
    """Raise StudyError if a factor that could vary within starts has one level in each: its effect could not be
    separated from that of the starts."""
    if not any(len(factors[factor]) > 1 for factor in hard):
        return
    for factor, levels in factors.items():
        if factor in hard or len(levels) < 2:
            continue
        seen: dict[tuple[Level, ...], Level] = {}
        if all(
            seen.setdefault(tuple(treatment[one] for one in hard), treatment[factor]) == treatment[factor]
            for treatment in treatments
        ):
            raise StudyError(
                f"factor {factor!r} has one level in each start: it varies with {', '.join(hard)} only, so its effect "
                "cannot be separated from theirs, nor from a difference between two starts",
                f"give each combination of {', '.join(hard)} at least two levels of it",
                key="design",
            )


def determines(first: str, second: str, treatments: Sequence[Mapping[str, Level]]) -> bool:
    """Whether the level of the first factor determines that of the second."""
    seen: dict[Level, Level] = {}
    return all(seen.setdefault(treatment[first], treatment[second]) == treatment[second] for treatment in treatments)
