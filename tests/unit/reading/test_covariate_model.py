"""The model of covariance on the page about links, on starts with a planted law."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from steelyard import reading
from steelyard.model.trial_columns import COVARIATE

PAGE = Path(__file__).resolve().parents[3] / "docs" / "howto" / "measure-over-other-links.md"
STARTS_PER_SIZE = 20
TRIALS = 3
PER_MS = 0.04
"""Growth of the logarithm of the response per ms of round trip."""


def planted() -> pl.DataFrame:
    """Trials whose response grows with size and round trip; a row of each start is not used."""
    random = np.random.default_rng(13)
    rows = []
    for nodes in (1, 3):
        for number in range(STARTS_PER_SIZE):
            rtt_ms, of_start = random.uniform(0.1, 20), random.normal(0, 0.01)
            for trial in range(TRIALS):
                log_ms = 5 + 0.5 * (nodes == 3) + PER_MS * rtt_ms + of_start + random.normal(0, 0.01)
                rows.append(
                    {
                        "start": f"{nodes}-{number}",
                        "nodes": nodes,
                        "execution_time_ms": float(np.exp(log_ms)) if trial else 1e9,
                        f"{COVARIATE}rtt_ms_mean": rtt_ms,
                        "used": trial > 0,
                    }
                )
    return pl.DataFrame(rows)


def test_the_snippet_of_the_page_finds_the_planted_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    # A store of planted covariates would take a study of them.
    monkeypatch.setattr(reading, "read", lambda store: SimpleNamespace(trials=planted()))
    names: dict[str, Any] = {}
    exec(compile(snippet, str(PAGE), "exec"), names)
    assert names["starts"].height == 2 * STARTS_PER_SIZE
    law = 100 * (np.exp(PER_MS) - 1)
    assert names["change_percent_per_ms"] == pytest.approx(law, rel=0.05)
    low, high = names["interval_percent_per_ms"]
    assert low < law < high
