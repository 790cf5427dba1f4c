"""Model selection among scalability laws by Akaike weights, in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Annotated, Literal

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference.law_fit import NO_SPREAD
from steelyard.analysis.row import NO_UNIT, Column, Levels, RatioOrNone, Row
from steelyard.analysis.statistic import Section, Statistic
from steelyard.analysis.statistics.law import NAMES, LawFit, same_points
from steelyard.analysis.treatments import label
from steelyard.analysis.wording import capital
from steelyard.format import count, number, with_interval
from steelyard.heavy import pl
from steelyard.judging.verdict import CEILING_UNKNOWN, command_to_calibrate
from steelyard.model.estimate import Estimate
from steelyard.model.trial import TrialRecord


class LawChoice(Row):
    """The preferred law of one line, in a sentence."""

    load: Literal["saturated", "single"]
    """Saturated: throughput is fitted; single: time per operation."""
    factor: str
    """Factor of sizes."""
    others: Levels
    response: str
    """Response, as named in the store."""
    n: int
    """Start means fitted."""
    sizes: int
    """Different sizes."""
    law: str | None = None
    """The preferred law: usl, amdahl, linear or broken; none if none was fitted, or the data do not decide."""
    contention: RatioOrNone = None
    """Contention, sigma of the preferred law; of the universal law where none is preferred or linear scaling is. None
    of a broken line, or where these laws are refused."""
    planted_contention: Annotated[float | None, Column(unit=NO_UNIT)] = None
    """Contention that was planted in a simulated cluster."""
    sentence: str
    """The preference in words, or why there is none."""


SURE = 0.9
"""A law with this weight or more is preferred; below it the data do not decide."""
WORTH_SAYING = 0.05
NEAR = 0.9
"""Share of the load generator's limit of CPU time from which a plateau is called near its ceiling."""
US_PER_S = 1e6
LACKS = 0.01
"""Below this p of the lack of fit, no law describes the sizes."""


def choices(
    fits: Sequence[LawFit], planted: float | None = None, of_generator: Callable[[LawFit], str] = lambda fit: ""
) -> tuple[LawChoice, ...]:
    """One sentence for each line and load with fitted laws; `fits` as from `weighed`. `planted`: contention of a
    simulated cluster. `of_generator`: what is known of the load generator on the plateau of a preferred broken line."""
    groups: dict[tuple[object, ...], list[LawFit]] = {}
    for fit in fits:
        groups.setdefault(same_points(fit), []).append(fit)
    return tuple(_choice(group, planted, of_generator) for group in groups.values())


def generator_on_plateau(fit: LawFit, frame: TrialFrame, records: Sequence[TrialRecord]) -> str:
    """Whether the load generator may be what caps a broken line, by the attempts beyond its knee: how many it limited,
    the CPU time that its operations take at that throughput, and whether its ceiling is known."""
    assert fit.knee_nodes is not None
    assert fit.ceiling is not None
    rows = frame.numbered(frame.where(fit.others), fit.factor)
    beyond = set(rows.filter(pl.col(fit.factor) > fit.knee_nodes.value).select("trial_id", "attempt").iter_rows())
    there = [one for one in records if one.key in beyond]
    limited = sum(any(reason.kind.about.of_generator for reason in one.verdict.reasons) for one in there)
    valid = [one for one in there if one.verdict.outcome == "valid"]
    notes = [note for one in valid for note in one.verdict.notes]
    unknown = any(note.startswith(CEILING_UNKNOWN) for note in notes)
    costs_us = [(one.responses.generator_cpu_us_per_operation or 0.0) / one.settings.load_nodes for one in valid]
    share = fit.ceiling.value * median(costs_us or [0.0]) / US_PER_S
    took = f"there it took {share:.0%} of a core" if share else "its CPU time there is unknown"
    if limited or share >= NEAR * max((one.limits.generator_cpu_fraction for one in valid), default=1.0):
        cause = f"{took}, and it limited {limited} of {count(len(there), 'attempt')} beyond the knee"
        return f"; that is near the ceiling of the load generator, and need not be the cluster's: {cause}"
    if unknown or not share:
        return (
            f"; it may be the ceiling of the load generator, which is unknown ({command_to_calibrate(notes)}): {took}"
        )
    return f"; the load generator was below its ceiling: {took}"


def planted_contention(records: Sequence[TrialRecord]) -> float | None:
    """Contention planted in the simulated clusters of all trials, also where the study's file leaves it to the default;
    None of other systems, or where it varies."""
    planted = {one.settings.planted_contention for one in records}
    return planted.pop() if len(planted) == 1 else None


def contention_of(group: Sequence[LawFit], law: str | None) -> Estimate | None:
    """Contention with its interval, by the preferred law, otherwise by the universal law, which holds both others."""
    if law == "broken":
        return None
    by_law = {fit.law: fit.sigma for fit in group if fit.sigma is not None and not fit.refusal}
    return by_law.get("amdahl" if law == "amdahl" else "usl") or by_law.get("amdahl")


def _contention_words(contention: Estimate | None, planted: float | None) -> str:
    """`; contention 0.10 [0.08, 0.12], planted 0.1`."""
    if contention is None:
        return ""
    return f"; contention {with_interval(contention)}" + (f", planted {planted:g}" if planted is not None else "")


def _choice(group: Sequence[LawFit], planted: float | None, of_generator: Callable[[LawFit], str]) -> LawChoice:
    first = group[0]
    who = label(first.others) if first.others else "all operations"
    if first.load == "single":
        who = f"{who}, by the time of one operation"
    law, preference = _preference(group)
    contention = contention_of(group, law)
    words = _contention_words(contention, planted) + "".join(
        of_generator(fit) for fit in group if fit.law == law == "broken"
    )
    preference = f"{preference.removesuffix('.')}{words}." if words else preference
    return LawChoice(
        factor=first.factor, others=first.others, load=first.load, response=first.response, n=first.n,
        sizes=first.sizes, law=law, contention=contention, planted_contention=planted,
        sentence=f"{capital(who)}: {preference}",
    )  # fmt: skip


def _preference(group: Sequence[LawFit]) -> tuple[str | None, str]:
    fitted = [fit for fit in group if not fit.refusal]
    if not fitted:
        return None, _lower(group[0].refusal)
    exact = [fit for fit in fitted if _spread(fit) < NO_SPREAD]
    if exact:
        simplest = min(exact, key=lambda fit: len(fit.parameters))
        return simplest.law, f"{_exactly(simplest)}: nothing is left to weigh laws by{_shape(simplest)}."
    ranked = sorted((fit for fit in fitted if fit.weight is not None), key=lambda fit: -(fit.weight or 0.0))
    outside = [fit for fit in group if fit.refusal and fit.sigma is not None]
    if not ranked and outside:
        return None, (
            f"throughput is better than linear: contention would be {with_interval(outside[0].sigma)}, below 0, where "
            "none of these laws lies."
        )
    if not ranked:
        return None, f"no law can be weighed against another: {fitted[0].n} points are too few for AICc."
    best, usl = ranked[0], next((fit for fit in fitted if fit.law == "usl"), None)
    weights = [f"{NAMES[fit.law]} {fit.weight:.0%}" for fit in ranked if (fit.weight or 0.0) >= WORTH_SAYING]
    against = _against(best, usl)
    if (best.weight or 0.0) >= SURE and not against:
        chosen: str | None = best.law
        preference = f"the data prefer {NAMES[best.law]} (AICc weights: {', '.join(weights)})"
    else:
        chosen = None
        preference = f"the data do not decide between laws (AICc weights: {', '.join(weights)}{against})"
    left = [NAMES[fit.law] for fit in fitted if fit.weight is None]
    if left:
        preference += f"; {' and '.join(left)} cannot be weighed with {best.n} points"
    if outside and outside[0].sigma is not None:
        refused = " and ".join(NAMES[fit.law] for fit in outside)
        preference += f"; refused, as contention would be below 0 ({with_interval(outside[0].sigma)}): {refused}"
    preference += _shape(usl if usl and not chosen and (against or best.law != "broken") else best)
    if all(fit.lack_of_fit_p is not None and fit.lack_of_fit_p < LACKS for fit in fitted):
        preference += "; but no law describes the sizes: their means leave it by more than starts of one size differ"
    return chosen, f"{preference}."


def _against(best: LawFit, usl: LawFit | None) -> str:
    """Evidence against a law without coherency where AICc is strict: the interval of kappa leaves out 0, and the
    universal law leaves smaller residuals."""
    kappa = usl.kappa if usl is not None else None
    if usl is None or best.law == "usl" or kappa is None or kappa.low is None or kappa.high is None:
        return ""
    if kappa.low <= 0 <= kappa.high or _spread(usl) > _spread(best):
        return ""
    return f"; but kappa of the universal law, [{kappa.low:.2g}, {kappa.high:.2g}], leaves out 0"


def _spread(fit: LawFit) -> float:
    return fit.residual_sd.value if fit.residual_sd else math.inf


def _exactly(fit: LawFit) -> str:
    sigma = fit.parameters.get("sigma")
    if fit.load == "single" and fit.law == "linear":
        return "every size takes the same time"
    if fit.load == "saturated" and fit.law == "amdahl" and sigma is not None and abs(sigma.value - 1) < NO_SPREAD:
        return "every size has the same throughput"
    return f"the points lie on {NAMES[fit.law]} exactly"


def _shape(fit: LawFit) -> str:
    """Shape of the law in words: its plateau, better than linear, or its peak, and whether it is within the sizes."""
    sigma = fit.parameters.get("sigma")
    if fit.base and fit.ceiling and fit.knee_nodes:
        return (
            f"; throughput rises by {with_interval(fit.base)} {fit.unit} a node up to {_nodes(fit.knee_nodes)}, and "
            f"stays at {with_interval(fit.ceiling)} {fit.unit} beyond"
        )
    if fit.law != "usl":
        return "; it is better than linear" if sigma and sigma.high is not None and sigma.high < 0 else ""
    if fit.peak_nodes is None:
        return "; by the universal law there is no peak"
    peak = fit.peak_nodes
    largest = max((point.level for point in fit.curve), default=math.inf)
    text = f"; by the universal law throughput would peak at {_nodes(peak)}"
    if peak.value > largest:
        return f"{text}, beyond the {largest:g} nodes tried: an extrapolation"
    if peak.high is None or peak.high > largest:
        return f"{text}; that it peaks within the {largest:g} nodes tried is not sure"
    return text


def _nodes(peak: Estimate) -> str:
    low = _size(peak.low or 0.0)
    if peak.high is None:
        return f"{_size(peak.value)} nodes (at least {low}, no upper end)"
    return f"{_size(peak.value)} nodes [{low}, {_size(peak.high)}]"


def _size(value: float) -> str:
    return number(value, digits=3, trim=True)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


STATISTIC = Statistic(
    name="law_choice",
    row=LawChoice,
    title="Which scalability law the data prefer",
    section=Section.SIZE,
    least_sizes=3,
    compute=lambda context: choices(
        context.of(LawFit),
        planted_contention(context.records),
        lambda fit: generator_on_plateau(fit, context.sized, context.records),
    ),
    order=70,
    without_size=True,
)
