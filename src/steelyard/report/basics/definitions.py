"""Glossary of the page's own table heads, for columns that no statistic defines.

The row types of statistics define their columns, and response modules define responses. `docs/reference/numbers.md`
explains the same terms at length.
"""

from __future__ import annotations

from typing import Final

OF_THE_PAGE: Final[dict[str, str]] = {
    "left out": "Attempts of the treatment that no number rests on, with the first reason of each.",
    "factor": "The level of the factor that the study set.",
    "interval": "Confidence interval at the level that the page names.",
    "comparison": "Baseline level and the level that is held against it.",
    "form of a regression": (
        "Start means: the level at which cluster size was randomised. Trials: as the source printed it; "
        "trials of one start are repeated measures, so its p and standard error are too small."
    ),
    "crime": (
        "A way in which a benchmark's report misleads, from Gernot Heiser's list of systems benchmarking crimes."
    ),
    "finding of a crime": "Look: the number beside it may mislead a reader of this page. Clear: it does not.",
    "evidence of a crime": "What was counted or read, in this study.",
    "mend of a crime": "What to do, or how to read the page as it is.",
    "began": "Time at which the attempt began.",
    "verdict": "Valid, invalid or unknown; each reason with the number measured and its threshold.",
    "blamed": "A fault of the system under test is a result; a fault of the laboratory voids the attempt.",
    "counts": "Whether the numbers of the page rest on this attempt.",
    "response of parts": "What was averaged over each part: mean response time, or operations a second.",
    "steady state of a trial": "Used trials of which change points over their seconds say this; none: no state shown.",
    "response and service time": "Response time counts from when an operation was due, service time from its sending.",
    "percentile of a curve": "Time that this share of all operations of the treatment did not exceed.",
    "node": "Node whose probes gave the readings; load nodes drive the load.",
    "readings of a node": "Mean over the measured phase; in brackets the greatest reading of a second.",
    "check of the generator": "What the laboratory checked of its load generator, what it found, what it allows.",
}
"""Term to definition."""
