"""Replay of policies over stored trials: each trial by its own size and load."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.model.errors import StoreError, StudyError
from steelyard.policy import oracle, threshold
from steelyard.reading.replay import Replayed, replay
from steelyard.store import Store
from tests.unit.report import growing

ALARM = {
    "name": "threshold", "metric": "throughput_per_s", "period_s": 5, "evaluation_periods": 2, "threshold": 900,
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(growing.store(tmp_path_factory.mktemp("replay")))


def replayed(store: Store, **changes: Any) -> Replayed:
    return replay(store, threshold, {**ALARM, **changes})


def test_every_trial_is_asked_and_the_share_has_its_interval(store: Store) -> None:
    found = replayed(store)
    assert {(one.fired, one.at_s, one.reason.partition(",")[0]) for one in found.trials} == {
        (True, 10.0, "throughput_per_s >= 900 in 2 of 2 periods of 5 s")
    }
    assert [one.fired for one in found.treatments] == [4, 4]
    share = found.treatments[0].share
    # Clopper and Pearson 1934: 4 of 4.
    assert (share.value, share.low, share.high) == (1.0, pytest.approx(0.025 ** (1 / 4)), 1.0)
    assert next(iter(found.sentences())).endswith(
        "fired in 4 of 4 trials, 100% [40, 100] (95%, Clopper-Pearson interval over trials)."
    )


def test_a_threshold_that_is_not_reached_fires_nowhere(store: Store) -> None:
    found = replayed(store, threshold=2000)
    assert not any(one.fired or one.as_done for one in found.trials)
    assert found.treatments[0].share.high == pytest.approx(1 - 0.025 ** (1 / 4))


def test_each_trial_has_bounds_of_its_own(store: Store) -> None:
    sizes = {record.id: record.settings.site.nodes for record in store.trials()}
    assert all(one.nodes == sizes[one.trial_id] + 1 for one in replayed(store).trials)
    (one,) = replayed(store, **{}).trials[:1]
    assert replay(store, threshold, ALARM, one.trial_id).trials == (one,)


def test_an_oracle_knows_the_load_of_each_trial(store: Store) -> None:
    nodes = max(record.settings.site.nodes for record in store.trials())
    capacity = [[nodes, 500], [nodes + 1, 2000]]
    found = replay(store, oracle, {"name": "oracle", "capacity": capacity, "t_scale_s": 5})
    assert {(one.at_s, one.nodes) for one in found.trials} == {(1.0, nodes + 1)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metric": "response_ms_p50"}, "cannot follow response_ms_p50"),
        ({"metric": "cpu_percent_mean"}, "has no value of cpu_percent_mean in periods of 5 s"),
        ({"period_s": 1000}, "has no value of throughput_per_s in periods of 1000 s"),
    ],
)
def test_a_metric_without_points_is_refused(store: Store, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        replayed(store, **changes)


def test_a_trial_that_is_not_there(store: Store) -> None:
    with pytest.raises(StoreError, match="no valid trial nowhere"):
        replay(store, threshold, ALARM, "nowhere")
