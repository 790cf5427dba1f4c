"""What each number of the page means, in a sentence. `docs/reference/numbers.md` has the same terms at length."""

from __future__ import annotations

from typing import Final

DEFINITIONS: Final[dict[str, str]] = {
    "n": "Used trials: valid, not warm-up, not control.",
    "starts": "Cluster starts that these trials came from: what replicates a factor that needs a new cluster.",
    "left out": "Attempts of the treatment that no number rests on, with the first reason of each.",
    "factor": "The level of the factor that the study set.",
    "mean": "Arithmetic mean; brackets are its t interval.",
    "sd": "Standard deviation over used trials, with n − 1.",
    "min": "Smallest used trial.",
    "max": "Greatest used trial.",
    "quartiles": "First and third quartile over used trials, by linear interpolation.",
    "median": "Median over used trials; brackets are its order-statistic interval, from 6 trials on.",
    "interval": "Confidence interval at the level that the page names.",
    "comparison": "Baseline level and the level that is held against it.",
    "change": "100 (level / baseline − 1), each a geometric mean of start means.",
    "verdict of a comparison": (
        "Slower, faster, higher or lower: the interval leaves out no change. Undecided: it does not. Descriptive: "
        "too few "
        "starts for an interval."
    ),
    "slope": "Least-squares slope: change of the response for one step of the factor.",
    "intercept": "Least-squares intercept: the line's value where the factor is 0.",
    "standard error": "Standard error of the slope.",
    "r": "Pearson's correlation of response and factor.",
    "p": "Two-sided p-value of a slope of 0 (Wald, t with n − 2 degrees of freedom).",
    "n of a fit": "Points that the line was fitted to: start means, or trials.",
    "form of a regression": (
        "Start means: the level at which cluster size was randomised. Trials: as the source printed it; trials of "
        "one start "
        "are repeated measures, so its p and standard error are too small."
    ),
    "law": "Scalability law: linear, Amdahl's, or the universal scalability law (usl).",
    "base": "Throughput of one node, or time of one operation on one node.",
    "sigma": "Contention: the share of work that cannot be done in parallel.",
    "kappa": "Coherency: the cost of nodes agreeing with each other.",
    "AICc": "Akaike's criterion, corrected for small n; of laws fitted to the same points the smaller is better.",
    "peak": "Size of the greatest throughput.",
    "start": "One start of a cluster, by its number or its name.",
    "fixed cut": "Trials dropped at the beginning by the study's fixed count.",
    "detected cut": "Trials that MSER-5 would drop; none if the series is too short to say.",
    "verdict of warm-up": (
        "Warm-up: a beginning to drop, level after it. Steady: level from the first trial. Drifting: a trend remains. "
        "None: no steady state can be shown."
    ),
    "crime": "A way in which a benchmark's report misleads, from Gernot Heiser's list of systems benchmarking crimes.",
    "finding of a crime": "Look: the number beside it may mislead a reader of this page. Clear: it does not.",
    "evidence of a crime": "What was counted or read, in this study.",
    "mend of a crime": "What to do, or how to read the page as it is.",
    "trial": "Identity of the trial: hash of its settings, its start, its number. Its folder has this name.",
    "attempt": "A trial that the laboratory spoilt is repeated; this is which try.",
    "began": "Time at which the attempt began.",
    "verdict": "Valid, invalid or unknown; each reason with the number measured and its threshold.",
    "blamed": "A fault of the system under test is a result; a fault of the laboratory voids the attempt.",
    "position": "Place in the order of time.",
    "block": "Trials run close together, in random order.",
    "order in start": "How many trials this start had served, counting this one.",
    "counts": "Whether the numbers of the page rest on this attempt.",
    "execution_time_ms": "Time from the first operation sent to the last answered.",
    "throughput_per_s": "Operations answered without error over execution time.",
    "operations": "Operations answered without error.",
    "errors": "Operations that failed or timed out.",
    "not_found": "Reads of keys that must exist but returned no row.",
    "response_ms_mean": "Mean response time: from when an operation was due to its answer.",
    "response_ms_p50": "Response time that half of the trial's operations did not exceed.",
    "response_ms_p95": "Response time that 95% of the trial's operations did not exceed.",
    "response_ms_p99": "Response time that 99% of the trial's operations did not exceed.",
    "response_ms_max": "Longest response time of the trial.",
    "service_ms_mean": "Mean service time: from when an operation was sent to its answer.",
    "service_ms_p50": "Service time that half of the trial's operations did not exceed.",
    "service_ms_p95": "Service time that 95% of the trial's operations did not exceed.",
    "service_ms_p99": "Service time that 99% of the trial's operations did not exceed.",
    "lag_ms_p99": "Lag (sent later than due) that 99% of the operations did not exceed.",
    "generator_cpu_us_per_operation": "CPU time of the load generator for one operation.",
    "p with Holm's correction": "The comparison's p, corrected for all comparisons of the response that have one.",
    "noise floor of a comparison": "Change that comparisons of identical systems with as many trials stay below.",
    "starts that would decide": (
        "Further starts a level that would decide with a chance of 80%, if difference and spread stayed as they are."
    ),
    "response of parts": "What was averaged over each part: mean response time, or operations a second.",
    "mean of a part": "Mean over trials of the means of this part of each trial.",
    "steady state of a trial": "Used trials of which MSER-5 over their seconds says this; none: no steady state shown.",
    "cut within a trial": "Seconds at the beginning that MSER-5 would drop; nothing is dropped.",
    "response and service time": "Response time counts from when an operation was due, service time from its sending.",
    "percentile of a curve": "Time that this share of all operations of the treatment did not exceed.",
    "node": "Node whose probes gave the readings; load nodes drive the load.",
    "readings of a node": "Mean over the measured phase; in brackets the greatest reading of a second.",
    "check of the generator": "What the laboratory checked of its load generator, what it found, what it allows.",
}
"""Term to definition. Responses go by their field's name."""
