"""What is known of generators on several load nodes."""

from __future__ import annotations

from typing import Any

from steelyard.lab.parts import CalibrationStatus, of_all_load_nodes

CALIBRATED: Any = object()


def test_a_calibration_holds_if_it_does_on_every_load_node() -> None:
    known, none = CalibrationStatus(CALIBRATED), CalibrationStatus(None, "another processor: `steelyard calibrate`")
    assert of_all_load_nodes({"l1": known, "l2": known}) == known
    assert of_all_load_nodes({"l1": none}) == none
    assert of_all_load_nodes({"l1": known, "l2": none, "l3": none}) == CalibrationStatus(None, f"l2 and l3: {none.why}")
    assert of_all_load_nodes({}) == CalibrationStatus()
