"""Samples of what the firmware of a Raspberry Pi says, from recorded outputs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from steelyard.probe import raspberry_pi
from steelyard.probe.raspberry_pi import BOARDS, create

HEALTHY = b"1700000000.1 throttled=0 temperature=48312 frequency=1500000"


def faults(before: str, now: str) -> set[str]:
    line = f"1.0 throttled={before} | 2.0 throttled={now}\n".encode()
    return {
        sample.metric.removeprefix("machine_fault_")
        for sample in create().parse("n1", line)
        if sample.metric.startswith("machine_fault_") and sample.value
    }


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("0", "0", set()),
        ("0", "50005", {"under_voltage", "throttled"}),
        ("50000", "50000", set()),
        ("50005", "50000", set()),
        ("0", "10000", {"under_voltage"}),
        ("10000", "30002", {"frequency_capped"}),
        ("0x0", "0x80008", {"soft_temperature_limit"}),
    ],
)
def test_a_fault_holds_now_or_has_occurred_since_the_reading_before(before: str, now: str, expected: set[str]) -> None:
    assert faults(before, now) == expected


def test_temperature_and_frequency() -> None:
    values = {sample.metric: sample.value for sample in create().parse("n1", HEALTHY + b" | " + HEALTHY)}
    assert values["machine_temperature_celsius"] == 48.312
    assert values["machine_frequency_hz"] == 1.5e9
    assert values[BOARDS] == 1.0
    assert values["machine_fault_throttled"] == 0.0


def test_a_machine_that_is_no_raspberry_pi_says_so() -> None:
    assert [(sample.metric, sample.value) for sample in create().parse("n1", b"1.0 | 2.0\n")] == [(BOARDS, 0.0)]


def test_the_script_asks_vcgencmd_where_there_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "vcgencmd").write_text("#!/bin/sh\necho throttled=0x50000\n")
    (tmp_path / "vcgencmd").chmod(0o755)
    # `sleep` ends the loop after the second reading.
    (tmp_path / "sleep").write_text(f"#!/bin/sh\n[ ! -e {tmp_path}/slept ] && : > {tmp_path}/slept\n")
    (tmp_path / "sleep").chmod(0o755)
    argv = ["sh", "-c", raspberry_pi.SCRIPT, "raspberry-pi", "1"]
    done = subprocess.run(argv, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, timeout=10, check=False)
    (line,) = done.stdout.splitlines()
    values = {sample.metric: sample.value for sample in create().parse("n1", line)}
    assert values[BOARDS] == 1.0
