"""The stall's formula against a simulation of it, and what the proof concludes from what was measured."""

from __future__ import annotations

import io
import math
from typing import Any

import pytest
from rich.console import Console

from steelyard.cli.commands.selftest import draw, verdict
from steelyard.model.errors import StudyError
from steelyard.selftest.stall import Asked, Proof, truth_s


def simulated_s(q: float, stall_s: float, seconds: float, rate_per_s: float) -> float:
    """Response times of even arrivals when a server that answers at once stands still in the middle."""
    wakes_s = (seconds + stall_s) / 2
    due = [index / rate_per_s for index in range(round(seconds * rate_per_s))]
    times = sorted(wakes_s - t if wakes_s - stall_s <= t < wakes_s else 0.0 for t in due)
    return times[math.ceil(q * len(times)) - 1]


@pytest.mark.parametrize(
    ("q", "stall_s", "seconds", "rate_per_s"),
    [(0.99, 2, 20, 1000), (0.99, 0.5, 10, 2000), (0.95, 3, 20, 500), (0.999, 1, 60, 1000), (0.5, 8, 10, 1000)],
)
def test_the_formula_is_what_happens(q: float, stall_s: float, seconds: float, rate_per_s: float) -> None:
    assert truth_s(q, stall_s, seconds) == pytest.approx(
        simulated_s(q, stall_s, seconds, rate_per_s), abs=2 / rate_per_s
    )


def test_the_issue_s_case() -> None:
    assert truth_s(0.99, 2.0, 20.0) == pytest.approx(1.8)
    assert Asked().due == 20_000
    Asked().check()


def test_a_stall_that_the_quantile_does_not_reach_is_no_truth() -> None:
    assert truth_s(0.99, 0.1, 20.0) == 0.0


@pytest.mark.parametrize(
    ("sizes", "key"),
    [
        ({"stall_s": 0.25}, "--stall"),
        ({"rate_per_s": 200.0}, "--rate"),
        ({"seconds": 4.0, "rate_per_s": 9000.0}, "--seconds"),
    ],
)
def test_sizes_that_prove_nothing_are_refused(sizes: dict[str, float], key: str) -> None:
    with pytest.raises(StudyError, match="too low to prove anything") as caught:
        Asked(**sizes).check()
    assert caught.value.key == key


def proof(**changes: Any) -> Proof:
    base = {
        "due": 20_000, "sent": 20_000, "answered": 20_000, "errors": 0, "seconds": 20.0, "rate_per_s": 1000.0,
        "stall_ms": 2000.0, "truth_ms_p99": 1800.0, "response_ms_p99": 1810.0, "service_ms_p99": 1.2,
        "service_ms_p99_without": 1.0, "closed_sent": 17_000, "closed_ms_p99": 2.0,
    }  # fmt: skip
    return Proof.model_validate({**base, **changes})


def drawn(found: Proof) -> str:
    console = Console(file=io.StringIO(), width=100)
    draw(found, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_proof_that_holds_says_what_the_others_leave_out() -> None:
    found = proof()
    assert found.passed
    assert "3,000 of the operations" in verdict(found)
    assert "905 times too low" in verdict(found)
    assert "20,000 of 20,000" in drawn(found)
    assert "✗" not in drawn(found)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"sent": 19_999}, "every operation"),
        ({"answered": 19_999, "errors": 1}, "every operation"),
        ({"response_ms_p99": 1800 * 1.031}, "3%"),
        ({"response_ms_p99": 1800 * 0.969}, "3%"),
        ({"service_ms_p99": 22.0}, "service p99"),
    ],
)
def test_each_failure_is_told(changes: dict[str, Any], what: str) -> None:
    found = proof(**changes)
    assert not found.passed
    assert [name for name, holds in found.checks.items() if not holds] == [
        name for name in found.checks if what in name
    ]
    assert "The proof fails" in verdict(found)
    assert "✗" in drawn(found)
