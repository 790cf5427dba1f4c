"""What a shared medium does that separate links do not, simulated beside what arithmetic expects."""

from __future__ import annotations

from tools.wireless.cells import simulated

G_54 = ("--phy", "802.11g-54", "--retry-limit", "off", "--seconds", "60")


def _g_54(stations: int, *arguments: str) -> dict[str, float]:
    return simulated(*G_54, "--stations", str(stations), *arguments)


def _mbit(stations: int, *arguments: str) -> float:
    return _g_54(stations, *arguments)["throughput_mbit_per_s"]


def scenario_table() -> str:
    """One row per scenario: what is expected, and what was simulated."""
    rows = ["| what | expected | simulated |", "| --- | --- | --- |"]
    rows += [f"| {what} | {expected} | {result} |" for what, expected, result in _scenarios()]
    return "\n".join(rows)


def _scenarios() -> list[tuple[str, str, str]]:
    return [*_relayed(), *_shared(), *_unheard(), *_reported()]


def _relayed() -> list[tuple[str, str, str]]:
    return [
        (
            f"{number} stations send to each other through the access point: delivered",
            f"S({number + 1}) / {number + 1} = {_mbit(number + 1) / (number + 1):.2f} Mb/s",
            f"{_mbit(number, '--traffic', 'relay'):.2f} Mb/s",
        )
        for number in (2, 5, 9)
    ]


def _shared() -> list[tuple[str, str, str]]:
    five = simulated("--phy", "802.11g-54", "--retry-limit", "off", "--stations", "5", "--seconds", "10")
    ten = simulated("--phy", "802.11g-6", "--retry-limit", "off", "--stations", "10", "--seconds", "10")
    slow = simulated(*G_54, "--stations", "4", "--slow", "1")
    each = 12_000 / (3 * 326 + 2172)
    rates = ", ".join(f"{rate:.2f}" for rate in slow["stations_mbit_per_s"])
    return [
        ("Jain's index of 5 stations over 10 s", "at least 0.99", f"{five['jain_index']:.4f}"),
        ("Jain's index of 10 stations of 6 Mb/s over 10 s", "about 0.966", f"{ten['jain_index']:.4f}"),
        (
            "one of 4 stations has 6 Mb/s (the anomaly of Heusse and others, 2003): each station",
            f"the same, below payload / sum of the exchanges = {each:.2f} Mb/s; without it {_mbit(4) / 4:.2f}",
            f"{rates} Mb/s",
        ),
    ]


def _unheard() -> list[tuple[str, str, str]]:
    return [
        ("2 stations that do not hear each other", f"far below S(2) = {_mbit(2):.2f} Mb/s", f"{_mbit(2, '--hidden'):.2f} Mb/s"),
        (
            "the same with RTS/CTS",
            f"within 10% of S(2) with RTS/CTS = {_mbit(2, '--rts'):.2f} Mb/s",
            f"{_mbit(2, '--hidden', '--rts'):.2f} Mb/s",
        ),
    ]


def _reported() -> list[tuple[str, str, str]]:
    """The four that users of other emulators reported as wrong there, and the delay of a light load."""
    light, alone = _g_54(1, "--load", "0.1"), ("--stations", "1", "--retry-limit", "off", "--seconds", "20")
    twice = _mbit(5, "--load", "2")
    n_65 = ("--phy", "802.11n-65")
    aggregated = simulated(*n_65, *alone, "--aggregate", "16")["throughput_mbit_per_s"]
    delay = light["delay_ms"]
    assert isinstance(delay, dict)
    return [
        ("5 stations are offered twice what one can send", f"saturates at S(5) = {_mbit(5):.2f} Mb/s", f"{twice:.2f} Mb/s"),
        (
            "4 stations at two access points on one channel",
            f"S(4) = {_mbit(4):.2f} Mb/s, not 2 S(2)",
            f"{_mbit(4, '--access-points', '2'):.2f} Mb/s",
        ),
        ("one station of 54 Mb/s to the access point", "more than 20 Mb/s", f"{_mbit(1):.2f} Mb/s"),
        ("one station of 65 Mb/s, 16 frames aggregated", "more than 40 Mb/s", f"{aggregated:.2f} Mb/s"),
        (
            "one station at 10% load: median delay",
            "airtime of the data, 0.254 ms: the medium was idle for DIFS before",
            f"{delay['p50']:.3f} ms (mean {delay['mean']:.3f})",
        ),
    ]
