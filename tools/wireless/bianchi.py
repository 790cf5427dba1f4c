"""Bianchi's model of the saturation throughput of 802.11, and the airtimes that it needs.

G. Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function", IEEE JSAC 18(3), 2000. Correction:
G. Bianchi and I. Tinnirello, "Remarks on IEEE 802.11 DCF performance analysis", IEEE Communications Letters 9(8), 2005.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from steelyard.heavy import optimize

SERVICE_AND_TAIL_BITS = 22
SYMBOL_US = 4
OFDM_PREAMBLE_US, HT_PREAMBLE_US, LONG_PREAMBLE_US = 20, 36, 192
ACK_BYTES, RTS_BYTES, BLOCK_ACK_BYTES = 14, 20, 32
PAYLOAD_BYTES = 1500
FRAME_BYTES = PAYLOAD_BYTES + 8 + 28
"""With LLC and SNAP headers, MAC header and check sequence."""
SUBFRAME_BYTES = 1544
"""In an A-MPDU: with quality-of-service field and delimiter, padded to four bytes."""


@dataclass(frozen=True)
class Model:
    """Slot, window and durations of a medium with saturated stations that all hear each other; times in us."""

    slot_us: float
    window: int
    """Slots of the first contention window, CWmin + 1."""
    stages: int
    """Doublings of the window."""
    success_us: float
    """From the begin of a transmission to when slots are counted again."""
    collision_us: float
    payload_bits: float
    corrected: bool = True
    """Whether who has just sent may draw 0 and send again before others count (2005)."""

    def throughput_mbit(self, stations: int) -> float:
        """Payload per second of all stations together. Of one station, for which the model is an approximation, the exact
        arithmetic: payload over exchange and mean back-off."""
        if stations == 1:
            return self.payload_bits / (self.success_us + self.slot_us * (self.window - 1) / 2)
        tau = self._tau(stations)
        idle = (1 - tau) ** stations
        success = stations * tau * (1 - tau) ** (stations - 1)
        again = 1 / self.window if self.corrected else 0.0
        success_us = self.success_us / (1 - again) + (self.slot_us if self.corrected else 0.0)
        slot_us = idle * self.slot_us + success * success_us + (1 - idle - success) * self.collision_us
        return success * self.payload_bits / (1 - again) / slot_us

    def _tau(self, stations: int) -> float:
        """Probability that a station sends in a slot: the fixed point of collisions and windows."""

        def excess(tau: float) -> float:
            p = 1 - (1 - tau) ** (stations - 1)
            windows = sum((2 * p) ** stage for stage in range(self.stages))
            return tau - 2 / (1 + self.window + p * self.window * windows)

        return float(optimize.brentq(excess, 0.0, 1.0, xtol=1e-12))


def ofdm_us(preamble_us: float, size_bytes: int, bits_per_symbol: int) -> float:
    """Airtime of an OFDM transmission, without the signal extension of the 2.4 GHz band, which SIFS makes up for."""
    return preamble_us + SYMBOL_US * math.ceil((SERVICE_AND_TAIL_BITS + 8 * size_bytes) / bits_per_symbol)


def model_g(rate_mbit: int, control_mbit: int) -> Model:
    """802.11a or g, EIFS variant, corrected."""
    data_us = ofdm_us(OFDM_PREAMBLE_US, FRAME_BYTES, rate_mbit * SYMBOL_US)
    exchange_us = data_us + 16 + ofdm_us(OFDM_PREAMBLE_US, ACK_BYTES, control_mbit * SYMBOL_US) + 34
    return Model(9, 16, 6, exchange_us, exchange_us, 8 * PAYLOAD_BYTES)


def model_g_rts(rate_mbit: int, control_mbit: int) -> Model:
    """802.11a or g with RTS and CTS, EIFS variant (room for the CTS), corrected."""
    basic = model_g(rate_mbit, control_mbit)
    request_us = ofdm_us(OFDM_PREAMBLE_US, RTS_BYTES, control_mbit * SYMBOL_US) + 16
    clear_us = ofdm_us(OFDM_PREAMBLE_US, ACK_BYTES, control_mbit * SYMBOL_US)
    return replace(basic, success_us=request_us + clear_us + 16 + basic.success_us, collision_us=request_us + clear_us + 34)


def model_b() -> Model:
    """802.11b at 11 Mb/s with the long preamble and ACKs at 2 Mb/s, EIFS variant, corrected."""
    exchange_us = LONG_PREAMBLE_US + FRAME_BYTES * 8 / 11 + 10 + LONG_PREAMBLE_US + ACK_BYTES * 8 / 2 + 50
    return Model(20, 32, 5, exchange_us, exchange_us, 8 * PAYLOAD_BYTES)


def model_n(aggregate: int, *, corrected: bool = False) -> Model:
    """802.11n, 20 MHz, 65 Mb/s, answers at 24 Mb/s, EIFS variant: one frame and its ACK, or an A-MPDU and its block ACK."""
    data_bytes = FRAME_BYTES + 2 if aggregate == 1 else aggregate * SUBFRAME_BYTES
    answer_bytes = ACK_BYTES if aggregate == 1 else BLOCK_ACK_BYTES
    data_us = ofdm_us(HT_PREAMBLE_US, data_bytes, 260)
    exchange_us = data_us + 16 + ofdm_us(OFDM_PREAMBLE_US, answer_bytes, 24 * SYMBOL_US) + 43
    return Model(9, 16, 6, exchange_us, exchange_us, 8 * PAYLOAD_BYTES * aggregate, corrected)
