"""Whether the offered rate was kept up: Little's law in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.cli.terminal.kept_up import kept_up
from steelyard.dropin.agent_run import PhaseOutcome
from tests.unit.wire import made

CLOSED = {"kind": "closed", "threads": 8}


def offered(rate_per_s: float) -> dict[str, Any]:
    return {"kind": "constant", "rate_per_s": rate_per_s, "in_flight": 8}


def phase(operations: int, seconds: float, busiest: float = 0.12, service_ns: int = 2_400_000) -> PhaseOutcome:
    table = made.counts([(service_ns, service_ns, operations)], "get", measure="service")
    done = made.done(operations=operations, errors=0, execution_ns=int(seconds * 1e9), busiest_thread_fraction=busiest)
    return PhaseOutcome(done, made.interval(table).tables)


CARRIED = "8 in flight at 2.4 ms carry at most 3,330/s: the offered 20,000/s was not kept up (3,330/s)."
UNEVEN = (
    "The offered 2,000/s was not kept up (1,600/s), although 8 in flight could carry more: the answers came unevenly."
)


@pytest.mark.parametrize(
    ("measured", "schedule", "says"),
    [
        (phase(80_000, 24.0), offered(20_000), CARRIED),
        (phase(8_000, 4.0), offered(2_000), "and so did the cluster: 2,000/s of the offered 2,000/s."),
        (phase(8_000, 5.0, busiest=0.97), offered(2_000), "at 97% of a core: the offered 2,000/s was not kept up"),
        (phase(8_000, 5.0, service_ns=1000), offered(2_000), UNEVEN),
        (phase(8_000, 5.0), CLOSED, "The generator kept up, its busiest thread at 12% of a core. No rate was offered"),
        (
            phase(8_000, 5.0, busiest=0.99),
            CLOSED,
            "The generator limited the load, its busiest thread at 99% of a core",
        ),
    ],
)
def test_the_sentence(measured: PhaseOutcome, schedule: dict[str, Any], says: str) -> None:
    assert says in kept_up(measured, schedule)


@pytest.mark.parametrize("schedule", [{"kind": "sine", "mean_per_s": 10.0}, {}])
def test_nothing_is_said_of_a_rate_that_varies(schedule: dict[str, Any]) -> None:
    assert kept_up(phase(8_000, 5.0), schedule) == ""


def test_a_poisson_count_that_chance_explains_was_kept_up() -> None:
    assert "kept up, its" in kept_up(phase(96, 1.0), {**offered(110), "kind": "poisson"})
