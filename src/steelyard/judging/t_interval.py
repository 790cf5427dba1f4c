"""Student's t interval of a mean: the one formula that planning, stopping and analysis share.

mean +- t(n - 1) s / sqrt(n): Student 1908, *The probable error of a mean*, Biometrika 6. scipy and numpy load when the
first interval is asked for.
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
    """Standard deviation with n - 1; 0 below two values."""
    import numpy as np

    return float(np.std(np.asarray(values, dtype=float), ddof=1)) if len(values) > 1 else 0.0


def half_width(sd: Any, n: int, confidence: float) -> Any:
    """Half the t interval of a mean of n values with this standard deviation (a number, or an array of many), in their
    unit. Raises ValueError for n < 2."""
    if n < 2:
        raise ValueError("one value has no interval")
    return t_quantile(confidence, n - 1) * sd / math.sqrt(n)
