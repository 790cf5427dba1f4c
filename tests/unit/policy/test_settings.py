"""Settings that a policy refuses, with the words of the refusal."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.unit.policy.series import policy_named

CPU = {"threshold": 80}
TRACKS = {"target": 60, "horizon_s": 60}


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("none", {"add": 1}, "Extra inputs are not permitted"),
        ("scheduled", {}, "scheduled needs times, such as [[40, 4]]: 4 nodes from 40 s on"),
        ("scheduled", {"times": [[20, 4], [10, 3]]}, "times [20.0, 10.0] are not in order: each must be later"),
        ("scheduled", {"times": [[20, 4], [20, 3]]}, "not in order"),
        ("scheduled", {"times": [[-1, 4]]}, "greater than or equal to 0"),
        ("scheduled", {"times": [[1, 0]]}, "greater than or equal to 1"),
        ("scheduled", {"times": [[each, 3 + each % 2] for each in range(201)]}, "at most 200 items"),
        ("threshold", {}, "threshold\n  must be given"),
        ("threshold", {**CPU, "datapoints_to_alarm": 6}, "datapoints_to_alarm = 6 of evaluation_periods = 5 can never"),
        ("threshold", {**CPU, "held_seconds": 30}, "held_seconds = 30 is shorter than period_s = 60"),
        ("threshold", {**CPU, "when_missing": "notBreaching"}, "'missing', 'not-breaching', 'breaching' or 'ignore'"),
        ("threshold", {**CPU, "comparison_operator": ">="}, "'greater-than-or-equal-to-threshold'"),
        ("threshold", {**CPU, "add": 0}, "greater than or equal to 1"),
        ("threshold", {**CPU, "period_s": 0}, "greater than or equal to 1"),
        ("threshold", {"threshold": float("nan")}, "finite number"),
        ("simple", {**CPU, "adjustment": 0}, "adjustment = 0 changes nothing"),
        ("simple", {**CPU, "adjustment_type": "exact-capacity", "adjustment": -1}, "adjustment = -1 is no size"),
        ("simple", {**CPU, "adjustment_type": "ChangeInCapacity"}, "'change-in-capacity'"),
        ("step", {**CPU, "steps": []}, "at least 1 item"),
        ("step", {**CPU, "steps": [[10, 1], [0, 2]]}, "steps begin at [10.0, 0.0]: each must begin further"),
        ("step", {**CPU, "steps": [[-10, 1]]}, "greater than or equal to 0"),
        ("step", {**CPU, "adjustment_type": "exact-capacity", "steps": [[0, 0]]}, "steps [0] are no sizes"),
        ("target-tracking", {}, "target\n  Field required"),
        ("target-tracking", {"target": 0}, "greater than 0"),
        ("hpa", {"target": 60, "policies_up": [["nodes", 4, 15]]}, "'pods' or 'percent'"),
        ("hpa", {"target": 60, "policies_down": []}, "at least 1 item"),
        ("hpa", {"target": 60, "select_policy_up": "Max"}, "'max', 'min' or 'disabled'"),
        ("pid", {"setpoint": 60}, "kp, ki and kd are all 0: the controller never acts"),
        ("two-stage", {"low": 80, "high": 60}, "low = 80 is not reached before high = 60"),
        ("two-stage", {"low": 20, "high": 30, "comparison_operator": "less-than-threshold"}, "not reached before"),
        ("predictive", {**TRACKS, "t_scale_s": 95}, "horizon_s = 60 is shorter than t_scale_s = 95: a node that is"),
        ("predictive", {**TRACKS, "model": "holt-winters"}, "holt-winters needs seasonal_periods of 2 or more, not 0"),
        (
            "predictive",
            {**TRACKS, "model": "holt-winters", "seasonal_periods": 60},
            "history_size = 60 is too short: holt-winters with seasons of 60 points needs 120",
        ),
        ("predictive", {**TRACKS, "model": "arima"}, "'linear' or 'holt-winters'"),
        ("oracle", {"capacity": [], "t_scale_s": 60}, "at least 1 item"),
        ("oracle", {"capacity": [[3, 9000], [4, 8000]], "t_scale_s": 60}, "must be larger than the one before"),
        (
            "oracle",
            {"capacity": [[3, 9000]], "t_scale_s": 60, "rates": [[60, 1], [0, 2]]},
            "rates at [60.0, 0.0] are not in order",
        ),
    ],
)
def test_refused(name: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        policy_named(name, **settings)
    assert words in str(caught.value)
