"""The one way in: records and their study to `Results`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from steelyard.analysis import contrast, noise, overall, words
from steelyard.analysis.ancova import coefficients
from steelyard.analysis.anova import anova, one_ways
from steelyard.analysis.compare import comparisons
from steelyard.analysis.course import courses
from steelyard.analysis.drift import drift
from steelyard.analysis.findings import PartMean
from steelyard.analysis.frame import RESPONSES, TrialFrame
from steelyard.analysis.lawchoice import choices, weighed
from steelyard.analysis.laws import LAWS, Load, laws
from steelyard.analysis.regression import other_regressions, regressions
from steelyard.analysis.results import LABELS, UNITS, LawFit, Results
from steelyard.analysis.scaling import scaling
from steelyard.analysis.shape import shapes
from steelyard.analysis.summary import boxes, exclusions, points, size_lines, summaries
from steelyard.analysis.variance import variance_components
from steelyard.analysis.warmup import warm_ups
from steelyard.format import NODES
from steelyard.judging import fractional_design
from steelyard.judging.noise_floor import FoundFloor
from steelyard.judging.stopping import decide
from steelyard.judging.stopping_rule import rule_of
from steelyard.model.plan import Plan
from steelyard.model.study import SAME_FACTOR, SAME_LABELS, Level, Study
from steelyard.model.trial import TrialRecord

THREADS = ("load.threads", "threads")


def frame_of(records: Sequence[TrialRecord], study: Study) -> TrialFrame:
    """The trial frame of a study: its factors in its order, then any that only the records' treatments name."""
    factors: dict[str, list[Level]] = {name: list(levels) for name, levels in study.factors.items()}
    if study.design.kind == "same":
        factors[SAME_FACTOR] = list(SAME_LABELS)
    hard: list[str] = []
    for record in sorted(records, key=lambda record: (record.position, record.id, record.attempt)):
        for name, level in record.treatment.items():
            levels = factors.setdefault(name, [])
            if level not in levels:
                levels.append(level)
        hard += [name for name in record.hard if name not in hard]
    in_order = [name for name in factors if name in hard]
    return TrialFrame.build(records, factors, in_order, study.analysis.warm_up_trials)


def size_factor(frame: TrialFrame) -> str | None:
    """The factor of sizes: nodes, else the first hard factor, with two numeric levels or more."""
    numeric = [
        name
        for name in frame.names
        if (name in frame.hard or name in NODES)
        and len(frame.factors[name]) > 1
        and all(isinstance(level, int | float) and not isinstance(level, bool) for level in frame.factors[name])
    ]
    return next((name for name in numeric if name in NODES), numeric[0] if numeric else None)


def analyse(
    records: Sequence[TrialRecord], study: Study, *, seed: int, parts: Sequence[PartMean] = (),
    floor: FoundFloor | None = None, plan: Plan | None = None,
) -> Results:  # fmt: skip
    """Everything that report and command line show, from every sealed record (valid or not) of one study.

    `seed` drives the draws behind the interval of a law's peak and the bootstraps; the same records and seed give the
    same results. `parts` is the mean value analysis (`parts.mean_values`), which needs the series within trials.
    `floor` is the noise floor that the store holds; verdicts are judged against it, control cells of the study first.
    `plan` is what the study's stopping rule, if it has one, is judged by.
    """
    frame = frame_of(records, study)
    response, confidence = study.analysis.response, study.analysis.confidence
    size = size_factor(frame)
    floors = noise.floors_of(frame, floor, confidence, study)
    rule = rule_of(study)
    rest = [name for name in RESPONSES if name != response and frame.data[name].is_not_null().any()]
    results = Results(
        study=study.study.name,
        title=study.study.title or study.study.name,
        question=study.study.question,
        response=response,
        response_label=LABELS[response],
        unit=UNITS[response],
        confidence=confidence,
        factors={name: tuple(levels) for name, levels in frame.factors.items()},
        hard=frame.hard,
        size_factor=size,
        trials=frame.data.height,
        used=frame.values(response).height,
        starts=frame.values(response)["start"].n_unique(),
        exclusions=exclusions(frame, response),
        shares=frame.shares,
        answer=(),
        caveats=(),
        summaries=summaries(frame, response, confidence),
        other_summaries=tuple(one for name in rest for one in summaries(frame, name, confidence)),
        regressions=regressions(frame, response, size, confidence) if size else (),
        other_regressions=other_regressions(frame, response, size, confidence),
        coefficients=coefficients(frame, response, confidence),
        size_lines=size_lines(frame, response, size, confidence) if size else (),
        boxes=boxes(frame, response),
        points=points(frame, response),
        warm_ups=warm_ups(frame, response, confidence),
        comparisons=noise.judged(
            comparisons(frame, response, confidence, study.analysis.equivalence_margin_percent), frame, floors
        ),
        laws=weighed(_laws(frame, study, size, np.random.default_rng(seed))),
        drift=drift(frame, response, confidence),
        noise_floor=noise.noise_floor(frame, response, floors, study, noise.settings_unlike(records, floors)),
        stopping=decide(plan, records, rule) if plan and rule else None,
        effects=contrast.effects_of(
            frame, response, np.random.default_rng(seed), confidence, study.analysis.equivalence_margin_percent
        ),
        effect_lines=contrast.effect_lines(frame, response, confidence),
        differentials=contrast.differentials(frame, response, confidence),
        speedups=contrast.speedups(frame, response, confidence),
        anova=anova(frame, response, confidence),
        one_ways=one_ways(frame, response),
        post_hoc=contrast.post_hoc(frame, response, confidence),
        shapes=shapes(frame, response, np.random.default_rng(seed)),
        courses=courses(frame, response, confidence),
        variance=variance_components(frame, [response, *rest], confidence),
        scaling=scaling(
            frame, response, size, is_open=study.load.is_open or "load.schedule" in frame.factors, confidence=confidence
        ),
        overall=noise.averages(overall.overall(frame, response, confidence), frame, floors),
        main_effects=noise.averages(
            overall.main_effects(frame, response, _fraction(frame, study), confidence), frame, floors
        ),
        parts=tuple(parts),
    )
    results = results.model_copy(update={"law_choices": choices(results.laws)})
    answer = tuple(words.answer(study.study.question, results))
    return results.model_copy(update={"answer": answer, "caveats": tuple(words.caveats(study, results))})


def _fraction(frame: TrialFrame, study: Study) -> fractional_design.Fraction | None:
    """The fraction of a fractional design, as the plan made it."""
    design = study.design
    if design.kind != "fractional":
        return None
    levels = {name: len(levels) for name, levels in study.factors.items()}
    return fractional_design.of_design(levels, set(frame.hard), design.generators, design.resolution)


def _laws(frame: TrialFrame, study: Study, size: str | None, rng: np.random.Generator) -> tuple[LawFit, ...]:
    """Laws over nodes: of service demand for one closed-loop thread, of throughput for more; refused in open loop."""
    if size not in NODES or size is None:
        return ()
    if study.load.is_open or "load.schedule" in frame.factors:
        refusal = (
            "The throughput of an open loop is set by its schedule, not by the cluster: no law can be fitted to it."
        )
        return tuple(
            LawFit(law=law, load="saturated", factor=size, others=others, response="throughput_per_s",
                   unit="operations/s", n=0, sizes=0, refusal=refusal)
            for others in frame.others(size)
            for law in LAWS
        )  # fmt: skip
    found: list[LawFit] = []
    threads = next((name for name in THREADS if name in frame.factors), None)
    loads: dict[Load, TrialFrame] = {}
    if threads is None:
        loads["single" if study.load.threads == 1 else "saturated"] = frame
    else:
        loads["single"] = _only(frame, pl.col(threads) == 1)
        loads["saturated"] = _only(frame, pl.col(threads) > 1)
    for load, part in loads.items():
        found += laws(part, size, load, rng, study.analysis.confidence)
    return tuple(found)


def _only(frame: TrialFrame, where: pl.Expr) -> TrialFrame:
    return TrialFrame(frame.data.filter(where), frame.factors, frame.hard, frame.warm_up_trials, frame.shares)
