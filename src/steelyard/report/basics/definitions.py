"""Glossary of the page's own table heads, for columns that no statistic defines.

The row types of statistics define their columns, and response modules define responses. `docs/reference/numbers`
explains the same terms at length.
"""

from __future__ import annotations

from typing import Final

OF_THE_PAGE: Final[dict[str, str]] = {
    "left out": "Attempts at the treatment that no number rests on, with the first reason of each.",
    "factor": "The level of the factor that the study set.",
    "fields of a named level": "The fields of the study that the level sets; all others are those of the study.",
    "number of a named level": "The level's number in regressions and on axes, as the study states it.",
    "limit of a node": "What a database node may use, as section `node` of the study or the profile says.",
    "profile of a node": "The hardware that the node represented; a dash where none was named.",
    "asked of a node": "The number in the trials' complete settings.",
    "measured on a node": (
        "Result of `steelyard-agent gauge` as a process of the node: the median, least and most of n measurements. The "
        "speed of a core does not depend on its quota. The memory of its machine is the RAM found by a virtual "
        "machine's kernel, which reserves a part of it."
    ),
    "odd node": "A node of which a measurement is further from what was asked (from the median, where nothing was).",
    "interval": "Confidence interval at the level that the page names.",
    "comparison": "Baseline level and the level compared with it.",
    "form of a regression": (
        "Start means: the level at which cluster size was randomised. Trials: as the source printed it; "
        "trials of one start are repeated measures, so its p and standard error are too small."
    ),
    "crime": (
        "A way in which a benchmark's report misleads, from Gernot Heiser's list of systems benchmarking crimes."
    ),
    "evidence of a crime": "Evidence counted or read in this study.",
    "hint of a crime": "What to do, or how to read the page as it is.",
    "value of a level": (
        "Geometric mean of the level's start means; the change is the quotient of two of them. Of a response that is "
        "compared by differences their mean, and the change is the difference."
    ),
    "change from the baseline": (
        "In percent of the baseline's value between half and double, otherwise as a multiple of it, or as a difference "
        "in the response's unit; in brackets the interval over starts."
    ),
    "verdict of a level": (
        "Slower, faster, higher or lower: the interval leaves out no change. Equivalent: within the study's margin. "
        "Undecided: neither, or within the noise floor or a trend of the servers, or a cold level against a warm one "
        "(cold). No verdict: too few starts."
    ),
    "n of a level": "Trials and starts of a cluster that the value rests on.",
    "began": "Time at which the attempt began.",
    "verdict": "Valid, invalid or unknown; each reason with the number measured and its threshold.",
    "blamed": "A fault of the system under test is a result; a fault of the laboratory voids the attempt.",
    "counts": "Whether the numbers of the page rest on this attempt.",
    "response of parts": "What was averaged over each part: mean response time, or operations per second.",
    "steady state of a trial": "Used trials in this state, by change points over their seconds; none: no state shown.",
    "response and service time": "Response time counts from when an operation was due, service time from its sending.",
    "percentile of a curve": "Time that this share of all operations of the treatment did not exceed.",
    "node": "Node whose probes gave the readings; load nodes drive the load.",
    "readings of a node": "Mean over the measured phase; in brackets the highest reading of a second.",
    "metric of a server": "Quantity that a probe reads from the database itself, such as the pauses of its collector.",
    "readings of a server": "Readings of all database nodes in the measured phase.",
    "mean of a server's metric": "Mean of these readings, all nodes alike.",
    "greatest of a server's metric": "The largest of these readings.",
    "check of the generator": "A check of the load generator: the number found and the limit.",
}
"""Term to definition."""

WORDS: Final[dict[str, str]] = {
    "study": "The question as one file: what is varied, how often, in which order.",
    "factor, level": "What the study varies, and one value of it.",
    "treatment": "One level of each factor. All its trials together are a cell: one row of a table.",
    "start": (
        "One start of a cluster, with the trials that share it. Trials within a start are repeated measures of one "
        "cluster, so verdicts rest on the means of starts."
    ),
    "block": "One round of all starts; their order is balanced over blocks.",
    "trial, attempt": "One execution of a treatment; each try at it is an attempt.",
    "voided": "An attempt that the laboratory spoilt: it is kept, counts for nothing, and is repeated.",
    "warm-up": "Trials at the beginning of a start that are dropped because the system was still warming up.",
    "response": "One number per trial, such as execution time or throughput.",
    "response time, service time": (
        "Response time counts from when an operation was due, service time from when it was sent."
    ),
    "p50, p95, p99": "The time that 50, 95 or 99% of the operations did not exceed.",
    "95% interval": "A range computed by a rule whose ranges contain the true value in 95% of studies.",
    "verdict": (
        "Higher or lower (slower, faster): the interval leaves out no change. Undecided: it does not. Equivalent: it "
        "lies within the margin that the study declared."
    ),
    "noise floor": "How much two identical systems differ on this machine; a smaller change is undecided.",
}
"""The page's own words, explained for a reader who meets them first."""
