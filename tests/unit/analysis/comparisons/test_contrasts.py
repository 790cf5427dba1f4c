"""Contrasts of four clusters in whole blocks: one error of logarithms, the contrast of each block of means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.analysis.comparisons.contrasts import Cells, WeightedSum, contrast
from steelyard.analysis.inference.gaps import in_blocks

KEYS = ((1, "A"), (1, "C"), (3, "A"), (3, "C"))
WEIGHTS = dict(zip(KEYS, (1.0, -1.0, -1.0, 1.0), strict=True))
BLOCKS = 5


def drawn(blocks: int = BLOCKS) -> np.ndarray:
    """Means of shape (clusters, blocks), whose spread grows with them."""
    rng = np.random.default_rng(12)
    shocks = np.exp(rng.normal(0, 0.1, (1, blocks)))
    return np.array([[100.0], [200.0], [150.0], [900.0]]) * shocks * np.exp(rng.normal(0, 0.03, (4, blocks)))


def cells(means: np.ndarray, without: tuple[int, int] | None = None) -> Cells:
    """Each cluster started once per block; `without`: cluster and block of a start that is missing."""
    starts = {
        f"b{block}-{place}": (block, key, float(means[place, block]))
        for block in range(means.shape[1])
        for place, key in enumerate(KEYS)
        if (place, block) != without
    }
    return Cells(
        of={start: {key: mean} for start, (_, key, mean) in starts.items()},
        hard={start: key for start, (_, key, _) in starts.items()},
        at={start: (block, 1) for start, (block, _, _) in starts.items()},
    )


def of(cells: Cells) -> WeightedSum:
    found = contrast(cells, WEIGHTS, 0.95)
    assert found is not None
    return found


def test_of_means_it_is_t_on_the_contrast_of_each_block() -> None:
    means = drawn()
    oracle = stats.ttest_1samp(np.array(list(WEIGHTS.values())) @ means, 0)
    found, ends = of(cells(means)), oracle.confidence_interval(0.95)
    assert found.half is not None
    assert (found.value - found.half, found.value + found.half) == pytest.approx((ends.low, ends.high))
    assert (found.degrees, found.p) == pytest.approx((BLOCKS - 1, oracle.pvalue))


def test_of_logarithms_all_clusters_have_one_error() -> None:
    means = drawn()
    found, gap = of(cells(means).logarithms()), in_blocks(np.log(means).tolist(), list(WEIGHTS.values()))
    assert (found.value, found.degrees, found.p) == pytest.approx((gap.value, 3 * (BLOCKS - 1), gap.p()))


def test_it_rests_on_the_starts_of_whole_blocks() -> None:
    means = drawn()
    whole, broken = of(cells(means[:, 1:])), of(cells(means, without=(2, 0)))
    assert broken == whole
    assert broken.starts == 4 * (BLOCKS - 1)
