"""What `check` announces of a study of jobs is found in studies with planted job times."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tools.coverage.planted import RESPONSE, Numbers, Plot, frame_of

from steelyard.analysis.statistics.comparison import Comparison, comparisons
from steelyard.model.study import Study
from steelyard.plan import expand
from steelyard.plan.detectable_difference import Resolution, resolution
from steelyard.study import read

STUDIES, ALPHA = 500, 0.05
OVERHEAD = 1.05
"""Job times in Docker over those without."""


def announced(starts: int) -> tuple[Study, Resolution]:
    shipped = read(Path(__file__).resolve().parents[3] / "studies" / "hajji2016-spark-small.toml")
    study = shipped.model_copy(update={"design": shipped.design.model_copy(update={"starts": starts})})
    return study, next(one for one in resolution(study, expand(study)) if one.factor == "site")


def planted(rng: np.random.Generator, starts: int, cv: float, ratio: float) -> Numbers:
    """Times of one job per start, shape (studies, 2 levels, starts, 1)."""
    plot = Plot("lognormal", cv, 0.0, trials=1)
    return np.stack([plot.values(rng, STUDIES, starts), plot.values(rng, STUDIES, starts, 100 * ratio)], axis=1)


def compared(times: Numbers, margin_percent: float | None) -> list[Comparison]:
    """The comparison of each study. The factor that needs a cluster of its own stands for the site."""
    frames = (frame_of(one, ((3, "sort"), (4, "sort"))) for one in times)
    return [comparisons(frame, RESPONSE, 1 - ALPHA, margin_percent)[0] for frame in frames]


def four_sd(share: float) -> float:
    return 4 * math.sqrt(share * (1 - share) / STUDIES)


@pytest.mark.parametrize("starts", [5, 10])
def test_an_overhead_of_five_per_cent_is_found_as_often_as_announced(starts: int) -> None:
    _, of_site = announced(starts)
    assert of_site.difference is not None
    # The spread at which `check` announces 5%: differences of logarithms are proportional to it.
    cv = of_site.cv * math.log(OVERHEAD) / math.log1p(of_site.difference)
    rows = compared(planted(np.random.default_rng(31), starts, cv, OVERHEAD), None)
    found = sum(row.p is not None and row.p < ALPHA and row.ratio.value > 1 for row in rows)
    assert found / STUDIES == pytest.approx(0.8, abs=four_sd(0.8))


def test_equal_jobs_are_called_equivalent_as_often_as_announced() -> None:
    starts = 10
    study, of_site = announced(starts)
    assert of_site.equal_passes is not None
    margin = study.analysis.equivalence_margin_percent
    rows = compared(planted(np.random.default_rng(32), starts, of_site.cv, 1.0), margin)
    found = sum(row.tost_p is not None and row.tost_p < ALPHA for row in rows)
    assert found / STUDIES == pytest.approx(of_site.equal_passes, abs=four_sd(of_site.equal_passes))
