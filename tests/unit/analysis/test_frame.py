from __future__ import annotations

import pytest

from steelyard.analysis.frame import NO_VALUE_REASON, TrialFrame

from .made import FAULT, VOIDED, cell, frame, record

TIME = "execution_time_ms"


def test_one_row_per_attempt_with_factors_and_responses():
    data = frame([record(5.0), record(6.0, nodes=3, verdict=VOIDED)]).data
    assert data.height == 2
    assert data["nodes"].to_list() == [1, 3]
    assert data["reasons"].to_list() == [[], ["a probe gap"]]
    assert data["used"].to_list() == [True, False]


def test_the_place_of_a_start_is_that_of_its_first_trial_in_its_block():
    """An interrupted start goes on under another name; it stays the same planned start."""
    first, again = record(5.0, begun_s=10.0), record(5.0, order=2, begun_s=90.0)
    again = again.model_copy(update={"start": "b01-n1-again"})
    other, next_block = record(6.0, nodes=3, begun_s=20.0), record(6.0, nodes=3, start=2, begun_s=100.0)
    data = frame([next_block, other, again, first]).data
    assert dict(zip(data["start"], data["place_in_block"], strict=True)) == {
        "b01-n1": 1, "b01-n3": 2, "b01-n1-again": 1, "b02-n3": 1,
    }  # fmt: skip


def test_warm_up_counts_trials_of_a_treatment_within_a_start():
    rows = frame(cell([[9, 5, 5], [9, 5, 5]]) + cell([[8, 4], [8, 4]], nodes=3), warm_up_trials=1)
    assert sorted(rows.values(TIME)[TIME]) == [4, 4, 5, 5, 5, 5]
    assert rows.exclusions(TIME) == {"warm-up (fixed count)": 4}


def test_the_warm_up_cut_goes_by_what_the_cluster_had_served():
    """A voided attempt warms a cluster up as a valid one does, unless nothing of it was answered."""
    good = [record(value, order=order, replicate=order) for order, value in enumerate((9.0, 5.0, 5.0), start=2)]
    voided = record(99.0, order=1, begun_s=0.0, verdict=VOIDED)
    assert frame([voided, *good], 1).values(TIME)[TIME].to_list() == [9, 5, 5]
    assert frame([voided, *good], 2).values(TIME)[TIME].to_list() == [5, 5]
    assert frame([voided, *good], 2).data["order_of_treatment"].to_list() == [None, 2, 3, 4]
    nothing = voided.model_copy(update={"responses": voided.responses.model_copy(update={"operations": 0})})
    assert frame([nothing, *good], 1).values(TIME)[TIME].to_list() == [5, 5]
    other_start = record(99.0, order=1, start=2, begun_s=0.0, verdict=VOIDED)
    assert frame([other_start, *good], 1).values(TIME)[TIME].to_list() == [5, 5]


def test_control_trials_and_trials_without_a_value_are_left_out_with_a_reason():
    rows = frame(
        [record(5.0), record(6.0, control=True, order=2), record(None, order=3), record(None, order=4, verdict=FAULT)]
    )
    assert rows.values(TIME)[TIME].to_list() == [5]
    assert rows.exclusions(TIME) == {
        "control (kept for drift and noise floor)": 1,
        "invalid: the system under test failed": 1,
        NO_VALUE_REASON: 1,
    }


def test_treatments_follow_the_order_of_the_study():
    records = [record(1.0, nodes=nodes, workload=workload) for nodes in (6, 1, 3) for workload in "CA"]
    built = TrialFrame.build(records, {"nodes": (1, 3, 6), "workload": ("C", "A")}, ("nodes",), 0)
    assert [tuple(one.values()) for one in built.treatments] == [
        (1, "C"), (1, "A"), (3, "C"), (3, "A"), (6, "C"), (6, "A"),
    ]  # fmt: skip
    assert list(built.others("nodes")) == [{"workload": "C"}, {"workload": "A"}]


@pytest.mark.parametrize("levels", [(True, False), (0.5, 1), ("512MiB", "1GiB"), ("none", 3)])
def test_levels_of_any_type_select_their_own_rows(levels):
    records = [record(float(place + 1), extra={"system.x": level}) for place, level in enumerate(levels)]
    built = TrialFrame.build(records, {"system.x": levels}, (), 0)
    assert [built.values(TIME, {"system.x": level})[TIME].to_list() for level in levels] == [[1], [2]]


@pytest.mark.parametrize("name", ["block", "warm_up", "throughput_per_s", "covariate_cores"])
def test_a_factor_with_the_name_of_a_column_is_refused(name):
    with pytest.raises(ValueError, match=name):
        TrialFrame.build([], {name: (1, 2)}, (), 0)


def test_no_records_make_an_empty_frame():
    built = TrialFrame.build([], {"nodes": (1, 3)}, ("nodes",), 0)
    assert built.treatments == ()
    assert built.values(TIME, {"nodes": 1}).height == 0
