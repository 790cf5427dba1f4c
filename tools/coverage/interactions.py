"""Coverage of interaction contrasts: ratio of ratios, difference of differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from steelyard.analysis.comparisons.contrasts import Cells, Key, contrast
from tools.coverage.planted import Numbers, Plot
from tools.coverage.tally import CONFIDENCE, Case, Draw, Outcome, Use, held

FAMILY = "Interactions"
PLOTS = (Plot(), Plot("lognormal", 0.25, 0.2))
STARTS = (3, 5, 10)
MEANS_MS: Mapping[tuple[int, int], float] = {(0, 0): 100.0, (1, 0): 120.0, (0, 1): 200.0, (1, 1): 480.0}
"""(level, level of the other factor) to the true mean: +20% there, 2.4 times as long here."""
WEIGHTS: Mapping[Key, float] = {(0, 0): 1.0, (1, 0): -1.0, (0, 1): -1.0, (1, 1): 1.0}
RATIO, DIFFERENCE_MS = 2.0, 260.0


def cases() -> Iterator[Case]:
    """Every cell of the table."""
    for plot in PLOTS:
        for starts in STARTS:
            for shared in (False, True):
                where = "two levels in the same starts" if shared else "four clusters"
                draw = contrasts(plot, starts, shared)
                beside: tuple[tuple[str, Use], ...] = (("t on contrasts: `difference_of_differences`", "ours"),)
                name = "t on contrasts of logarithms: `ratio_of_ratios`"
                yield Case(FAMILY, name, f"{where}; {plot.words}", f"{starts}", draw, beside=beside)


def contrasts(plot: Plot, starts: int, shared: bool) -> Draw:
    """Both contrasts of four treatments; `shared`: the levels of the second factor are tried within the same starts."""

    def draw(rng: np.random.Generator, studies: int) -> Iterable[tuple[Outcome, ...]]:
        drawn = _shared(plot, rng, studies, starts) if shared else _apart(plot, rng, studies, starts)
        for study in range(studies):
            means = cells({key: values[study] for key, values in drawn.items()}, shared)
            ratio, difference = contrast(means.logarithms(), WEIGHTS, CONFIDENCE), contrast(means, WEIGHTS, CONFIDENCE)
            assert ratio is not None
            assert difference is not None
            yield (
                held(ratio.as_ratio(CONFIDENCE), RATIO),
                held(difference.as_difference("ms", CONFIDENCE), DIFFERENCE_MS),
            )

    return draw


def cells(values: dict[tuple[int, int], Numbers], shared: bool) -> Cells:
    """Start means as the analysis holds them; `values`: one per start of each treatment."""
    of: dict[str, dict[Key, float]] = {}
    hard: dict[str, Key] = {}
    at: dict[str, tuple[int, int]] = {}
    for key, means in values.items():
        group = key[:1] if shared else key
        for start, mean in enumerate(means):
            name = f"s{start}-{group}"
            of.setdefault(name, {})[key] = float(mean)
            hard[name], at[name] = group, (start, 1)
    return Cells(of, hard, at)


def _apart(plot: Plot, rng: np.random.Generator, studies: int, starts: int) -> dict[tuple[int, int], Numbers]:
    return {key: plot.means(rng, studies, starts, mean) for key, mean in MEANS_MS.items()}


def _shared(plot: Plot, rng: np.random.Generator, studies: int, starts: int) -> dict[tuple[int, int], Numbers]:
    """Treatments of a start share its deviation."""
    drawn = {}
    for level in (0, 1):
        deviation = plot.starts(rng, studies, starts)
        for by in (0, 1):
            drawn[level, by] = np.asarray(plot.within(rng, MEANS_MS[level, by] * deviation).mean(axis=-1))
    return drawn
