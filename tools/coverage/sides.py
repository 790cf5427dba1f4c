"""Coverage of comparisons of two levels: ratios, differences, medians, effect sizes, equivalence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import special, stats

from steelyard.analysis.comparisons.level_pairs import LevelPair
from steelyard.analysis.comparisons.level_ratios import ratio_of
from steelyard.analysis.inference import effect_sizes
from steelyard.model.estimate import Estimate
from tools.coverage.planted import MEAN_MS, Kind, Numbers, Plot
from tools.coverage.tally import CONFIDENCE, Case, Draw, Outcome, held

RATIOS = "Two levels: ratio and difference"
SAME = "Identical systems called different"
EFFECTS = "Effect sizes"
EQUIVALENCE = "Equivalence at the margin"

HOUSE = Plot()
WILD = Plot("lognormal", 0.25, 0.2)
PLOTS = (HOUSE, WILD)
TRUE_RATIO = 1.2
EQUAL = (2, 3, 4, 5, 10, 20)
UNEQUAL = ((2, 3), (2, 5), (2, 10), (3, 10), (5, 10), (5, 20), (10, 20))

Pair = Callable[[Sequence[float], Sequence[float], np.random.Generator], Estimate | None]


def cases() -> Iterator[Case]:
    """Every cell of the four tables."""
    yield from _ratios()
    yield from _same()
    yield from _effects()
    yield from _equivalence()


def _numbers(n_a: int, n_b: int) -> str:
    return f"{n_a}" if n_a == n_b else f"{n_a}, {n_b}"


def two(plot: Plot, n_a: int, n_b: int, ratio: float, method: Pair, truth: float, wider: float = 1.0) -> Draw:
    """Start means of two levels on different starts; the level's spread is `wider` times the baseline's."""
    other = Plot(plot.kind, plot.start_cv * wider, plot.trial_cv * wider, plot.trials)

    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        a, b = plot.means(rng, studies, n_a), other.means(rng, studies, n_b, ratio * MEAN_MS)
        return (held(method(*one, rng), truth) for one in zip(a.tolist(), b.tolist(), strict=True))

    return draw


def shared(plot: Plot, n: int, ratio: float, method: Pair, truth: float) -> Draw:
    """Start means of two levels within the same starts."""

    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        a, b = plot.pairs(rng, studies, n, ratio)
        return (held(method(*one, rng), truth) for one in zip(a.tolist(), b.tolist(), strict=True))

    return draw


def in_blocks(plot: Plot, n: int, ratio: float, shock_cv: float, second: float) -> Draw:
    """Start means of two levels in blocks, in turn at the first and the second place, which costs `second`."""
    places = ((1, 2) * n)[:n], ((2, 1) * n)[:n]
    later = 1 + second * (np.array(places) - 1)

    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        block = np.exp(rng.normal(0, shock_cv, (studies, n)))
        a, b = plot.means(rng, studies, n) * block * later[0], plot.means(rng, studies, n) * block * later[1] * ratio
        pairs = (
            LevelPair("start means", "block", tuple(x), tuple(y), places=places) for x, y in zip(a, b, strict=True)
        )
        return (held(ratio_of(pair, CONFIDENCE), ratio) for pair in pairs)

    return draw


def _geometric(a: Sequence[float], b: Sequence[float], _: np.random.Generator) -> Estimate | None:
    return ratio_of(LevelPair("start means", "", tuple(a), tuple(b)), CONFIDENCE)


def _geometric_paired(a: Sequence[float], b: Sequence[float], _: np.random.Generator) -> Estimate | None:
    return ratio_of(LevelPair("start means", "start", tuple(a), tuple(b)), CONFIDENCE)


def _of(function: Callable[..., Estimate | None], *between: Any, paired: bool = False, after: str = "") -> Pair:
    """A function of `effect_sizes` as a `Pair`; `between` are its arguments between the samples and the confidence."""

    def method(a: Sequence[float], b: Sequence[float], rng: np.random.Generator) -> Estimate | None:
        given = (rng, *between) if after == "rng" else between
        return function(effect_sizes.TwoSamples(a, b, "start means", paired), *given, CONFIDENCE)

    return method


def percentile_bootstrap(a: Sequence[float], b: Sequence[float], rng: np.random.Generator) -> Estimate:
    """scipy's percentile bootstrap of the ratio of means, which the analysis used before."""

    def ratio(x: Numbers, y: Numbers, axis: int = -1) -> Numbers:
        return np.asarray(y.mean(axis=axis) / x.mean(axis=axis))

    bootstrap = stats.bootstrap((a, b), ratio, vectorized=True, n_resamples=1000, method="percentile", rng=rng)
    ends = bootstrap.confidence_interval
    return Estimate(value=1.0, low=float(ends.low), high=float(ends.high), n=len(a), unit="", method="percentile")


def _ratios() -> Iterator[Case]:
    for plot in PLOTS:
        for n_a, n_b in (*((n, n) for n in EQUAL), (5, 10), (10, 20)):
            n, about = _numbers(n_a, n_b), f"ratio {TRUE_RATIO}; {plot.words}"
            for name, method, truth in (
                ("Welch on logarithms: `ratio`", _geometric, TRUE_RATIO),
                ("Fieller: `ratio_fieller`", _of(effect_sizes.fieller), TRUE_RATIO),
                ("Welch: `difference`", _of(effect_sizes.difference, "ms"), (TRUE_RATIO - 1) * MEAN_MS),
            ):
                yield Case(RATIOS, name, about, n, two(plot, n_a, n_b, TRUE_RATIO, method, truth))
            boot = _of(effect_sizes.bootstrap_ratio, after="rng")
            name = "bootstrap-t: `ratio_bootstrap`"
            yield Case(RATIOS, name, about, n, two(plot, n_a, n_b, TRUE_RATIO, boot, TRUE_RATIO), share=0.2)
            median = _of(effect_sizes.ratio_of_medians)
            name = "Price and Bonett: `ratio_medians`"
            yield Case(RATIOS, name, about, n, two(plot, n_a, n_b, TRUE_RATIO, median, TRUE_RATIO))
        for n_a in EQUAL:
            about = f"ratio {TRUE_RATIO}, same starts; {plot.words}"
            for name, method, truth, share in (
                ("pairs on logarithms: `ratio`", _geometric_paired, TRUE_RATIO, 1.0),
                ("Fieller of pairs: `ratio_fieller`", _of(effect_sizes.fieller, paired=True), TRUE_RATIO, 1.0),
                (
                    "pairs: `difference`",
                    _of(effect_sizes.difference, "ms", paired=True),
                    (TRUE_RATIO - 1) * MEAN_MS,
                    1.0,
                ),
                ("bootstrap-t of pairs", _of(effect_sizes.bootstrap_ratio, paired=True, after="rng"), TRUE_RATIO, 0.2),
            ):
                yield Case(RATIOS, name, about, f"{n_a}", shared(plot, n_a, TRUE_RATIO, method, truth), share=share)
    for each in (3, 5, 10, 20):
        about = f"ratio {TRUE_RATIO}; {HOUSE.words}"
        draw = two(HOUSE, each, each, TRUE_RATIO, percentile_bootstrap, TRUE_RATIO)
        yield Case(RATIOS, "percentile bootstrap", about, f"{each}", draw, use="not used", share=0.1)
    skews: tuple[tuple[Kind, float], ...] = (("normal", 0.05), ("lognormal", 0.08), ("lognormal", 0.3))
    for each in (5, 10, 30):
        for kind, cv in skews:
            draw = two(Plot(kind, cv, 0.0, 1), each, each, 1.0, _of(effect_sizes.ratio_of_deviations), 1.0)
            yield Case(RATIOS, "F: `ratio_sds`", f"equal; {kind}, {cv:.0%}", f"{each}", draw)


def _same() -> Iterator[Case]:
    """The same system twice: the error rate of the verdict's own test over starts, and of other tests."""
    logs = "Welch on logarithms of start means: the verdict"
    for plot in PLOTS:
        for n_a, n_b in (*((n, n) for n in EQUAL), *UNEQUAL):
            draw = two(plot, n_a, n_b, 1.0, _geometric, 1.0)
            yield Case(SAME, logs, plot.words, _numbers(n_a, n_b), draw, "errs")
        for n in EQUAL:
            draw = shared(plot, n, 1.0, _geometric_paired, 1.0)
            yield Case(SAME, "pairs on logarithms of start means: the verdict", plot.words, f"{n}", draw, "errs")
    for shock, second in ((0.0, 0.0), (0.03, 0.0), (0.05, 0.0), (0.05, 0.06)):
        about = f"in blocks that differ by {shock:.0%}, second place {second:+.0%}; {HOUSE.words}"
        for n in (3, 4, 5, 6, 8, 10):
            blocks = in_blocks(HOUSE, n, 1.0, shock, second)
            yield Case(SAME, "pairs on logarithms of start means: the verdict", about, f"{n}", blocks, "errs")
    times = {3.0: "three times", 5.0: "five times", 1 / 3: "a third of"}
    for wider, (n_a, n_b) in (
        (3.0, (3, 3)), (3.0, (5, 5)), (3.0, (5, 10)), (5.0, (3, 3)), (5.0, (5, 5)), (1 / 3, (5, 10)), (1 / 3, (2, 5)),
    ):  # fmt: skip
        skew = Plot("lognormal")
        draw = two(skew, n_a, n_b, 1.0, _geometric, _geometric_ratio(skew, wider), wider)
        about = f"equal means, spread of the second {times[wider]} the first's; lognormal"
        yield Case(SAME, logs, about, _numbers(n_a, n_b), draw, "errs")
    for n in (2, 3, 5, 10):
        draw = two(HOUSE, n, n, 1.0, percentile_bootstrap, 1.0)
        yield Case(SAME, "percentile bootstrap over starts", HOUSE.words, f"{n}", draw, "errs", "not used", 0.1)
        yield Case(
            SAME,
            "Welch over trials, counted as independent",
            HOUSE.words,
            f"{n}",
            _over_trials(n),
            "errs",
            "replication",
        )
    for n_a, n_b in ((2, 5), (2, 10), (3, 20)):
        yield Case(
            SAME,
            "Welch with Satterthwaite's degrees (scipy)",
            HOUSE.words,
            _numbers(n_a, n_b),
            _scipys(n_a, n_b),
            "errs",
            "not used",
        )


def _geometric_ratio(plot: Plot, wider: float) -> float:
    """Ratio of the geometric means of start means, by simulation: means of lognormal trials are not lognormal."""
    rng, other = np.random.default_rng(1), Plot(plot.kind, plot.start_cv * wider, plot.trial_cv * wider, plot.trials)
    logs = [float(np.log(one.means(rng, 50_000, 1)).mean()) for one in (plot, other)]
    return math.exp(logs[1] - logs[0])


def _over_trials(n: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        a, b = (np.log(HOUSE.values(rng, studies, n)).reshape(studies, -1).tolist() for _ in range(2))
        return (
            effect_sizes.p_of_difference(effect_sizes.TwoSamples(*one, "trials")) >= 1 - CONFIDENCE
            for one in zip(a, b, strict=True)
        )

    return draw


def _scipys(n_a: int, n_b: int) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        a, b = (np.log(HOUSE.means(rng, studies, n)) for n in (n_a, n_b))
        p_values = np.asarray(stats.ttest_ind(a, b, axis=1, equal_var=False).pvalue)
        return (bool(p >= 1 - CONFIDENCE) for p in p_values)

    return draw


def _effects() -> Iterator[Case]:
    for delta in (0.0, 1.0, 3.0):
        for n_a, n_b in ((2, 2), (3, 3), (5, 5), (10, 10), (20, 20), (5, 10)):
            for name, function in (("Cohen's d", effect_sizes.cohens_d), ("Hedges' g", effect_sizes.hedges_g)):
                method = _of(function)
                about = f"normal, difference of {delta:g} sd"
                yield Case(EFFECTS, name, about, _numbers(n_a, n_b), _standardised(n_a, n_b, delta, method), share=0.5)
        for n in (2, 3, 5, 10, 20):
            method = _of(effect_sizes.cohens_d, paired=True)
            about = f"pairs, correlation 0.9; normal, difference of {delta:g} sd"
            yield Case(
                EFFECTS, "Cohen's d of pairs", about, f"{n}", _standardised_pairs(n, delta, 0.9, method), share=0.5
            )
    for n_a, n_b in ((5, 5), (10, 10), (5, 10)):
        method = _of(effect_sizes.cohens_d)
        about = "normal, difference of 1 sd, spread of the second twice the first's"
        yield Case(
            EFFECTS, "Cohen's d", about, _numbers(n_a, n_b), _standardised(n_a, n_b, 1.0, method, 2.0), share=0.5
        )
    for delta in (0.0, 0.4, 0.8, 0.95):
        for n_a, n_b in ((3, 3), (4, 4), (5, 5), (10, 10), (20, 20), (5, 10)):
            name, about = "Cliff's delta", f"normal, delta {delta:g}"
            yield Case(EFFECTS, name, about, _numbers(n_a, n_b), _dominance(n_a, n_b, delta), share=0.5)


def _standardised(n_a: int, n_b: int, delta: float, method: Pair, wider: float = 1.0) -> Draw:
    """Normal values with sd 1 and `wider`; delta in units of the root mean square of both."""
    gap = delta * math.sqrt((1 + wider**2) / 2)

    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        a, b = rng.normal(50, 1, (studies, n_a)), rng.normal(50 + gap, wider, (studies, n_b))
        return (held(method(*one, rng), delta) for one in zip(a.tolist(), b.tolist(), strict=True))

    return draw


def _standardised_pairs(n: int, delta: float, correlation: float, method: Pair) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        a, more = rng.standard_normal((2, studies, n))
        b = correlation * a + math.sqrt(1 - correlation**2) * more + delta
        return (held(method(*one, rng), delta) for one in zip(a.tolist(), b.tolist(), strict=True))

    return draw


def _dominance(n_a: int, n_b: int, delta: float) -> Draw:
    gap = math.sqrt(2) * float(special.ndtri((delta + 1) / 2))

    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        a, b = rng.normal(0, 1, (studies, n_a)).tolist(), rng.normal(gap, 1, (studies, n_b)).tolist()
        for samples in zip(a, b, strict=True):
            # A truth that lies on an end but for rounding (0 with equal halves) counts as inside.
            estimate = effect_sizes.cliffs_delta(effect_sizes.TwoSamples(*samples, "start means"), CONFIDENCE)
            ends = (
                None
                if estimate is None or estimate.low is None or estimate.high is None
                else (estimate.low, estimate.high)
            )
            yield None if ends is None else ends[0] - 1e-9 <= delta <= ends[1] + 1e-9

    return draw


def _equivalence() -> Iterator[Case]:
    """The true ratio equals the margin, so that the verdict `equivalent` is wrong; 5% are allowed."""
    margin_percent = 5.0
    for n_a, n_b in (*((n, n) for n in EQUAL), (2, 5), (5, 10)):
        about = f"true change {margin_percent:g}%, the margin; {HOUSE.words}"
        yield Case(
            EQUIVALENCE, "two one-sided tests", about, _numbers(n_a, n_b), _tost(n_a, n_b, margin_percent), "errs"
        )
    for n_a in EQUAL:
        about = f"true change {margin_percent:g}%, the margin, same starts; {HOUSE.words}"
        yield Case(
            EQUIVALENCE, "two one-sided tests of pairs", about, f"{n_a}", _tost_pairs(n_a, margin_percent), "errs"
        )


def _tost(n_a: int, n_b: int, margin_percent: float) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        a = HOUSE.means(rng, studies, n_a)
        b = HOUSE.means(rng, studies, n_b, MEAN_MS * (1 + margin_percent / 100))
        return (_not_equivalent(*one, False, margin_percent) for one in zip(a.tolist(), b.tolist(), strict=True))

    return draw


def _tost_pairs(n: int, margin_percent: float) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        a, b = HOUSE.pairs(rng, studies, n, 1 + margin_percent / 100)
        return (_not_equivalent(*one, True, margin_percent) for one in zip(a.tolist(), b.tolist(), strict=True))

    return draw


def _not_equivalent(a: Sequence[float], b: Sequence[float], paired: bool, margin_percent: float) -> bool:
    pair = LevelPair("start means", "start" if paired else "", tuple(a), tuple(b))
    p = pair.tost_p(margin_percent)
    return p is None or p >= 1 - CONFIDENCE
