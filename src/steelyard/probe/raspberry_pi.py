"""Raspberry Pi probe: throttling by the firmware (under-voltage, overheating), temperature and frequency.

The firmware reports throttling as bits (`node/raspberry_pi.py`). A board that was throttled during a trial is not the
hardware that the study names, so a nonzero reading of a `machine_fault_` metric voids the trial (`judging/verdict.py`).
On any other machine the probe only reports `machine_raspberry_pi_boards` = 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Metric, Sample
from steelyard.node.base import Node
from steelyard.node.raspberry_pi import FAULTS, SINCE_START, throttled_bits

SCRIPT = """
before=
while :; do
  now="$(date +%s.%N)" bits= temperature= frequency=
  read -r bits < /sys/devices/platform/soc/soc:firmware/get_throttled || bits="$(vcgencmd get_throttled)"
  if [ -n "$bits" ]; then
    now="$now throttled=${bits#throttled=}"
    read -r temperature < /sys/class/thermal/thermal_zone0/temp && now="$now temperature=$temperature"
    read -r frequency < /sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq && now="$now frequency=$frequency"
  fi
  [ -z "$before" ] || echo "$before | $now" || exit 0
  before="$now"
  sleep "$1" || exit 0
done 2> /dev/null
"""
"""Prints two readings per line, so that each line shows what occurred between them. The shell reads the files itself
and falls back to `vcgencmd` if the kernel has no such file. Bits are hexadecimal, with or without 0x."""

BOARDS = "machine_raspberry_pi_boards"
TEMPERATURE = "machine_temperature_celsius"
FREQUENCY = "machine_frequency_hz"


class RaspberryPiProbe:
    """Reads the state that the firmware reports."""

    name = "raspberry-pi"
    metrics = (
        Metric(name=BOARDS, unit="boards", description="boards whose firmware answers; 0: not a Raspberry Pi"),
        Metric(
            name="machine_fault_under_voltage",
            unit="fault",
            description="1: below 4.63 V, now or since the previous sample",
        ),
        Metric(
            name="machine_fault_frequency_capped",
            unit="fault",
            description="1: the ARM frequency was capped, now or since the previous sample",
        ),
        Metric(
            name="machine_fault_throttled", unit="fault", description="1: throttled, now or since the previous sample"
        ),
        Metric(
            name="machine_fault_soft_temperature_limit",
            unit="fault",
            description="1: above the soft limit, now or since the previous sample",
        ),
        Metric(name=TEMPERATURE, unit="degrees Celsius", description="temperature of the processor"),
        Metric(name=FREQUENCY, unit="hertz", description="current frequency of the first core"),
    )

    def command(self, node: Node, interval_s: float, process_ids: Sequence[int]) -> Sequence[str]:
        """argv of a shell that queries the firmware once per interval."""
        return ["sh", "-c", SCRIPT, "raspberry-pi", f"{interval_s:g}"]

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Samples from a line with two readings. Raises ProbeError on any other line."""
        try:
            (_, before), (at_s, now) = (_reading(part) for part in line.decode().split(" | "))
            samples = [Sample(at_s, node, BOARDS, float("throttled" in now))]
            if "throttled" in now:
                bits = _bits(now["throttled"])
                former = _bits(before["throttled"]) if "throttled" in before else bits
                samples += [
                    Sample(at_s, node, f"machine_fault_{name}", value) for name, value in _between(former, bits)
                ]
            if "temperature" in now:
                samples.append(Sample(at_s, node, TEMPERATURE, int(now["temperature"]) / 1000))
            if "frequency" in now:
                samples.append(Sample(at_s, node, FREQUENCY, int(now["frequency"]) * 1000.0))
        except (ValueError, KeyError) as error:
            raise ProbeError(f"{node}: not a line of the raspberry-pi probe: {line[:200]!r}") from error
        return samples


def _between(before: int, now: int) -> list[tuple[str, float]]:
    """1 for each fault that is present now, or that first occurred since boot between the two readings."""
    occurred = now | (now & ~before) >> SINCE_START
    return [(name, float(occurred >> index & 1)) for index, name in enumerate(FAULTS)]


def _bits(text: str) -> int:
    bits = throttled_bits(text)
    if bits is None:
        raise ValueError(text)
    return bits


def _reading(text: str) -> tuple[float, dict[str, str]]:
    """Time and values of one reading."""
    time_s, *words = text.split()
    values = dict(word.partition("=")[::2] for word in words)
    if not values.keys() <= {"throttled", "temperature", "frequency"}:
        raise ValueError(text)
    return float(time_s), values


def create() -> RaspberryPiProbe:
    """Create the probe; no side effects."""
    return RaspberryPiProbe()
