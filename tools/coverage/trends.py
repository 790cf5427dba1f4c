"""Coverage of the test of a trend within starts: alarms, warm-ups that are found, and the change per trial."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import signal

from steelyard.analysis.comparisons import start_series
from steelyard.analysis.frame import TrialFrame
from steelyard.analysis.inference import warming
from steelyard.analysis.statistic import Seconds
from steelyard.analysis.statistics.trend import MOVES, Trend, trends
from tools.coverage.planted import MEAN_MS, RESPONSE, Numbers, frame_of
from tools.coverage.tally import CONFIDENCE, Case, Draw, Outcome, held

TRENDS = "Trend within starts"
ALARM = "any alarm of the study, Holm: `trend`"
FOUND = "a start's warm-up is found, Holm: `trend`"
CHANGE = "change per trial: `change_percent`"
SIZES = ((1, "A"), (3, "A"))
START_CV = 0.03


@dataclass(frozen=True)
class Noise:
    """Trials of a start in order of time: a first-order autoregression."""

    cv: float = 0.05
    r: float = 0.3
    lognormal: bool = False

    def logs(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        """Logarithms about 0; the last axis is time."""
        drawn = self.cv * correlated(rng, shape, self.r)
        return drawn if self.lognormal else np.asarray(np.log(np.maximum(1 + drawn, 0.01)))

    @property
    def words(self) -> str:
        """The noise in words."""
        return f"{'lognormal' if self.lognormal else 'normal'}, trials {self.cv:.0%}, correlation {self.r:g}"


HOUSE = Noise()
ALONE = Noise(r=0.0)
WILD = Noise(0.2, 0.3, True)


def correlated(rng: np.random.Generator, shape: tuple[int, ...], r: float) -> Numbers:
    """Standard normal values, each with correlation r to the one before along the last axis."""
    drawn = rng.standard_normal(shape)
    drawn[..., 1:] *= math.sqrt(1 - r**2)
    return np.asarray(signal.lfilter([1.0], [1.0, -r], drawn, axis=-1))


def warm_up(kind: str, trials: int) -> Numbers:
    """Logarithms of a response time that halves over the first three trials, or changes by 3% per trial."""
    at = np.arange(trials, dtype=float)
    if kind == "step":
        return np.asarray(math.log(2) * (at < 3))
    if kind == "ramp":
        return np.asarray(math.log(2) * np.clip(1 - at / 3, 0, None))
    return np.asarray({"line": -math.log(1.03), "none": 0.0}[kind] * at)


def cases() -> Iterator[Case]:
    """Every cell of the table."""
    for noise in (HOUSE, ALONE, WILD):
        for starts, trials in ((1, 9), (3, 5), (3, 9), (6, 9), (3, 20)):
            if noise is HOUSE or (starts, trials) in ((3, 5), (3, 9)):
                about = f"no trend, 2 sizes; {noise.words}"
                yield Case(
                    TRENDS, ALARM, about, f"{starts} x {trials}", _alarms(starts, trials, noise), "errs", share=0.5
                )
    about = f"no trend, 2 sizes, 2 interleaved workloads; {HOUSE.words}"
    yield Case(TRENDS, ALARM, about, "3 x 9", _alarms(3, 9, HOUSE, workloads=2), "errs", share=0.5)
    for r in (0.3, 0.6):
        about = f"no trend, 2 sizes, 20 s per trial; {HOUSE.words}; seconds 10%, correlation {r:g}"
        for starts, trials in ((3, 3), (3, 9)):
            draw = _alarms(starts, trials, HOUSE, second_r=r)
            yield Case(TRENDS, ALARM, about, f"{starts} x {trials}", draw, "errs", share=0.2)
    for kind in ("ramp", "step"):
        about = f"a factor of 2 over the first 3 of 9 trials, a {kind}; 2 sizes; {HOUSE.words}"
        for starts in (1, 3, 6):
            yield Case(TRENDS, FOUND, about, f"{starts} x 9", _founds(starts, 9, kind), "finds", share=0.2)
    for kind, words in (("none", "0"), ("line", "−3% per trial"), ("ramp", "a factor of 2 over the first 3 trials")):
        for starts, trials in ((1, 5), (1, 9), (3, 5), (3, 9)):
            about = f"{words}; {HOUSE.words}"
            yield Case(TRENDS, CHANGE, about, f"{starts} x {trials}", _changes(starts, trials, kind, HOUSE), share=0.5)
    about = f"−3% per trial; {ALONE.words}"
    yield Case(TRENDS, CHANGE, about, "3 x 9", _changes(3, 9, "line", ALONE), share=0.5)


def _values(rng: np.random.Generator, sizes: int, starts: int, trials: int, noise: Noise, kind: str) -> Numbers:
    level = START_CV * rng.standard_normal((sizes, starts, 1))
    return MEAN_MS * np.exp(level + warm_up(kind, trials) + noise.logs(rng, (sizes, starts, trials)))


def _alarms(starts: int, trials: int, noise: Noise, workloads: int = 1, second_r: float | None = None) -> Draw:
    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        for _ in range(studies):
            frame = frame_of(_values(rng, len(SIZES), starts, trials, noise, "none"), SIZES)
            if workloads > 1:
                frame = _interleaved(rng, frame)
            seconds = [] if second_r is None else _seconds(rng, frame, second_r)
            yield not any(row.verdict in MOVES for row in trends(frame, RESPONSE, CONFIDENCE, seconds))

    return draw


def _interleaved(rng: np.random.Generator, frame: TrialFrame) -> TrialFrame:
    """The same trials in the same order, half of them of a workload that takes three times as long."""
    second = rng.random(frame.data.height) < 0.5
    data = frame.data.with_columns(
        pl.Series("workload", np.where(second, "B", "A")),
        (pl.col(RESPONSE) * pl.Series(np.where(second, 3.0, 1.0))).alias(RESPONSE),
    )
    return TrialFrame(data, {**frame.factors, "workload": ("A", "B")}, frame.hard, 0)


def _seconds(rng: np.random.Generator, frame: TrialFrame, r: float, length: int = 20) -> list[Seconds]:
    trials = []
    for row in frame.data.iter_rows(named=True):
        values = row[RESPONSE] * np.exp(0.1 * correlated(rng, (length,), r))
        of_trial = pl.DataFrame({"place": np.arange(length, dtype=float), "response_ms_mean": values})
        trials.append(((row["trial_id"], row["attempt"]), of_trial))
    return [Seconds({}, trials)]


def _founds(starts: int, trials: int, kind: str) -> Draw:
    """One outcome per start, in studies of two sizes in which every start warms up."""

    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        for _ in range(max(1, studies // (starts * len(SIZES)))):
            rows = trends(frame_of(_values(rng, len(SIZES), starts, trials, HOUSE, kind), SIZES), RESPONSE, CONFIDENCE)
            yield from _of_starts(rows, starts)

    return draw


def _of_starts(rows: tuple[Trend, ...], starts: int) -> Iterator[Outcome]:
    warm = {row.start for row in rows if row.starts == 1 and row.verdict == "warming"}
    return (f"b{start}-n{nodes}" in warm for nodes, _ in SIZES for start in range(starts))


def _changes(starts: int, trials: int, kind: str, noise: Noise) -> Draw:
    """The interval of all starts together, as the table prints it, found or not.

    The truth is the line through the logarithms of the planted course, weighted as the estimate is.
    """

    def draw(rng: np.random.Generator, studies: int) -> Iterable[Outcome]:
        course = MEAN_MS * np.exp(np.tile(warm_up(kind, trials), (1, starts, 1)))
        exact = start_series.of_trials(
            frame_of(course * (1 + 1e-9 * rng.standard_normal(course.shape)), SIZES[:1]), RESPONSE
        )
        line = warming.fit(warming.pooled(list(exact.values())), warming.CORRELATION)
        truth = 100 * math.expm1(line.slope) if line is not None else math.nan
        for _ in range(studies):
            series = start_series.of_trials(frame_of(_values(rng, 1, starts, trials, noise, kind), SIZES[:1]), RESPONSE)
            fit = warming.fit(warming.pooled(list(series.values())), warming.CORRELATION)
            yield None if fit is None else held(fit.change_percent(fit.p < warming.ALPHA, CONFIDENCE), truth)

    return draw
