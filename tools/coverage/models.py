"""Coverage of statistics over several levels: lines, analysis of variance, all pairs, laws, drift."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.statistics.anova import anova
from steelyard.analysis.statistics.comparison import comparisons
from steelyard.analysis.statistics.differential import differentials
from steelyard.analysis.statistics.effect_line import effect_lines
from steelyard.analysis.statistics.law import LAWS as ALL_LAWS
from steelyard.analysis.statistics.law import fit_law, weighed
from steelyard.analysis.statistics.law_choice import choices
from steelyard.analysis.statistics.one_way import one_ways
from steelyard.analysis.statistics.post_hoc import post_hoc
from steelyard.analysis.statistics.regression import regressions
from steelyard.analysis.statistics.validity import drift
from tools.coverage.planted import MEAN_MS, RESPONSE, Numbers, Plot, frame_of
from tools.coverage.tally import CONFIDENCE, Case, Draw, Outcome, Use, held

LINES = "Lines over sizes"
VARIANCE = "Analysis of variance and all pairs"
LAWS = "Scalability laws"
DRIFT = "Drift"

SIZES = (1, 2, 4, 6)
SLOPE = 10.0
PLOT = Plot()
SIGMA, KAPPA = 0.08, 0.004
BASE = 1000.0
PARAMETERS = (("sigma", SIGMA), ("kappa", KAPPA), ("base", BASE))
SIMULATED_SIZES, PLANTED, SIMULATED_CV = (1, 2, 3, 4, 6, 8), 0.1, 0.014
"""Sizes, contention and spread of start means of studies/simulated.toml."""
LINE = (("base", BASE), ("knee_nodes", 4.2), ("ceiling", 4.2 * BASE))
"""A broken line, as of a load generator that can do no more."""
PEAK = ((1 - SIGMA) / KAPPA) ** 0.5


def cases() -> Iterator[Case]:
    """Every cell of the four tables."""
    yield from _lines()
    yield from _variance()
    yield from _laws()
    yield from _drift()


def _sized(rng: np.random.Generator, studies: int, starts: int, plot: Plot = PLOT, slope: float = 0.0) -> Numbers:
    """(studies, sizes, starts, trials): a line over sizes with equal absolute errors."""
    drawn = np.stack([plot.values(rng, studies, starts) for _ in SIZES], axis=1)
    return np.asarray(drawn + slope * np.asarray(SIZES)[None, :, None, None])


def _frames(values: Iterable[Numbers], levels: tuple[tuple[int, str], ...]) -> Iterator[TrialFrame]:
    return (frame_of(one, levels) for one in values)


OVER_SIZES = tuple((size, "A") for size in SIZES)


def _lines() -> Iterator[Case]:
    forms: tuple[tuple[str, Use], ...] = (("honest", "ours"), ("published", "replication"))
    for starts in (2, 3, 5):
        for form, use in forms:
            over = "start means" if form == "honest" else "trials, counted as independent"
            name, about = f"slope over {over}", f"another start; 4 sizes; {PLOT.words}"
            yield Case(LINES, name, about, f"{starts} x 3", _slope(starts, form, PLOT), use=use, share=0.15)
    alone = Plot(start_cv=0.0)
    about = f"starts that do not differ; 4 sizes; {alone.words}"
    yield Case(LINES, "slope over trials, counted as independent", about, "1 x 3", _slope(1, "published", alone),
               use="replication", share=0.15)  # fmt: skip
    about = f"another start; 2 sizes; {PLOT.words}"
    for starts in (2, 5):
        n = f"{starts} x 3"
        yield Case(LINES, "0/1 slope over start means", about, n, _indicator(starts, "start means"), share=0.15)
        yield Case(
            LINES, "0/1 slope over trials", about, n, _indicator(starts, "trials"), use="replication", share=0.15
        )
        yield Case(LINES, "mean differential of trials", about, n, _differential(starts), use="replication", share=0.15)


def _slope(starts: int, form: str, plot: Plot) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        for frame in _frames(_sized(rng, studies, starts, plot, SLOPE), OVER_SIZES):
            (regression,) = regressions(frame, RESPONSE, "nodes", CONFIDENCE)
            fit = regression.honest if form == "honest" else regression.published
            yield None if fit is None else held(fit.slope, SLOPE)

    return draw


def _two_sizes(rng: np.random.Generator, studies: int, starts: int) -> Iterator[TrialFrame]:
    return _frames(_sized(rng, studies, starts)[:, :2], OVER_SIZES[:2])


def _indicator(starts: int, over: str) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        for frame in _two_sizes(rng, studies, starts):
            lines = effect_lines(frame, RESPONSE, CONFIDENCE)
            yield held(next((line.slope for line in lines if line.over == over), None), 0.0)

    return draw


def _differential(starts: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        return (
            held(differentials(frame, RESPONSE, CONFIDENCE)[0].mean, 0.0) for frame in _two_sizes(rng, studies, starts)
        )

    return draw


CROSSED = tuple((size, workload) for size in (1, 2, 4) for workload in "AB")
NOTHING = "three sizes by two workloads, nothing differs; starts 3%, trials 2%"


def _crossed(rng: np.random.Generator, studies: int, starts: int) -> Iterator[TrialFrame]:
    """Workloads of one size share its starts; a block shifts all of its starts."""
    block = 1 + 0.03 * rng.standard_normal((studies, 1, starts))
    shared = np.repeat(block * np.stack([PLOT.starts(rng, studies, starts) for _ in range(3)], axis=1), 2, axis=1)
    return _frames(PLOT.within(rng, MEAN_MS * shared), CROSSED)


def _variance() -> Iterator[Case]:
    for starts in (2, 3, 5, 10):
        first = "F of the hard factor, its own error"
        yield Case(
            VARIANCE, first, NOTHING, f"{starts} x 3", _terms(starts), "errs", share=0.25,
            beside=(("F of the other factor, its own error", "ours"), ("F of the interaction, its own error", "ours"),
                    ("any of these three terms, Holm", "ours"),
                    ("F of the hard factor, the error over trials", "replication")),
        )  # fmt: skip
    for starts in (2, 5, 10):
        about = f"4 sizes, nothing differs; {PLOT.words}"
        yield Case(
            VARIANCE, "any of 6 pairs, t with Holm", about, f"{starts} x 3", _families(starts), "errs", share=0.15,
            beside=(("any of 6 pairs, ranks with Holm", "ours"), ("any of 3 comparisons with a baseline, Holm", "ours"),
                    ("one-way F over start means", "ours"), ("Kruskal-Wallis over start means", "ours")),
        )  # fmt: skip
    for gap in (0.0, 3.0, 8.0):
        for starts in (3, 10):
            about = f"3 sizes, {gap:g}% from one to the next; {PLOT.words}"
            yield Case(VARIANCE, "partial eta squared", about, f"{starts} x 3", _eta(starts, gap), share=0.15)


def _clear(p: float | None) -> Outcome:
    """Whether a test is not significant; None without a p."""
    return None if p is None else p >= 1 - CONFIDENCE


def _least(values: Iterable[float | None]) -> float | None:
    return min((one for one in values if one is not None), default=None)


def _terms(starts: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        for frame in _crossed(rng, studies, starts):
            terms = anova(frame, RESPONSE)
            honest = {one.term: one.p for one in terms if one.form == "honest" and one.p is not None}
            published = next(one.p for one in terms if (one.form, one.term) == ("published", "nodes"))
            family = _least(one.p_holm for one in terms if one.form == "honest")
            tests = (honest["nodes"], honest["workload"], honest["nodes x workload"], family, published)
            yield tuple(_clear(p) for p in tests)

    return draw


def _families(starts: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        for frame in _frames(_sized(rng, studies, starts), OVER_SIZES):
            pairs, against = post_hoc(frame, RESPONSE), comparisons(frame, RESPONSE)
            at_once = next(one for one in one_ways(frame, RESPONSE) if one.over == "start means")
            tests = (
                _least(one.p_holm for one in pairs), _least(one.rank_p_holm for one in pairs),
                _least(one.p_holm for one in against), at_once.p, at_once.rank_p,
            )  # fmt: skip
            yield tuple(_clear(p) for p in tests)

    return draw


def _eta(starts: int, gap_percent: float) -> Draw:
    """The true partial eta squared is noncentrality / (noncentrality + n), after Steiger (2004)."""
    levels = (1, 2, 4)
    shifts = gap_percent / 100 * MEAN_MS * np.asarray([-1.0, 0.0, 1.0])
    variance = (PLOT.start_cv**2 + PLOT.trial_cv**2 / PLOT.trials) * MEAN_MS**2
    shift = starts * float(np.sum(shifts**2)) / variance

    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        drawn = np.stack([PLOT.values(rng, studies, starts) for _ in levels], axis=1) + shifts[None, :, None, None]
        for frame in _frames(drawn, tuple((size, "A") for size in levels)):
            term = next(one for one in anova(frame, RESPONSE) if (one.form, one.term) == ("honest", "nodes"))
            truth = shift / (shift + (term.df or 0) + (term.error_df or 0) + 1)
            yield held(term.eta_squared, truth)

    return draw


def _laws() -> Iterator[Case]:
    for sizes in ((1, 2, 4, 6, 8), (1, 2, 3, 4, 6, 8, 12, 16)):
        for starts in (1, 2):
            n, about = f"{len(sizes)} sizes x {starts}", f"sigma {SIGMA:g}, kappa {KAPPA:g}; lognormal, starts 3%"
            names = (("kappa of the universal law", "ours"), ("base of the universal law", "ours"), ("peak", "ours"))
            yield Case(LAWS, "sigma of the universal law", about, n, _law(sizes, starts), share=0.04, beside=names)  # type: ignore[arg-type]

    for starts in (1, 2):
        about = "min(1000 n, 4200)/s; lognormal, starts 3%"
        yield Case(LAWS, "a of the broken line", about, f"8 sizes x {starts}", _broken(starts), share=0.1,
                   beside=(("knee of the broken line", "ours"), ("ceiling of the broken line", "ours")))  # fmt: skip
    about = "contention 0.1 and no coherency, as studies/simulated.toml plants it; lognormal, starts 1.4%"
    yield Case(LAWS, "contention that the answer states", about, "6 sizes x 3", _stated(), share=0.1)


def _stated() -> Draw:
    """The planted law of studies/simulated.toml, through the function that prints contention with its interval."""
    n = np.asarray(SIMULATED_SIZES, dtype=float)
    exact = BASE * n / (1 + PLANTED * (n - 1))

    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        for study in exact * np.exp(SIMULATED_CV * rng.standard_normal((studies, 3, len(n)))):
            points = [(float(size), float(value)) for row in study for size, value in zip(n, row, strict=True)]
            fits = weighed([fit_law(points, law, "saturated", confidence=CONFIDENCE, rng=rng) for law in ALL_LAWS])
            (choice,) = choices(fits, PLANTED)
            yield None if choice.contention is None else held(choice.contention, PLANTED)

    return draw


def _law(sizes: tuple[int, ...], starts: int) -> Draw:
    n = np.asarray(sizes, dtype=float)
    exact = BASE * n / (1 + SIGMA * (n - 1) + KAPPA * n * (n - 1))

    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        noise = np.exp(0.03 * rng.standard_normal((studies, starts, len(sizes))))
        for study in exact * noise:
            points = [(float(size), float(value)) for row in study for size, value in zip(sizes, row, strict=True)]
            law = fit_law(points, "usl", "saturated", confidence=CONFIDENCE, rng=rng)
            given = [held(law.parameters[name], truth) for name, truth in PARAMETERS]
            yield (*given, held(law.peak_nodes, PEAK))

    return draw


def _broken(starts: int) -> Draw:
    sizes = np.tile(np.arange(1.0, 9.0), starts)
    exact = np.minimum(BASE * sizes, LINE[-1][1])

    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        for study in exact * np.exp(0.03 * rng.standard_normal((studies, len(sizes)))):
            points = [(float(size), float(value)) for size, value in zip(sizes, study, strict=True)]
            law = fit_law(points, "broken", "saturated", confidence=CONFIDENCE, rng=rng)
            yield tuple(None if law.refusal else held(law.parameters[name], truth) for name, truth in LINE)

    return draw


def _drift() -> Iterator[Case]:
    for starts in (3, 5, 10):
        about = f"no drift, 2 sizes; {PLOT.words}"
        yield Case(DRIFT, "over the hours", about, f"{starts} x 9", _slope_of_time(starts), share=0.15)


def _slope_of_time(starts: int) -> Draw:
    plot = Plot(trials=9)

    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        values = np.stack([plot.values(rng, studies, starts) for _ in range(2)], axis=1)
        for frame in _frames(values, OVER_SIZES[:2]):
            stretched = TrialFrame(
                frame.data.with_columns(begun_s=frame.data["begun_s"] * 5), frame.factors, frame.hard, 0
            )
            yield held(drift(stretched, RESPONSE, CONFIDENCE)[1], 0.0)

    return draw
