"""Noise floor of every response: how much identical systems differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated

from steelyard.analysis.comparisons.identical_systems import Floors, FloorSource, floor_percent, spread_of, with_floor
from steelyard.analysis.comparisons.level_pairs import pair_of
from steelyard.analysis.comparisons.level_ratios import ratio_of
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import variance_components
from steelyard.analysis.inference.variance_components import Stratum
from steelyard.analysis.row import Column, FractionOrNone, MeasuredRow, PercentOrNone, RatioOrNone
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.treatments import Treatment
from steelyard.format import confidence_text, number
from steelyard.heavy import pl
from steelyard.judging.noise_floor import Spread, in_words
from steelyard.model.estimate import Estimate
from steelyard.model.responses import unit_of
from steelyard.model.study import SAME_FACTOR, SAME_LABELS, Study
from steelyard.model.value import Value


class ResponseFloor(MeasuredRow):
    """How much identical systems differ in one response, and what a comparison of them would show by chance."""

    source: FloorSource
    """Where the floor comes from: this study, control cells, kept floor."""
    starts: int
    """Starts of identical systems that it rests on."""
    trials: int
    """Used trials of them."""
    between_cv: FractionOrNone = None
    """Coefficient of variation between starts; none if it is not known."""
    within_cv: FractionOrNone = None
    """Coefficient of variation between the trials of a start."""
    level_starts: int
    """Starts a level that the next two hold for: this study's."""
    level_trials: int
    """Used trials of a start that the next two hold for."""
    floor_percent: PercentOrNone = None
    """Change that comparisons of identical systems stay below, levels on their own starts, paired by block."""
    floor_paired_percent: PercentOrNone = None
    """The same of levels tried within the same starts."""
    pairs: int = 0
    """Blocks with a start of both labels, in a study of identical systems."""
    pair_ratio: RatioOrNone = None
    """Label B over label A, compared as two levels are: 1 but for noise."""
    pair_greatest_percent: Annotated[float | None, Column(unit="%")] = None
    """The largest change between the two starts of a block, with its sign."""


class NoiseFloor(Value):
    """The noise floor that verdicts were judged against."""

    source: FloorSource = "none"
    control_trials: int
    """Valid control trials of this study."""
    blocks: int
    """Starts of identical systems that the first source of the main response rests on."""
    cv: Estimate | None = None
    """Coefficient of variation within a start of the main response, as a fraction."""
    unlike: tuple[str, ...] = ()
    """Settings that the floor was measured with and this study has nowhere."""
    sentence: str


def noise_floor(
    frame: TrialFrame, response: str, floors: Floors, study: Study | None = None, differing: Sequence[str] = ()
) -> NoiseFloor:
    """The noise floor for verdicts on `response`; as `judged_against`, from the trials."""
    return judged_against(every_floor(frame, floors, study), frame, response, floors, differing)


def every_floor(frame: TrialFrame, floors: Floors, study: Study | None = None) -> tuple[ResponseFloor, ...]:
    """The floor of every response from every source.

    Without `study` it holds for the numbers of starts and trials that it was measured with.
    """
    same = study is not None and study.design.kind == "same"
    return tuple(one for name in with_floor() for one in _of_response(frame, name, floors, study, same))


def judged_against(
    rows: Sequence[ResponseFloor], frame: TrialFrame, response: str, floors: Floors, differing: Sequence[str] = ()
) -> NoiseFloor:
    """The noise floor for verdicts on `response`, as a sentence and in numbers.

    `rows`: floors of every response. `differing`: see `identical_systems.settings_unlike`.
    """
    varied = {name for name, levels in frame.factors.items() if len(levels) > 1}
    ways = [paired for paired, some in ((False, varied & set(frame.hard)), (True, varied - set(frame.hard))) if some]
    mine = [one for one in rows if one.response == response]
    main, paired = next(
        ((one, way) for way in ways or [True] for one in mine if _of_way(one, way) is not None), (None, False)
    )
    controls = frame.data.filter(pl.col("used") & pl.col("control")).height
    differing = tuple(differing) if main is not None and main.source == "kept floor" else ()
    return NoiseFloor(
        source=main.source if main else "none", control_trials=controls, blocks=mine[0].starts if mine else 0,
        cv=mine[0].within_cv if mine else None, unlike=differing,
        sentence=_sentence(main, mine, floors, paired, alone=paired and False in ways) + _beside(differing),
    )  # fmt: skip


def _of_way(row: ResponseFloor, paired: bool) -> Estimate | None:
    return row.floor_paired_percent if paired else row.floor_percent


def _of_response(
    frame: TrialFrame, response: str, floors: Floors, study: Study | None, same: bool
) -> Iterator[ResponseFloor]:
    """One row per source; none if the study has no value of the response."""
    spreads = floors.spreads(response)
    if not spreads and not same:
        return
    rows = frame.data.filter(pl.col("used") & pl.col(response).is_not_null())
    if not rows.height:
        return
    if same and (mine := spread_of(rows, response)) is not None:
        spreads = [(mine, "this study")]
    for spread, source in spreads:
        components = variance_components.of_mean_squares(
            Stratum(spread.between_degrees, spread.between_mean_square or 0.0, starts=spread.trials_a_start),
            Stratum(spread.within_degrees, spread.within_mean_square or 0.0),
            n=spread.trials, starts=spread.starts, confidence=floors.confidence,
        )  # fmt: skip
        starts, trials = _level(spread, study, same)
        level = [trials] * starts
        row = ResponseFloor(
            response=response, unit=unit_of(response), source=source, starts=spread.starts, trials=spread.trials,
            between_cv=variance_components.as_cv(components.between_starts),
            within_cv=variance_components.as_cv(components.within_starts),
            level_starts=starts, level_trials=trials,
            floor_percent=floor_percent(spread, level, level, "block", floors.confidence),
            floor_paired_percent=floor_percent(spread, level, level, "start", floors.confidence),
        )  # fmt: skip
        yield row.model_copy(update=_pairs(frame, response, floors.confidence)) if same else row


def _level(spread: Spread, study: Study | None, same: bool) -> tuple[int, int]:
    """Starts and used trials per level that the table's floors hold for."""
    if study is None:
        return spread.starts, max(1, round(spread.trials / spread.starts))
    if same:
        return max(1, spread.starts // len(SAME_LABELS)), max(1, round(spread.trials / spread.starts))
    return study.design.starts, max(1, study.design.trials - study.analysis.warm_up_trials)


def _pairs(frame: TrialFrame, response: str, confidence: float) -> dict[str, object]:
    """Comparison of the two labels of identical systems, as of two levels, and block by block."""
    sides: list[Treatment] = [{SAME_FACTOR: label} for label in SAME_LABELS]
    pair = pair_of((frame, sides[0]), (frame, sides[1]), response)
    if pair is None:
        return {}
    by_label = [frame.values(response, side) for side in sides]
    blocks = [
        {block: math.exp(mean) for block, mean in rows.group_by("block").agg(pl.col(response).log().mean()).iter_rows()}
        for rows in by_label
    ]
    changes = [100 * (blocks[1][block] / blocks[0][block] - 1) for block in sorted(set(blocks[0]) & set(blocks[1]))]
    return {
        "pairs": len(changes),
        "pair_ratio": ratio_of(pair, confidence),
        "pair_greatest_percent": max(changes, key=abs) if changes else None,
    }


def _sentence(
    main: ResponseFloor | None, mine: Sequence[ResponseFloor], floors: Floors, paired: bool, *, alone: bool
) -> str:
    """`alone`: levels on their own starts were compared too, and have no floor."""
    if main is None:
        why = [f"{one.source} of {one.starts} starts: too few" for one in mine if one.source != "none"]
        why += [floors.stored.why] if floors.stored.why else []
        told_why = "; ".join(why) or "this response has none"
        return f"Small differences are not screened for noise: {told_why}."
    floor = _of_way(main, paired)
    what = "tried within the same starts" if paired else "on their own starts"
    where = "This study compares identical systems"
    if main.source != "this study":
        spread, source = next((one, of) for one, of in floors.spreads(main.response) if of == main.source)
        where = "Verdicts on two levels were judged against the noise floor of this machine "
        where += f"({floors.words(source, spread)})"
    sizes = f"{main.level_starts} starts of {main.level_trials} trials per level, {what}"
    text = f"{where}: {confidence_text(floors.confidence)} of comparisons of identical systems with {sizes}, stay "
    text += f"below {number(floor.value if floor else 0.0, digits=2)}%"
    if main.within_cv is not None:
        cv = number(100 * main.within_cv.value, digits=2)
        text += f"; trials of one start differ by a coefficient of variation of {cv}%"
    if main.between_cv is not None:
        text += f", starts by {number(100 * main.between_cv.value, digits=2)}%"
    return f"{text}." + (" Levels on their own starts were judged against none." if alone else "")


def _beside(differing: Sequence[str]) -> str:
    return f" It was measured with {in_words(differing)}, which this study has nowhere." if differing else ""


STATISTIC = Statistic(
    name="noise_floor",
    row=ResponseFloor,
    title="Differences between identical systems: the noise floor of every response",
    section=Section.VALIDITY,
    compute=lambda context: every_floor(context.frame, context.floors, context.study),
    order=40,
)
