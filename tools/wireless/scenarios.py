"""What a shared medium does that separate links do not, simulated beside what the model or arithmetic expects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tools.wireless.bianchi import beside_a_slow_one_mbit, model_g, model_g_rts, model_n
from tools.wireless.cells import simulated

G_54, N_65 = model_g(54, 24), model_n(16)
CONTROL_MBIT = {54: 24, 6: 6}
"""Rate of ACK, RTS and CTS, by that of the data."""
SECONDS = 300


@dataclass(frozen=True)
class Scenario:
    """A scenario with the arguments that make it and what is expected of it."""

    name: str
    arguments: str
    """What follows `steelyard-agent link --simulate --seed 1 --json`."""
    expected: str
    shown: str = "{throughput_mbit_per_s:.2f} Mb/s"
    """Template of what was simulated, over the agent's answer."""

    def simulated(self) -> str:
        """What the agent says of it."""
        answer: dict[str, Any] = simulated(*self.arguments.split())
        return self.shown.format(**answer)


def scenarios() -> list[Scenario]:
    """All of them, in the order of the page."""
    return [*_relayed(), *_shared(), *_unheard(), *_reported()]


def scenario_table() -> str:
    """One row per scenario: what is expected, what was simulated, and with which arguments."""
    rows = ["| what | expected | simulated | arguments |", "| --- | --- | --- | --- |"]
    rows += [f"| {each.name} | {each.expected} | {each.simulated()} | `{each.arguments}` |" for each in scenarios()]
    return "\n".join(rows)


def _arguments(
    stations: int, *more: str, phy: str = "802.11g-54", retry_limit: str = "off", seconds: int = SECONDS
) -> str:
    fixed = ("--phy", phy, "--stations", str(stations), "--seconds", str(seconds), "--retry-limit", retry_limit)
    return " ".join((*fixed, *more))


def _relayed() -> list[Scenario]:
    return [
        Scenario(
            f"{number} stations send to each other through the access point: delivered",
            _arguments(number, "--traffic", "relay"),
            f"S({number + 1}) / {number + 1} = {G_54.throughput_mbit(number + 1) / (number + 1):.2f} Mb/s",
        )
        for number in (2, 5, 9)
    ]


def _shared() -> list[Scenario]:
    each_mbit = beside_a_slow_one_mbit(G_54, model_g(6, 6), 4)
    jain = "{jain_index:.4f}"
    rates = ", ".join(f"{{stations_mbit_per_s[{station}]:.2f}}" for station in range(4))
    return [
        Scenario("Jain's index of 5 stations over 10 s", _arguments(5, seconds=10), "at least 0.99", jain),
        Scenario(
            "Jain's index of 10 stations of 6 Mb/s over 10 s",
            _arguments(10, phy="802.11g-6", seconds=10),
            "about 0.96",
            jain,
        ),
        Scenario(
            "one of 4 stations has 6 Mb/s, the others 54 (anomaly of Heusse and others, 2003): each station",
            _arguments(4, "--slow", "1"),
            f"all alike, {each_mbit:.2f} Mb/s by the model with two durations; else S(4) / 4 = "
            f"{G_54.throughput_mbit(4) / 4:.2f}",
            f"{rates} Mb/s",
        ),
    ]


def _unheard() -> list[Scenario]:
    """Pairs that do not hear each other, without and with RTS/CTS, and by the retry limit."""
    rows = []
    for rate, control in CONTROL_MBIT.items():
        heard_mbit = model_g(rate, control).throughput_mbit(2)
        heard_rts_mbit = model_g_rts(rate, control).throughput_mbit(2)
        for limit in ("7", "off"):
            name = f"2 stations of {rate} Mb/s that do not hear each other, retry limit {limit}"
            phy = f"802.11g-{rate}"
            rows += [
                Scenario(
                    name, _arguments(2, "--hidden", phy=phy, retry_limit=limit), f"below S(2) = {heard_mbit:.2f} Mb/s"
                ),
                Scenario(
                    f"{name}, RTS/CTS",
                    _arguments(2, "--hidden", "--rts", phy=phy, retry_limit=limit),
                    f"within 10% of S(2) with RTS/CTS = {heard_rts_mbit:.2f} Mb/s",
                ),
            ]
    return rows


def _reported() -> list[Scenario]:
    """The four that users of other emulators reported as wrong there, and the delay of a light load."""
    return [
        Scenario(
            "5 stations are offered twice what one can send",
            _arguments(5, "--load", "2"),
            f"saturates at S(5) = {G_54.throughput_mbit(5):.2f} Mb/s",
        ),
        Scenario(
            "4 stations at two access points on one channel",
            _arguments(4, "--access-points", "2"),
            f"S(4) = {G_54.throughput_mbit(4):.2f} Mb/s, not 2 S(2)",
        ),
        Scenario(
            "one station of 54 Mb/s to the access point",
            _arguments(1),
            f"S(1) = {G_54.throughput_mbit(1):.2f} Mb/s, more than 20",
        ),
        Scenario(
            "one station of 65 Mb/s, 16 frames aggregated",
            _arguments(1, "--aggregate", "16", phy="802.11n-65"),
            f"{N_65.throughput_mbit(1):.2f} Mb/s, more than 40",
        ),
        Scenario(
            "5 stations at 10% load: delay",
            _arguments(5, "--load", "0.1"),
            "median: airtime of the data, 0.254 ms, as most find the medium idle; mean: near that and DIFS, 0.282 ms",
            "{delay_ms[p50]:.3f} ms; {delay_ms[mean]:.3f} ms",
        ),
    ]
