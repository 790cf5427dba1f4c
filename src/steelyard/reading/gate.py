"""Gate over stores: two sides of finished studies, judged by every response that was asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from steelyard.analysis.comparisons.confounders import JARS, OF_THE_BUILD
from steelyard.analysis.frame import factors_of
from steelyard.analysis.gate import (
    Gate,
    GateCase,
    GateVerdict,
    case_of,
    case_without_values,
    overall,
)
from steelyard.analysis.treatments import Treatment, label
from steelyard.format import count, listed
from steelyard.judging.attempts import attempts_by_id
from steelyard.judging.trial_responses import response_of
from steelyard.model.errors import StoreError, StudyError
from steelyard.model.facts import of_systems
from steelyard.model.named_level import Level
from steelyard.model.responses import better_of, label_of
from steelyard.model.responses import every as every_response
from steelyard.model.study import SAME_FACTOR
from steelyard.model.trial import TrialRecord
from steelyard.reading.comparison import (
    Comparison,
    at_one_look,
    fix,
    is_called,
    levels,
    paired_cells,
    response_named,
)
from steelyard.reading.opened import Opened

BUILDS: Final = (*OF_THE_BUILD, SAME_FACTOR)
"""Factors that are compared where none is named, if they have two levels."""


def gate(
    judged: Opened,
    against: Opened | None = None,
    *,
    a: Sequence[str] = (),
    b: Sequence[str] = (),
    responses: Sequence[str] = (),
    margin_percent: float | None = None,
) -> Gate:
    """Judge a store against another one, or one level of its build against the other.

    `a` (the baseline) and `b`: `main`, or `FACTOR=LEVEL`; by default the first and the second level of the build.
    `responses`: their names; the study's own where empty. `margin_percent`: that of the study where None. Raises
    StudyError for what cannot be compared, StoreError for a study that is not finished or a store that is damaged.
    """
    baseline = judged if against is None else against
    baseline, judged = at_one_look(baseline, judged)
    for opened in {store.folder: store for store in (baseline, judged)}.values():
        _refuse_unfinished(opened)
        _refuse_further_look(opened)
        _refuse_changed_builds(opened)
    margin = _margin(judged, margin_percent)
    fixed_a, fixed_b = _sides(baseline, judged, a, b)
    names = tuple(dict.fromkeys(response_named(name, judged.study) for name in responses))
    names = names or judged.study.analysis.every_response
    for name in names:
        _refuse_without_direction(name)
        _refuse_without_value(name, {store.folder: store for store in (baseline, judged)}.values())
    comparisons = paired_cells(baseline, judged, a=fixed_a, b=fixed_b, responses=names, margin_percent=margin)
    family = sum(len(comparison.pairing.both) for comparison in comparisons)
    cases = tuple(case for comparison in comparisons for case in _cases(comparison, baseline, judged, margin, family))
    first = comparisons[0]
    return Gate(
        verdict=overall([case.verdict for case in cases]), study=judged.study.study.name,
        a=first.a.name, b=first.b.name, margin_percent=margin,
        confidence=baseline.study.analysis.confidence, cases=cases,
        warnings=tuple(dict.fromkeys(text for comparison in comparisons for text in comparison.warnings)),
        looks=first.looks,
        noise_floor=tuple(dict.fromkeys(text for comparison in comparisons for text in comparison.floor_sentences)),
        limits=first.limits,
        remarks=tuple(dict.fromkeys((*first.missing, *_failures(first, baseline, judged)))),
    )  # fmt: skip


def _margin(judged: Opened, margin_percent: float | None) -> float:
    margin = margin_percent if margin_percent is not None else judged.study.analysis.equivalence_margin_percent
    if margin is None:
        raise StudyError(
            "a gate needs a margin: how large a loss is too much?",
            "--margin 2%, or analysis.equivalence_margin_percent = 2 in the study",
            key="--margin",
        )
    return margin


def _refuse_unfinished(opened: Opened) -> None:
    """Raises StoreError: a verdict over trials that were looked at before all were there would err more often than it
    says, and damaged files may hold what decides."""
    damages = [damage.words() for damage in opened.store.damages if not damage.harmless]
    folder = opened.store.folder
    if damages:
        more = f", and {len(damages) - 1} more" if len(damages) > 1 else ""
        raise StoreError(
            f"{folder} is damaged, and a gate rests on whole stores: {damages[0]}{more}",
            f"`steelyard verify {folder}` names all; `steelyard run` measures again what is missing",
            path=str(folder),
        )
    plan = opened.store.read_plan()
    if opened.look.missing:
        raise StoreError(
            f"{folder}: the study is not finished: {opened.look.missing} of {count(len(plan.trials), 'trial')} are "
            "missing",
            f"`steelyard run` continues with it; a gate that looks before the end would err more often than it says "
            f"(`steelyard compare {folder}` shows what there is)",
            path=str(folder),
        )


def _refuse_further_look(opened: Opened) -> None:
    """Raises StoreError where blocks were added after the only look that the study has."""
    if not opened.look.final:
        raise StoreError(
            f"{opened.store.folder}: {opened.look.sentence}",
            'set analysis.looks = "several" before the first trial: a gate can then look again, at 97.5%, 98.75% ... '
            f"(`steelyard compare {opened.store.folder}` shows what there is)",
            path=str(opened.store.folder),
        )


def _refuse_changed_builds(opened: Opened) -> None:
    """Raises StoreError if the jars of a build were replaced while it was measured: its trials are of two systems."""
    starts = {record.start: record for record in opened.records if record.verdict.outcome == "valid"}
    hashes: dict[str, set[str]] = {}
    for record in starts.values():
        for facts in of_systems(opened.store.facts(record)).values():
            if JARS in facts:
                hashes.setdefault(json.dumps(record.settings.part("system"), sort_keys=True), set()).add(facts[JARS])
    changed = [known for known in hashes.values() if len(known) > 1]
    if changed:
        raise StoreError(
            f"{opened.store.folder}: the jars of a build changed while it was measured: {listed(sorted(changed[0]))}",
            "give each build its own folder, and measure again into another store",
            path=str(opened.store.folder),
        )


def _refuse_without_direction(response: str) -> None:
    """Raises StudyError for a response that cannot get worse."""
    if better_of(response) == "neither":
        raise StudyError(
            f"--response {response}: neither more nor less of it is better, so it cannot get worse",
            "choose a time, such as p99, or throughput",
            key="--response",
        )


def _refuse_without_value(response: str, stores: Iterable[Opened]) -> None:
    """Raises StudyError for a response that no valid trial of a store has."""
    for opened in stores:
        valid = [record for record in opened.records if record.verdict.outcome == "valid"]
        if valid and all(response_of(record, response) is None for record in valid):
            known = [name for name in every_response() if any(response_of(record, name) for record in valid)]
            trials = f"{count(len(valid), 'valid trial')} of {opened.store.folder}"
            raise StudyError(
                f"--response {response}: no value in any of the {trials}",
                f"they have: {', '.join(known)}; a percentile needs more operations the higher it is",
                key="--response",
            )


def _sides(
    baseline: Opened, judged: Opened, texts_a: Sequence[str], texts_b: Sequence[str]
) -> tuple[Mapping[str, Level], Mapping[str, Level]]:
    """The levels that both sides are fixed to: those that were asked for, otherwise those of the build."""
    known_a, known_b = (_levels(opened) for opened in (baseline, judged))
    fixed_a, fixed_b = _fixed(texts_a, known_a, "--a"), _fixed(texts_b, known_b, "--b")
    if baseline.folder != judged.folder or fixed_a or fixed_b:
        return fixed_a, fixed_b
    several = {name: tried for name, tried in known_a.items() if len(tried) > 1}
    builds = {name: tried for name, tried in several.items() if name in BUILDS} or several
    if len(builds) == 1 and len(next(iter(builds.values()))) == 2:
        name, tried = next(iter(builds.items()))
        return {name: tried[0]}, {name: tried[1]}
    return {}, {}


def _levels(opened: Opened) -> dict[str, list[Level]]:
    """Each factor with its levels that were tried, in the study's order."""
    factors, _ = factors_of(opened.records, opened.study)
    return {
        name: [level for level in planned if any(record.treatment.get(name) == level for record in opened.records)]
        for name, planned in factors.items()
    }


def _fixed(texts: Sequence[str], factors: Mapping[str, Sequence[Level]], option: str) -> dict[str, Level]:
    """`main`, `main=builds/main` or `FACTOR=LEVEL`, several with commas. Raises StudyError with what there is."""
    chosen: dict[str, Level] = {}
    for text in (part.strip() for repeated in texts for part in repeated.split(",")):
        named = {name: level for name, known in factors.items() for level in known if is_called(level, text)}
        if text.partition("=")[0].strip() in factors:
            fix(chosen, levels([text], factors, option), text, option)
        elif len(named) == 1:
            fix(chosen, named, text, option)
        elif named:
            choices = listed([f"{option} {name}={text}" for name in named], "or")
            raise StudyError(f"{option} {text}: {listed(list(named))} have such a level", f"say which: {choices}")
        else:
            there = "; ".join(f"{name}: {', '.join(str(level) for level in known)}" for name, known in factors.items())
            raise StudyError(
                f"{option} {text}: no factor has such a level", f"there are: {there or 'none'}", key=option
            )
    return chosen


def _cases(
    comparison: Comparison, baseline: Opened, judged: Opened, margin_percent: float, family: int
) -> Iterator[GateCase]:
    """A case for every cell that both sides have, in the order of the cells."""
    by_cell = {label(contrast.cell): contrast for contrast in comparison.contrasts}
    for cell, treatment_a, treatment_b in comparison.pairing.both:
        contrast = by_cell.get(label(cell))
        tried_a, tried_b = _tried(baseline, treatment_a), _tried(judged, treatment_b)
        if contrast is None:
            verdict, why = _without_values(comparison, cell, tried_a, tried_b)
            yield case_without_values(cell, comparison.response, verdict, why, margin_percent)
            continue
        if contrast.ratio.low is None and any(_voided(tried) for tried in (tried_a, tried_b)):
            raise _spoilt(cell, (*tried_a, *tried_b))
        yield case_of(comparison.a, comparison.b, contrast, margin_percent, family)


def _without_values(
    comparison: Comparison, cell: Treatment, tried_a: Sequence[TrialRecord], tried_b: Sequence[TrialRecord]
) -> tuple[GateVerdict, str]:
    """The verdict on a cell in which a side has no value: a build that cannot do the work is worse than one that
    can."""
    response = label_of(comparison.response)
    for name, tried in ((comparison.a.name, tried_a), (comparison.b.name, tried_b)):
        if _voided(tried) and not any(record.verdict.final for record in tried):
            raise _spoilt(cell, tried)
        if any(record.verdict.outcome == "valid" for record in tried):
            continue
        failed = f"{name} has no valid trial in this cell: {_reasons(tried)}"
        return ("worse" if name == comparison.b.name and _any_valid(tried_a) else "undecided"), failed
    return "undecided", f"a side has no value of {response} above 0"


def _any_valid(tried: Sequence[TrialRecord]) -> bool:
    return any(record.verdict.outcome == "valid" for record in tried)


def _voided(tried: Sequence[TrialRecord]) -> bool:
    """Whether a trial was given up because the laboratory spoilt every attempt at it."""
    return any(not any(one.verdict.final for one in attempts) for attempts in attempts_by_id(tried).values())


def _spoilt(cell: Treatment, tried: Sequence[TrialRecord]) -> StoreError:
    return StoreError(
        f"{label(cell)}: the laboratory spoilt too many trials to judge anything: {_reasons(tried)}",
        "`steelyard status STORE` shows each reason with its limit; make the machine quiet and measure again",
    )


def _reasons(records: Sequence[TrialRecord]) -> str:
    """Each kind of reason of these verdicts once."""
    return listed(list(dict.fromkeys(str(reason.kind) for record in records for reason in record.verdict.reasons)))


def _tried(opened: Opened, treatment: Treatment) -> list[TrialRecord]:
    """Every attempt at a treatment but control trials."""
    return [
        record
        for record in opened.records
        if not record.control and all(record.treatment.get(name) == level for name, level in treatment.items())
    ]


def _failures(comparison: Comparison, baseline: Opened, judged: Opened) -> Iterator[str]:
    """Trials of each side that the system did not do: their times are in no interval."""
    for side, opened, place in ((comparison.a, baseline, 1), (comparison.b, judged, 2)):
        tried = [record for both in comparison.pairing.both for record in _tried(opened, both[place])]
        failed = [record for record in tried if record.verdict.final and record.verdict.outcome != "valid"]
        if failed:
            trials = count(len(attempts_by_id(tried)), "trial")
            yield f"{side.name}: {len(failed)} of {trials} failed: {_reasons(failed)}"
