"""The firmware's bits, from recorded outputs, and what they mean."""

from __future__ import annotations

import pytest

from steelyard.node.raspberry_pi import faults, former_faults, throttled_bits


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("0\n", 0),
        ("50005\n", 0x50005),
        ("throttled=0x50000\n", 0x50000),
        ("throttled=0xE0008", 0xE0008),
        ("", None),
        ("VCHI initialization failed\n", None),
        ("error=2", None),
    ],
)
def test_recorded_outputs_of_the_file_and_of_vcgencmd(text: str, bits: int | None) -> None:
    assert throttled_bits(text) == bits


def test_bits_in_words() -> None:
    assert faults(0x50005) == ["under-voltage", "throttled"]
    assert former_faults(0x50005) == ["under-voltage", "throttled"]
    assert faults(0x80000) == []
    assert former_faults(0x80008) == ["soft temperature limit"]
