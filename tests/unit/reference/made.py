"""Made tables: raw values, summarised and printed as a paper would."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

COLUMNS = ("n", "mean", "sd", "min", "q1", "median", "q3", "max", "range", "se", "cv_percent")


def summary(values: Sequence[float], method: str = "linear", ddof: int = 1) -> dict[str, float]:
    """Every statistic that a cell may have. The standard error divides by n - 1 whatever `ddof`, as sem does."""
    array = np.asarray(values, dtype=float)
    q1, q3 = (float(np.quantile(array, share, method=method)) for share in (0.25, 0.75))
    sd = float(np.std(array, ddof=ddof))
    mean = float(array.mean())
    found = {"n": len(array), "mean": mean, "sd": sd, "min": float(array.min()), "q1": q1}
    found |= {"median": float(np.median(array)), "q3": q3, "max": float(array.max())}
    found |= {"range": float(array.max() - array.min()), "se": float(np.std(array, ddof=1)) / np.sqrt(len(array))}
    return found | ({"cv_percent": 100 * sd / abs(mean)} if mean else {})


def printed(numbers: Mapping[str, float], digits: int) -> dict[str, str]:
    """As printed to significant digits, zeros dropped; counts whole."""
    return {
        name: str(int(value)) if name in ("n", "n_1", "n_2") else f"{value:.{digits}g}"
        for name, value in numbers.items()
    }


def write(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    """A wide CSV file; what a row lacks is blank."""
    heading = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, heading, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path
