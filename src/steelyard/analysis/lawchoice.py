"""Which scalability law the data prefer, in a sentence: by Akaike's weights, and only as far as they tell.

Weight of a law: exp(-d / 2) / sum of exp(-d / 2) over the laws fitted to the same points, d its AICc less the least
(K. P. Burnham, D. R. Anderson, Model Selection and Multimodel Inference, 2nd edition, Springer 2002, section 2.9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from steelyard.analysis.lawfit import NO_SPREAD
from steelyard.analysis.results import LawChoice, LawFit, label
from steelyard.format import number
from steelyard.model.estimate import Estimate

SURE = 0.9
"""A law with this weight or more is preferred; below it the data do not decide."""
WORTH_SAYING = 0.05
LACKS = 0.01
"""Below this p of the lack of fit, no law describes the sizes."""

NAMES = {"usl": "the universal scalability law", "amdahl": "Amdahl's law", "linear": "linear scaling"}


def weighed(fits: Sequence[LawFit]) -> tuple[LawFit, ...]:
    """The same laws with their weights among those of the same points and load that have an AICc."""
    groups: dict[tuple[object, ...], list[float]] = {}
    for fit in fits:
        if fit.aicc is not None:
            groups.setdefault(_key(fit), []).append(fit.aicc)
    found = []
    for fit in fits:
        among = groups.get(_key(fit), [])
        weight = None
        if fit.aicc is not None and len(among) > 1:
            least = min(among)
            weight = math.exp((least - fit.aicc) / 2) / sum(math.exp((least - one) / 2) for one in among)
        found.append(fit.model_copy(update={"weight": weight}))
    return tuple(found)


def choices(fits: Sequence[LawFit]) -> tuple[LawChoice, ...]:
    """One sentence for each line and load over which laws were tried; `fits` as `weighed` gives them."""
    groups: dict[tuple[object, ...], list[LawFit]] = {}
    for fit in fits:
        groups.setdefault(_key(fit), []).append(fit)
    return tuple(_choice(group) for group in groups.values())


def _key(fit: LawFit) -> tuple[object, ...]:
    return (fit.load, fit.factor, *sorted((name, str(level)) for name, level in fit.others.items()))


def _choice(group: Sequence[LawFit]) -> LawChoice:
    first = group[0]
    who = label(first.others) if first.others else "the whole load"
    if first.load == "single":
        who = f"{who}, by the time of one operation"
    law, said = _told(group)
    return LawChoice(
        factor=first.factor, others=first.others, load=first.load, response=first.response, n=first.n,
        sizes=first.sizes, law=law, sentence=f"{_capital(who)}: {said}",
    )  # fmt: skip


def _told(group: Sequence[LawFit]) -> tuple[str | None, str]:
    fitted = [fit for fit in group if not fit.refusal]
    if not fitted:
        return None, _lower(group[0].refusal)
    exact = [fit for fit in fitted if fit.residual_sd is not None and fit.residual_sd.value < NO_SPREAD]
    if exact:
        simplest = min(exact, key=lambda fit: len(fit.parameters))
        return simplest.law, f"{_exactly(simplest)}: nothing is left to weigh laws by{_shape(simplest)}."
    ranked = sorted((fit for fit in fitted if fit.weight is not None), key=lambda fit: -(fit.weight or 0.0))
    if not ranked:
        return None, f"no law can be weighed against another: {fitted[0].n} points are too few for AICc."
    best, usl = ranked[0], next((fit for fit in fitted if fit.law == "usl"), None)
    weights = [f"{NAMES[fit.law]} {fit.weight:.0%}" for fit in ranked if (fit.weight or 0.0) >= WORTH_SAYING]
    against = _against(best, usl)
    if (best.weight or 0.0) >= SURE and not against:
        chosen: str | None = best.law
        said = f"the data prefer {NAMES[best.law]} (AICc weights: {', '.join(weights)})"
    else:
        chosen = None
        said = f"the data do not decide between laws (AICc weights: {', '.join(weights)}{against})"
    left = [NAMES[fit.law] for fit in fitted if fit.weight is None]
    if left:
        said += f"; {' and '.join(left)} cannot be weighed with {best.n} points"
    said += _shape(best if chosen or usl is None else usl)
    if all(fit.lack_of_fit_p is not None and fit.lack_of_fit_p < LACKS for fit in fitted):
        said += "; but no law describes the sizes: their means leave it by more than starts of one size differ"
    return chosen, f"{said}."


def _against(best: LawFit, usl: LawFit | None) -> str:
    """AICc is strict with few points: a coherency whose interval leaves out 0 speaks against a law without one."""
    kappa = usl.parameters.get("kappa") if usl is not None else None
    if best.law == "usl" or kappa is None or kappa.low is None or kappa.high is None or kappa.low <= 0 <= kappa.high:
        return ""
    return f"; but kappa of the universal law, [{kappa.low:.2g}, {kappa.high:.2g}], leaves out 0"


def _exactly(fit: LawFit) -> str:
    sigma = fit.parameters.get("sigma")
    if fit.load == "single" and fit.law == "linear":
        return "every size takes the same time"
    if fit.load == "saturated" and fit.law == "amdahl" and sigma is not None and abs(sigma.value - 1) < NO_SPREAD:
        return "every size has the same throughput"
    return f"the points lie on {NAMES[fit.law]} exactly"


def _shape(fit: LawFit) -> str:
    """What the law says in words: better than linear, or where it peaks, and whether that was tried."""
    sigma = fit.parameters.get("sigma")
    if fit.law != "usl":
        return "; it is better than linear" if sigma and sigma.high is not None and sigma.high < 0 else ""
    if fit.peak_nodes is None:
        return "; by the universal law there is no peak"
    peak = fit.peak_nodes
    largest = max((point.level for point in fit.curve), default=math.inf)
    said = f"; by the universal law throughput would peak at {_nodes(peak)}"
    if peak.value > largest:
        return f"{said}, beyond the {largest:g} nodes tried: an extrapolation"
    if peak.high is None or peak.high > largest:
        return f"{said}; that it peaks within the {largest:g} nodes tried is not sure"
    return said


def _nodes(peak: Estimate) -> str:
    low = _size(peak.low or 0.0)
    if peak.high is None:
        return f"{_size(peak.value)} nodes (at least {low}, no upper end)"
    return f"{_size(peak.value)} nodes [{low}, {_size(peak.high)}]"


def _size(value: float) -> str:
    return number(value, digits=3, trim=True)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
