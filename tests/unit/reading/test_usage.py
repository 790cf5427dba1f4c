"""What trials used, from samples and facts: the measured phase only, one machine counted once, reasons in words."""

from __future__ import annotations

import polars as pl
import pytest

from steelyard.model.power import MEMORY, PACKAGES, power_metrics
from steelyard.model.trial import Phase, PhaseTime
from steelyard.reading import usage

from ..analysis.made import record

FACTS = {"n1": {"cores": "4"}, "n2": {"cores": "4"}}


def samples(*rows: tuple[str, float, str, float]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["node", "t_s", "metric", "value"], orient="row")


def test_only_the_measured_phase_counts() -> None:
    phases = (
        PhaseTime(phase=Phase.WARM_UP, entered_s=10.0, left_s=15.0),
        PhaseTime(phase=Phase.MEASURE, entered_s=10.0, left_s=20.0),
    )
    found = samples(*(("n1", float(t), "x", float(t)) for t in range(8, 24)))
    kept = usage.measured_samples(found, record(1.0).model_copy(update={"phases": phases}))
    assert kept["t_s"].to_list() == [16, 17, 18, 19, 20, 21]
    assert usage.measured_samples(found, record(1.0)).is_empty()


def test_the_share_of_busy_cores() -> None:
    found = samples(
        ("n1", 1, "node_cpu_user_cores", 1.0), ("n1", 1, "node_cpu_system_cores", 1.0),
        ("n2", 1, "node_cpu_user_cores", 3.0), ("n2", 1, "node_cpu_system_cores", 1.0),
    )  # fmt: skip
    assert usage._busy(found, ["n1", "n2"], FACTS) == pytest.approx(0.75)
    dilated = {"n1": {"cores": "4", "dilation": "2"}}
    assert usage._busy(found, ["n1"], dilated) == pytest.approx(0.25), "readings of modelled time are doubled"
    assert usage._busy(found, ["n1"], {}) is None
    assert usage._busy(found, ["n1", "n3"], {**FACTS, "n3": {"cores": "4"}}) is None


def test_power_of_machines_and_why_there_is_none() -> None:
    def machine(node: str, counters: float) -> list[tuple[str, float, str, float]]:
        return [
            (node, 1.0, usage.COUNTERS, counters),
            (node, 1.0, PACKAGES, 20.0),
            (node, 1.0, MEMORY, 2.0),
        ]

    both = samples(*machine("n1", 2), *machine("n2", 2))
    assert usage._power(both, ["n1", "n2"], shared=False) == (44.0, "")
    assert usage._power(both, ["n1", "n2"], shared=True) == (22.0, ""), "one machine, counted once"
    watts, why = usage._power(samples(*machine("n1", 2), *machine("n2", 0)), ["n1", "n2"], shared=False)
    assert watts is None
    assert "no energy counters could be read on n2" in why
    assert usage._power(both.clear(), ["n1"], shared=False)[0] is None


def test_a_meter_of_the_whole_counts_alone_whatever_its_probe_is_called() -> None:
    rapl, meter = [("n1", 1.0, PACKAGES, 20.0), ("n1", 1.0, MEMORY, 2.0)], ("n1", 1.0, "node_power_watts", 31.0)
    assert usage._power(samples(*rapl, meter), ["n1"], shared=False) == (31.0, "")
    two = samples(meter, ("n2", 1.0, "node_power_watts", 29.0))
    assert usage._power(two, ["n1", "n2"], shared=True) == (60.0, ""), "meters of nodes are their own"
    assert usage._power(samples(meter), ["n1", "n2"], shared=False)[1] == (
        "no reading of power of n2 in the measured phase"
    )


def test_the_metrics_that_make_up_power() -> None:
    assert power_metrics([PACKAGES, MEMORY, "node_cpu_user_cores"]) == (PACKAGES, MEMORY)
    assert power_metrics([MEMORY]) == ()
    assert power_metrics(["node_disk_watts", "node_board_watts"]) == ("node_board_watts", "node_disk_watts")
