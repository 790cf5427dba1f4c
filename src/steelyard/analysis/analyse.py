"""Entry point of the analysis: records and their study to `Results`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from steelyard.analysis import statistics
from steelyard.analysis.comparisons.identical_systems import floors_of
from steelyard.analysis.frame import PROFILE, frame_of, size_factor
from steelyard.analysis.narrative.answer import answer
from steelyard.analysis.narrative.answer_table import answer_table, factor_asked, of_main_effects
from steelyard.analysis.narrative.caveats import caveats
from steelyard.analysis.results import Results
from steelyard.analysis.statistic import Context, Within
from steelyard.analysis.statistics.comparison import Comparison
from steelyard.analysis.statistics.main_effect import MainEffect
from steelyard.analysis.statistics.trend import Trend
from steelyard.judging.looks import look_of
from steelyard.judging.noise_floor import FoundFloor
from steelyard.judging.stopping import decision_of
from steelyard.model.plan import Plan
from steelyard.model.responses import label_of, unit_of
from steelyard.model.study import Study
from steelyard.model.trial import TrialRecord


def analyse(
    records: Sequence[TrialRecord], study: Study, *, seed: int, within: Within | None = None,
    floor: FoundFloor | None = None, plan: Plan | None = None, emulated: bool = False, look: int = 1,
    of_system: Sequence[str] = (), unlike: str = "",
) -> Results:  # fmt: skip
    """All results for report and command line, from every sealed record (valid or not) of one study.

    `seed` drives the draws behind the interval of a law's peak and the bootstraps; the same records and seed give the
    same results. `within` has the data within trials; without it their statistics are empty.
    `floor` is the noise floor that the store holds; verdicts are judged against it, control cells of the study first.
    `plan` says whether the study is finished, and is needed for its stopping rule, if it has one. `emulated`: whether
    the facts of any start say that its processors were emulated. `look`: which look at the study this is, from 1;
    `study` has its confidence. `of_system`: sentences that the systems under test say of themselves;
    `unlike`: words that belong to the answer, if they do not promise the same.
    """
    decision = decision_of(plan, records, study)
    frame = replace(frame_of(records, study), look=look_of(plan, records, study, look, decision))
    context = Context(
        frame, study, seed=seed, statistics=statistics.every(), records=records, within=within,
        floors=floors_of(frame, floor, study.analysis.confidence, study),
        decision=decision,
    )  # fmt: skip
    results = _results(context)
    simulated = {one.settings.planted_contention is not None for one in records} == {True}
    limits = caveats(
        study, results, records, simulated=simulated, emulated=emulated, of_system=of_system, plan=plan,
        unsized=frame.data.height - context.sized.data.height,
    )  # fmt: skip
    return results.model_copy(
        update={
            **_saying(unlike, results),
            "caveats": tuple(limits),
            "further": tuple(_further(context, name) for name in context.further_responses),
        }
    )


def _saying(unlike: str, results: Results) -> Mapping[str, object]:
    """What changes of results whose answer needs a sentence: the caption of its table, which is copied with it."""
    if not unlike:
        return {}
    if (table := results.answer_table) is None:
        return {"answer": (*results.answer, f"{unlike}.")}
    return {"answer_table": table.model_copy(update={"caption": f"{table.caption}. {unlike}"})}


def _further(context: Context, response: str) -> Results:
    """Results by a further response: the rows that say something of it, without what is the same for all responses."""
    study, within = context.study, Within(seconds=context.within.seconds)
    names = tuple(name for name in study.analysis.every_response if name != response)
    analysis = study.analysis.model_copy(update={"response": response, "responses": names, "objective": ""})
    # The question is that of the main response.
    unasked = study.study.model_copy(update={"question": ""})
    own = Context(
        context.whole, study.model_copy(update={"analysis": analysis, "study": unasked}), seed=context.seed,
        statistics=statistics.every(), records=context.records, within=within, floors=context.floors,
        shares_with=context,
    )  # fmt: skip
    results = _results(own)
    rows = {
        statistic.name: results.of(statistic.row)
        if "response" not in statistic.row.model_fields
        else tuple(row for row in results.of(statistic.row) if getattr(row, "response", "") == response)
        for statistic in statistics.every()
        if not statistic.of_records
    }
    return results.model_copy(update={"rows": rows})


def _results(context: Context) -> Results:
    """Results by the context's response, without caveats."""
    frame, study, every = context.frame, context.study, statistics.every()
    response, confidence = context.response, context.confidence
    used = frame.values(response)
    results = Results(
        study=study.study.name, title=study.study.title or study.study.name, question=study.study.question,
        response=response, response_label=label_of(response), unit=unit_of(response), confidence=confidence,
        factors={name: tuple(levels) for name, levels in context.whole.factors.items()},
        numbers={name: tuple(known.values()) for name, known in frame.numbers.items()},
        number_units={name: "MiB" if name == PROFILE else study.unit_of(name) for name in frame.numbers},
        hard=frame.hard, size_factor=size_factor(frame),
        factor_asked=factor_asked(study, size_factor(frame), context.of(Comparison), frame.factors),
        trials=frame.data.height, used=used.height, starts=used["start"].n_unique(), shares=frame.shares,
        own_limits=frame.own_limits, look=frame.look, stopping=context.decision,
        rows={statistic.name: context.of(statistic.row) for statistic in every},
    )  # fmt: skip
    factor = results.factor_asked
    if results.of(MainEffect):
        results = results.model_copy(update={"answer_table": of_main_effects(results.of(MainEffect), study)})
    elif factor is not None:
        compared, floors = results.of(Comparison), context.floors
        known = {"answer_table": answer_table(frame, study, factor, compared, floors)}
        if len(frame.factors.get(factor, ())) > 2:
            known["answer_pairs"] = answer_table(
                frame, study, factor, floors=floors, trends=results.of(Trend), every_pair=True
            )
        results = results.model_copy(update=known)
    return results.model_copy(update={"answer": tuple(answer(study.study.question, results))})
