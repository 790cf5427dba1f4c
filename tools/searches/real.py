"""Searches that were carried out in the laboratory on the simulated cluster, beside what was planted."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from scipy import optimize

from tools.searches.queues import Queue

RESULTS = Path(__file__).with_name("real.json")
P95 = 0.95


def two_nodes_in_turn(rate_per_s: float, service_s: float, q: float) -> float:
    """Percentile of response time where Poisson arrivals go to two M servers in turn: each is an E2/M/1 queue (L.
    Kleinrock, *Queueing Systems I*, 1975, section 6.4)."""
    mu = 1 / service_s

    def root(sigma: float) -> float:
        return float((rate_per_s / (rate_per_s + mu * (1 - sigma))) ** 2 - sigma)

    sigma = float(optimize.brentq(root, 0.0, 1 - 1e-9 - 1e-3 * (1 - rate_per_s / (2 * mu))))
    return -math.log(1 - q) / (mu * (1 - sigma))


def planted_per_s(result: dict[str, Any]) -> float:
    """The rate that theory gives for what was planted."""
    service_s, limit_s = float(result["service_ms"]) / 1000, float(result["limit_ms"]) / 1000
    match result["kind"]:
        case "saturation":
            return 1 / service_s
        case "M/M/1":
            return Queue(1, service_s, True).rate_at(limit_s, P95)
        case "M/D/4":
            return Queue(4, service_s, False).rate_at(limit_s, P95)
    return float(
        optimize.brentq(
            lambda rate: two_nodes_in_turn(rate, service_s, P95) - limit_s, 0.05 / service_s, 1.98 / service_s
        )
    )


def results() -> list[dict[str, Any]]:
    """The searches, in order."""
    loaded: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return loaded


def real_table() -> str:
    """One row per search."""
    heads = ("planted", "asked", "rate by theory", "found", "interval", "windows", "held")
    rows = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    for result in results():
        true_per_s = planted_per_s(result)
        low, high = result["low_per_s"], result["high_per_s"]
        cells = (
            result["planted"], result["asked"], f"{true_per_s:.1f}/s", f"{result['rate_per_s']:.1f}/s",
            f"{low:.1f} to {high:.1f}", str(result["windows"]), "yes" if low <= true_per_s <= high else "no",
        )  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def real_words() -> str:
    """How many hold what was planted."""
    of = results()
    held = sum(one["low_per_s"] <= planted_per_s(one) <= one["high_per_s"] for one in of)
    return f"{held} of {len(of)} intervals hold what was planted."
