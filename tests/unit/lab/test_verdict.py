"""The verdict: each threshold crossed alone gives its own reason, with number and threshold."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.lab.verdict import Evidence, judge
from steelyard.model.sample import Sample
from steelyard.model.study import Limits, Load
from steelyard.model.verdict import ReasonKind
from tests.unit.lab.fakes import records_of

ORDER = {"action": "load", "stop": {"operations": 1000}}


def evidence(**changes: Any) -> Evidence:
    _, interval, done = records_of(ORDER, milliseconds=5.0)
    done = {**done, **changes.pop("done", {})}
    load = changes.pop("load", Load(operations=1000))
    base: dict[str, Any] = {"load": load, "intervals": [interval], "dones": [done], "optimised": True, "samples": {}}
    return Evidence(**{**base, **changes})


def kinds(found: Evidence) -> list[ReasonKind]:
    return [reason.kind for reason in judge(found, Limits()).reasons]


def test_a_clean_trial_is_valid() -> None:
    assert judge(evidence(), Limits()).outcome == "valid"


def test_no_end_of_the_phase_is_unknown() -> None:
    assert judge(evidence(dones=[]), Limits()).outcome == "unknown"


OPEN = Load(schedule="constant", rate_per_s=1000.0, operations=1000)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"load": OPEN, "intervals": [{"sent": 900, "counts": []}]}, ReasonKind.RATE),
        ({"done": {"busiest_thread_fraction": 0.95}}, ReasonKind.GENERATOR_BUSY),
        ({"done": {"dropped": 1}}, ReasonKind.DROPPED),
        ({"optimised": False}, ReasonKind.DEBUG_ENGINE),
        ({"done": {"errors": 500, "operations": 500, "errors_by_kind": {"timeout": 500}}}, ReasonKind.ERRORS),
        ({"done": {"not_found": 1}}, ReasonKind.NOT_FOUND),
        ({"done": {"operations": 900}}, ReasonKind.INCOMPLETE),
        ({"samples": {"n1": [Sample(100.0, "n1", "x", 1.0)]}, "done": {"last_done_s": 107.0}}, ReasonKind.PROBE_GAP),
        (
            {"samples": {"n1": [Sample(t, "n1", "machine_cpu_steal_fraction", 0.3) for t in (101, 103)]}},
            ReasonKind.STEAL,
        ),
        ({"differing": {"n1": {"heap": ("1g", "2g")}}}, ReasonKind.SETTINGS),
        ({"still_busy": {"compactions": 2.0}}, ReasonKind.STILL_BUSY),
    ],
)
def test_each_threshold_has_its_reason(changes: dict[str, Any], kind: ReasonKind) -> None:
    assert kinds(evidence(**changes)) == [kind]


def test_a_late_generator_is_blamed_only_for_its_own_delay() -> None:
    load = Load(schedule="constant", rate_per_s=200.0, operations=1000)
    late = [20_000_000, 20_001_023, 1000]
    for measure, expected in (("pacing", [ReasonKind.LAG]), ("lag", [])):
        interval = {
            "sent": 1000,
            "counts": [{"operation": "read", "outcome": "ok", "measure": measure, "buckets": [late]}],
        }
        assert kinds(evidence(load=load, intervals=[interval])) == expected
