"""Every policy that is shipped keeps the contract of a policy."""

from __future__ import annotations

from typing import ClassVar

from steelyard.testing.policy import PolicyContract


class TestNone(PolicyContract):
    module = "none"
    constant = True


class TestStaticMax(PolicyContract):
    module = "static-max"


class TestScheduled(PolicyContract):
    module = "scheduled"
    settings: ClassVar = {"times": [[40, 4], [120, 3]]}
    by_the_clock = True


class TestThreshold(PolicyContract):
    module = "threshold"
    settings: ClassVar = {"threshold": 60, "evaluation_periods": 5, "datapoints_to_alarm": 3, "add": 2}


class TestThresholdHeld(PolicyContract):
    module = "threshold"
    settings: ClassVar = {"threshold": 50, "period_s": 1, "held_seconds": 10, "when_missing": "ignore", "cooldown_s": 5}


class TestSimple(PolicyContract):
    module = "simple"
    settings: ClassVar = {
        "threshold": 40, "comparison_operator": "less-than-threshold", "evaluation_periods": 2, "adjustment": -30,
        "adjustment_type": "percent-change-in-capacity", "when_missing": "ignore",
    }  # fmt: skip


class TestStep(PolicyContract):
    module = "step"
    settings: ClassVar = {"threshold": 50, "evaluation_periods": 2, "steps": [[0, 1], [10, 2], [20, 3]]}


class TestTargetTracking(PolicyContract):
    module = "target-tracking"
    settings: ClassVar = {"target": 50, "evaluation_periods_in": 4, "instance_warmup_s": 120}


class TestHpa(PolicyContract):
    module = "hpa"
    settings: ClassVar = {"target": 50, "stabilization_window_up_s": 30, "stabilization_window_down_s": 90}


class TestPid(PolicyContract):
    module = "pid"
    settings: ClassVar = {"setpoint": 50, "kp": 0.02, "ki": 0.002, "kd": 0.05}


class TestTwoStage(PolicyContract):
    module = "two-stage"
    settings: ClassVar = {"low": 50, "high": 70, "evaluation_periods": 3, "add": 2, "max_prepared": 2}


class TestPredictive(PolicyContract):
    module = "predictive"
    settings: ClassVar = {"target": 50, "horizon_s": 180, "history_size": 10, "disable_scale_in": False}


class TestPredictiveWithSeasons(PolicyContract):
    module = "predictive"
    settings: ClassVar = {"target": 50, "horizon_s": 180, "model": "holt-winters", "seasonal_periods": 6}


class TestOracle(PolicyContract):
    module = "oracle"
    settings: ClassVar = {"capacity": [[3, 9000], [4, 11500]], "t_scale_s": 60, "rates": [[0, 8000], [200, 11000]]}
    by_the_clock = True
