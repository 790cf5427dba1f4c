"""Whether the offered rate was kept up: Little's law in a sentence."""

from __future__ import annotations

import pytest

from steelyard.cli.terminal.kept_up import kept_up
from steelyard.dropin.agent_run import PhaseOutcome
from steelyard.wire.schedule import Closed, Schedule, Sine, Steady
from tests.unit.wire import made

CLOSED = Closed(threads=8)


def offered(rate_per_s: float, kind: str = "constant") -> Steady:
    return Steady.model_validate({"kind": kind, "rate_per_s": rate_per_s, "in_flight": 8})


def phase(
    operations: int, seconds: float, busiest: float = 0.12, service_ns: int = 2_400_000, unsent: int = 0, **errors: int
) -> PhaseOutcome:
    """A phase; `errors` by kind have the service time of the others, what was not sent has none."""
    kinds = {kind.replace("_", "-"): n for kind, n in errors.items()}
    served = operations + sum(kinds.values())
    table = made.counts([(service_ns, service_ns, served)], "get", measure="service")
    done = made.done(
        operations=operations, errors=sum(kinds.values()), errors_by_kind=kinds, unsent=unsent,
        execution_ns=int(seconds * 1e9), busiest_thread_fraction=busiest,
    )  # fmt: skip
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
def test_the_sentence(measured: PhaseOutcome, schedule: Schedule, says: str) -> None:
    assert says in kept_up(measured, schedule)


@pytest.mark.parametrize("schedule", [Sine(mean_per_s=10.0, amplitude_per_s=1.0, period_s=9.0, in_flight=8), None])
def test_nothing_is_said_of_a_rate_that_varies(schedule: Schedule | None) -> None:
    assert kept_up(phase(8_000, 5.0), schedule) == ""


def test_a_poisson_count_that_chance_explains_was_kept_up() -> None:
    assert "kept up, its" in kept_up(phase(96, 1.0), offered(110, "poisson"))


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        (
            phase(0, 4.0, service_ns=100_000, unavailable=80_000),
            "The offered 20,000/s was not kept up (0/s; of 80,000 operations 80,000 failed): the rest are errors.",
        ),
        (
            phase(13_000, 4.0, unsent=27_000),
            "8 in flight at 2.4 ms carry at most 3,330/s: the offered 20,000/s was not kept up (3,250/s; of 40,000 "
            "operations 27,000 were due and not sent).",
        ),
        (
            phase(79_900, 4.0, service_ns=100_000, unsent=40, timeout=60),
            "The generator kept up, its busiest thread at 12% of a core: 20,000/s of the offered 20,000/s were "
            "answered; of 80,000 operations 60 failed and 40 were due and not sent.",
        ),
        (
            phase(40_000, 4.0, service_ns=100_000, timeout=5),
            "The offered 20,000/s was not kept up (10,000/s; of 40,005 operations 5 failed), although 8 in flight "
            "could carry more: the answers came unevenly.",
        ),
    ],
)
def test_errors_carry_nothing(measured: PhaseOutcome, says: str) -> None:
    assert kept_up(measured, offered(20_000)) == says
