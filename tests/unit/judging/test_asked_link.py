"""Links as asked and as measured; covariates of measured paths."""

from __future__ import annotations

import pytest

from steelyard.judging.covariates import covariates_of
from steelyard.judging.gauge import AFTER, asked_and_measured
from steelyard.model.link import LinkChoice

PATHS = [
    {"from": "l1", "to": "n1", "rtt_ms_min": 20.1, "rtt_ms_mean": 20.5, "mbit_per_s": 90.0, "loss_percent": 0.0},
    {"from": "l1", "to": "n2", "rtt_ms_min": 20.3, "rtt_ms_mean": 21.5, "mbit_per_s": 80.0, "loss_percent": 1.0},
    {"from": "n1", "to": "n2", "ends": "databases", "rtt_ms_min": 40.0, "rtt_ms_mean": 41.0, "mbit_per_s": 70.0,
     "loss_percent": 2.0},
]  # fmt: skip


def test_round_trips_of_clients_and_of_replicas_are_told_apart() -> None:
    values = covariates_of({}, PATHS)
    assert values == pytest.approx(
        {
            "rtt_ms_min": 20.2, "rtt_ms_mean": 21.0, "database_rtt_ms_min": 40.0, "database_rtt_ms_mean": 41.0,
            "link_mbit_per_s": 80.0, "link_mbit_per_s_least": 70.0, "link_loss_percent": 1.0,
        }
    )  # fmt: skip


def test_a_path_that_could_not_be_measured_leaves_its_mean_out() -> None:
    broken = [*PATHS[:2], {"from": "n1", "to": "n2", "ends": "databases", "problem": "no route"}]
    assert set(covariates_of({}, broken)) == {"rtt_ms_min", "rtt_ms_mean"}
    assert covariates_of({}, [{"from": "l1", "to": "n1", "rtt_ms_min": 1.0, "rtt_ms_mean": 2.0}]) == {
        "rtt_ms_min": 1.0,
        "rtt_ms_mean": 2.0,
    }


def test_what_differs_by_more_than_a_tenth_is_told() -> None:
    link = LinkChoice(name="wan", medium="switched", rate_mbit=88, delay_ms=10, loss_percent=0.1)
    rows = {one.covariate: one for one in asked_and_measured(link, covariates_of({}, PATHS))}
    assert rows["link_mbit_per_s"].asked == pytest.approx(88 * 1448 / 1514)
    assert not rows["link_mbit_per_s"].differs
    assert rows["link_mbit_per_s_least"].differs
    assert not rows["rtt_ms_min"].differs
    assert (rows["link_loss_percent"].measured, rows["link_loss_percent"].differs) == (1.0, False)


@pytest.mark.parametrize(("rtt_ms", "differs"), [(0.1, True), (0.4, False), (0.9, False), (1.0, True)])
def test_a_round_trip_may_also_be_longer_by_what_kernels_take(rtt_ms: float, differs: bool) -> None:
    link = LinkChoice(medium="switched", delay_ms=0.2)
    measured = {"link_mbit_per_s": 1.0, "rtt_ms_min": rtt_ms}
    assert [one.differs for one in asked_and_measured(link, measured) if one.covariate == "rtt_ms_min"] == [differs]


def test_nothing_single_is_asked_of_a_shared_channel_and_nothing_is_said_without_a_measurement() -> None:
    radio = LinkChoice(medium="802.11", phy="802.11g-54")
    assert [one.asked for one in asked_and_measured(radio, covariates_of({}, PATHS))] == [None] * 4
    assert list(asked_and_measured(radio, {"rtt_ms_min": 1.0})) == []
    assert list(asked_and_measured(radio, covariates_of({}, PATHS), AFTER)) == []
