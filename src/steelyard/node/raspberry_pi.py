"""Firmware's report on a Raspberry Pi board, by bits: four for what holds now, four for what has occurred
since the board was started. Pure."""

from __future__ import annotations

import re

FAULTS = ("under_voltage", "frequency_capped", "throttled", "soft_temperature_limit")
"""Meaning of the firmware's bits 0 to 3; the same, since the board was started, are bits 16 to 19."""
WORDS = {
    "under_voltage": "under-voltage",
    "frequency_capped": "frequency capped",
    "throttled": "throttled",
    "soft_temperature_limit": "soft temperature limit",
}
SINCE_START = 16
BITS = re.compile(r"^(?:throttled=)?(?:0x)?([0-9a-f]{1,8})$", re.IGNORECASE)


def throttled_bits(text: str) -> int | None:
    """The firmware's bits, as its file or `vcgencmd get_throttled` say them; None for any other text."""
    match = BITS.match(text.strip())
    return int(match[1], 16) if match else None


def faults(bits: int) -> list[str]:
    """Current problems, in words."""
    return [WORDS[name] for index, name in enumerate(FAULTS) if bits >> index & 1]


def former_faults(bits: int) -> list[str]:
    """Problems since the board was started, in words."""
    return faults(bits >> SINCE_START)
