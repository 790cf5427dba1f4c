"""Student's t interval of a mean: one formula for planning, stopping and analysis.

mean +- t(n - 1) s / sqrt(n): Student 1908, *The probable error of a mean*, Biometrika 6. scipy and numpy are imported
on first use.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any


@functools.lru_cache(maxsize=4096)
def t_quantile(confidence: float, degrees: float) -> float:
    """The two-sided quantile of Student's t."""
    from scipy import special

    return float(special.stdtrit(degrees, 0.5 + confidence / 2))


def deviation(values: Sequence[float]) -> float:
    """Standard deviation with n - 1; 0 for fewer than two values."""
    import numpy as np

    return float(np.std(np.asarray(values, dtype=float), ddof=1)) if len(values) > 1 else 0.0


def half_width(sd: Any, n: int, confidence: float) -> Any:
    """Half width of the t interval for a mean of n values with this standard deviation (a number or an array), in the
    same unit. Raises ValueError for n < 2."""
    if n < 2:
        raise ValueError("one value has no interval")
    return t_quantile(confidence, n - 1) * sd / math.sqrt(n)
