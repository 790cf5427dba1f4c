"""Coverage of the intervals of one treatment: means, medians, spreads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from scipy import special

from steelyard.analysis.inference import estimates, variance_components
from tools.coverage.planted import MEAN_MS, Kind, Numbers, Plot, sample
from tools.coverage.tally import CONFIDENCE, Case, Draw, Outcome, Use, each, held

MEANS = "Mean"
MEDIANS = "Median"
SPREADS = "Spread"
APART = 8.0
"""Standard deviations between the two modes."""

VALUES: tuple[tuple[Kind, float], ...] = (("normal", 0.05), ("lognormal", 0.2), ("lognormal", 0.3), ("lognormal", 1.0))


def cases() -> Iterator[Case]:
    """Every cell of the three tables."""
    yield from _means()
    yield from _medians()
    yield from _spreads()


def _means() -> Iterator[Case]:
    for kind, cv in VALUES:
        for n in (2, 3, 5, 10, 20):
            yield Case(MEANS, "t over start means", f"{kind}, {cv:.0%}", f"{n}", _mean(kind, cv, n))
    for n in (2, 5, 10, 20):
        yield Case(MEANS, "z (chekkilla2016)", "normal, 5%", f"{n}", _mean_z(n), use="replication")
    plot = Plot(trials=5)
    for starts in (2, 5, 10):
        about, n_of = f"another start; {plot.words}", f"{starts} x {plot.trials}"
        yield Case(
            MEANS, "t over start means", about, n_of, _of_starts(plot, starts),
            beside=(("t over trials, counted as independent", "replication"),),
        )  # fmt: skip
    about = "the one start at hand; normal, trials 2%"
    for trials in (5, 20):
        draw = _of_this_start(Plot(trials=trials))
        yield Case(MEANS, "t over the trials of one start", about, f"1 x {trials}", draw)


def _mean(kind: Kind, cv: float, n: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        drawn = sample(rng, (studies, n), kind, cv)
        return each((estimates.mean(one, "ms", CONFIDENCE, "start means") for one in drawn.tolist()), MEAN_MS)

    return draw


def _mean_z(n: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        drawn = sample(rng, (studies, n), "normal", 0.05)
        return each((estimates.mean_z(one, "ms", CONFIDENCE, "trials") for one in drawn.tolist()), MEAN_MS)

    return draw


def _of_starts(plot: Plot, starts: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        for study in plot.values(rng, studies, starts):
            means, trials = study.mean(axis=1).tolist(), study.ravel().tolist()
            over = ((means, "start means"), (trials, "trials"))
            yield tuple(held(estimates.mean(values, "ms", CONFIDENCE, name), MEAN_MS) for values, name in over)

    return draw


def _of_this_start(plot: Plot) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        true_means = MEAN_MS * plot.starts(rng, studies, 1)
        drawn = plot.within(rng, true_means)[:, 0]
        for trials, truth in zip(drawn, true_means[:, 0], strict=True):
            yield held(estimates.mean(trials, "ms", CONFIDENCE, "trials"), float(truth))

    return draw


Values = Callable[[np.random.Generator, tuple[int, ...]], Numbers]


def _two_modes(rng: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
    return np.asarray(rng.standard_normal(shape) + APART * (rng.uniform(size=shape) < 0.4))


def _shapes() -> dict[str, tuple[float, Values]]:
    """Name to the true median and the function that draws an array of values."""
    sd = math.sqrt(math.log1p(0.3**2))
    return {
        "normal": (0.0, lambda rng, shape: rng.standard_normal(shape)),
        "lognormal, 30%": (1.0, lambda rng, shape: np.exp(sd * rng.standard_normal(shape))),
        "exponential": (math.log(2), lambda rng, shape: rng.exponential(size=shape)),
        "t with 3 degrees": (0.0, lambda rng, shape: rng.standard_t(3, shape)),
        # 60% lie about 0; the median of all values is the quantile 5/6 of these.
        "two modes, 60:40": (float(special.ndtri(0.5 / 0.6)), _two_modes),
    }


def _medians() -> Iterator[Case]:
    for name, (truth, values) in _shapes().items():
        for n in (6, 7, 8, 10, 15, 20, 30):
            yield Case(MEDIANS, "interpolated order statistics", name, f"{n}", _median(truth, values, n))
    for starts, trials in ((3, 4), (6, 4), (10, 3), (20, 3)):
        plot = Plot(trials=trials)
        yield Case(
            MEDIANS, "start medians: `median_of_starts`", f"another start; {plot.words}", f"{starts} x {trials}",
            _of_start_medians(plot, starts), beside=(("over trials, counted as independent", "not used"),),
        )  # fmt: skip
    for n in (6, 8, 10, 20):
        yield Case(MEDIANS, "whole order statistics", "normal", f"{n}", _whole_ranks(n), use="not used")


def _median(truth: float, values: Values, n: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        drawn = values(rng, (studies, n))
        return each((estimates.median(one, "ms", CONFIDENCE) for one in drawn.tolist()), truth)

    return draw


def _of_start_medians(plot: Plot, starts: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        for study in plot.values(rng, studies, starts):
            over = (np.median(study, axis=1), study.ravel())
            yield tuple(held(estimates.median(one.tolist(), "ms", CONFIDENCE), MEAN_MS) for one in over)

    return draw


def _whole_ranks(n: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        rank = estimates.median_rank(n, CONFIDENCE) or 1
        drawn = np.sort(rng.standard_normal((studies, n)), axis=1)
        return (bool(low <= 0 <= high) for low, high in zip(drawn[:, rank - 1], drawn[:, n - rank], strict=True))

    return draw


def _spreads() -> Iterator[Case]:
    for kind, cv in VALUES[:2]:
        for n in (3, 5, 10, 20):
            yield Case(SPREADS, "chi-squared: `sd`", f"{kind}, {cv:.0%}", f"{n}", _deviation(kind, cv, n))
    for n in (10, 13, 20, 30):
        yield Case(SPREADS, "order statistics: `q1`, `q3`", "normal", f"{n}", _quartile(n))
    plots: tuple[tuple[Kind, float, float], ...] = (("normal", 0.03, 0.02), ("lognormal", 0.25, 0.2))
    for kind, start_cv, trial_cv in plots:
        for starts, trials in ((3, 5), (5, 5), (10, 3)):
            plot = Plot(kind, start_cv, trial_cv, trials)
            for logs, of in ((True, "logarithms"), (False, "ms")):
                first, *others = (f"{which}, of {of}" for which in WHICH)
                use: Use = "ours" if logs else "not used"
                yield Case(
                    SPREADS, first, plot.words, f"{starts} x {trials}", _components(plot, starts, logs), share=0.15,
                    use=use, beside=tuple((other, use) for other in others),
                )  # fmt: skip


def _deviation(kind: Kind, cv: float, n: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        drawn = sample(rng, (studies, n), kind, cv).tolist()
        return (held(estimates.standard_deviation(one, "ms", CONFIDENCE), cv * MEAN_MS) for one in drawn)

    return draw


def _quartile(n: int) -> Draw:
    truth = float(special.ndtri(0.25))

    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        drawn = rng.standard_normal((studies, n)).tolist()
        return (held(estimates.quartile(one, 0.25, "ms", CONFIDENCE), truth) for one in drawn)

    return draw


WHICH = ("spread within starts", "spread between starts", "share of the starts")


def _components(plot: Plot, starts: int, logs: bool) -> Draw:
    """The truth on logarithms is exact for lognormal effects, and close for normal effects of a few per cent."""
    between, within = (math.sqrt(math.log1p(cv**2)) if logs else cv * MEAN_MS for cv in (plot.start_cv, plot.trial_cv))
    if not logs:  # a start's factor makes its trials' spread larger or smaller
        within *= math.sqrt(1 + plot.start_cv**2)
    share = between**2 / (between**2 + within**2)

    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        labels = np.repeat(np.arange(starts), plot.trials).tolist()
        drawn = plot.values(rng, studies, starts).reshape(studies, -1)
        for values in (np.log(drawn) if logs else drawn).tolist():
            components = variance_components.components(values, labels)
            yield (
                held(components.within_starts, within),
                held(components.between_starts, between),
                held(components.icc, share),
            )

    return draw
