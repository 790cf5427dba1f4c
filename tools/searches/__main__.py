"""`python -m tools.searches`: simulate searches against queues with a known answer, write the page of their figures."""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.searches.queues import PausedQueue, Queue
from tools.searches.real import real_table, real_words
from tools.searches.simulate import AnyQueue, Method, Outcome, Q, bisect_by_outcome, search

SEARCHES = 200
FIRST_SEED = 2000
"""Of searches that nobody saw while the method was chosen: that was done with the seeds 0 to 199."""
LEAST_HELD = 183
PLAIN: tuple[tuple[AnyQueue, float], ...] = (
    (Queue(1, 0.001, True), 10.0),
    (Queue(4, 0.004, False), 10.0),
    (Queue(1, 0.001, True), 20.0),
    (Queue(4, 0.004, False), 20.0),
)
"""Queues that could do 1,000 operations/s, and limits of their p99 in ms."""
PAUSED, HEAVY = PausedQueue(0.001, pause_s=0.04, pauses_per_s=1 / 3), PausedQueue(0.001, variation=9.0)
CASES = (*PLAIN, *((PAUSED, limit) for limit in (20.0, 30.0, 60.0)), *((HEAVY, limit) for limit in (20.0, 30.0, 50.0)))
"""With those whose windows of 10 s hold few of the events that make operations slow."""
HEADS = "| queue | limit of the p99 | rate by theory | held | mean of windows | median half width | bias | spread |"
WORDS = Path(__file__).with_name("words.md")


def outcomes(
    method: Method, searches: int, cases: Sequence[tuple[AnyQueue, float]] = CASES
) -> dict[tuple[str, float], list[Outcome]]:
    """Every case's searches."""
    every = {}
    for queue, limit_ms in cases:
        true_per_s = queue.rate_at(limit_ms / 1000, Q)
        every[queue.name, limit_ms] = [
            method(queue, limit_ms, true_per_s, seed) for seed in range(FIRST_SEED, FIRST_SEED + searches)
        ]
    return every


def table(every: dict[tuple[str, float], list[Outcome]]) -> str:
    """One row per case."""
    rows = [HEADS, "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for (name, limit_ms), of in every.items():
        true_per_s = of[0].true_per_s
        half = statistics.median((one.high_per_s - one.low_per_s) / 2 / true_per_s for one in of)
        errors = [one.error for one in of if not math.isnan(one.error)]
        held = sum(one.holds for one in of)
        windows = statistics.fmean(one.windows for one in of)
        rows.append(
            f"| {name} | {limit_ms:g} ms | {true_per_s:.1f}/s | {held} of {len(of)} | {windows:.1f} | {half:.1%} | "
            f"{statistics.fmean(errors):+.1%} | {statistics.stdev(errors):.1%} |"
        )
    return "\n".join(rows)


def kept(every: dict[tuple[str, float], list[Outcome]]) -> bool:
    """Whether the search keeps what it promises, in every case."""
    return all(sum(one.holds for one in of) * SEARCHES >= LEAST_HELD * len(of) for of in every.values())


def words(every: dict[tuple[str, float], list[Outcome]]) -> str:
    """What was promised, and whether it was kept."""
    least = min(sum(one.holds for one in of) for of in every.values())
    most = max(statistics.fmean(one.windows for one in of) for of in every.values())
    searches = len(next(iter(every.values())))
    verdict = "It is kept" if kept(every) else "**It is not kept**"
    return (
        f"Promised: the analytic rate lies in the interval of at least {LEAST_HELD} of {SEARCHES} searches. "
        f"{verdict}: of {searches} searches per case, at least {least} do, with up to {most:.1f} windows on average. "
        "All with the default settings (windows of 10 s after 2 s, "
        "lengthened up to four times, precision 5%, at most 20 windows) from first rates between 50 and 400/s."
    )


def page(searches: int) -> tuple[str, bool]:
    """The page, and whether what it promises is kept."""
    ours, bisected = outcomes(search, searches), outcomes(bisect_by_outcome, searches, PLAIN)
    parts = {"oracle_words": words(ours), "oracle": table(ours), "bisection": table(bisected)}
    text = WORDS.read_text(encoding="utf-8").format(**parts, real=real_table(), real_words=real_words())
    return text, kept(ours)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 if a case holds the truth too rarely or takes too many windows."""
    parser = argparse.ArgumentParser(prog="python -m tools.searches", description=__doc__)
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the page instead of printing it")
    parser.add_argument("--searches", type=int, default=SEARCHES, help=f"searches per case (default {SEARCHES})")
    asked = parser.parse_args(arguments)
    if asked.searches < 2:
        parser.error("--searches must be at least 2")
    text, is_kept = page(asked.searches)
    if asked.write:
        asked.write.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
