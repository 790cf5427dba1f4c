"""Headings of summary tables as people and tools write them: statistic, quantity, unit and group of a column.

`p99_latency_ms`, `99thPercentileLatency(us)`, `99% Line` and `.99` are one statistic. Known phrases are in
tables; a heading of which a word is left over that no table has keeps it as its quantity, and two statistics in one
heading (`mean of p99`) are none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

SUMMARIES: Final[Mapping[str, tuple[str, ...]]] = {
    "count": ("n", "count", "cnt", "samples", "sample", "sample size", "sample count", "observations", "obs", "#",
              "n samples", "n obs", "count of values", "nobs"),
    "mean": ("mean", "average", "avg", "ave", "mu", "arithmetic mean", "mean value"),
    "sd": ("sd", "std", "stddev", "stdev", "stdv", "sdv", "std dev", "st dev", "std deviation", "standard deviation",
           "standard dev", "sigma", "s d"),
    "min": ("min", "minimum", "lowest", "fastest", "least"),
    "q1": ("q1", "lq"),
    "median": ("median", "med", "mdn", "q2"),
    "q3": ("q3", "uq"),
    "max": ("max", "maximum", "highest", "slowest", "worst", "longest"),
    "range": ("range",),
    "iqr": ("iqr", "interquartile range", "inter quartile range"),
    "se": ("se", "sem", "standard error", "std error", "standard error of the mean", "standard error of mean"),
    "cv_percent": ("cv percent", "cv %", "% cv", "rsd %", "% rsd", "coefficient of variation %",
                   "coefficient of variation percent"),
    "cv": ("cv", "rsd", "coefficient of variation", "cov", "relative standard deviation"),
}  # fmt: skip
"""Statistics of a group of values, and their phrases. Quartiles and percentiles have their own grammar."""
WHOLE: Final[Mapping[str, tuple[str, ...]]] = {
    "slope": ("slope",), "intercept": ("intercept",), "r": ("r", "r value", "pearson r"), "p": ("p", "p value"),
    "std_err": ("std err", "stderr"), "cohens_d": ("cohens d", "cohen s d", "d"),
    "hedges_g": ("hedges g", "hedge s g"), "ratio": ("ratio",), "difference": ("difference", "diff"),
    "change_percent": ("change percent", "change %", "% change", "percent change", "percentage change"),
    "share": ("share", "fraction", "proportion", "percentage", "percent", "pct", "%", "share %", "share percent",
              "percent of total", "% of total", "share of total"),
    "part": ("part", "k", "of which"), "whole": ("whole", "total", "all", "out of", "of"),
}  # fmt: skip
"""Statistics that are the whole heading, or none."""
ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "speedup": ("speedup", "speed up", "relative speedup", "relative speed up"),
    "efficiency": ("efficiency", "parallel efficiency", "scaling efficiency"),
    "throughput": ("throughput", "tput", "thruput", "xput", "tps", "qps", "rps", "iops", "op rate", "operation rate",
                   "request rate", "transaction rate", "rate per s"),
    "duration": ("duration", "elapsed", "elapsed time", "time elapsed", "runtime", "run time", "wall time",
                 "wall clock time", "wall clock", "walltime", "total time", "time taken", "execution time",
                 "completion time", "makespan", "time", "seconds", "total operation time", "test duration", "exec time",
                 "time taken for tests", "t", "t1", "tn", "tp", "ts", "t 1", "t n", "t p"),
    "operations": ("operations", "ops", "requests", "reqs", "transactions", "txns", "queries", "events", "cycles",
                   "total ops", "operation count", "request count", "op count", "total operations", "total requests",
                   "complete requests", "requests completed", "transactions processed",
                   "transactions actually processed", "total queries", "total events", "http reqs", "iterations",
                   "sent", "issued", "attempts", "attempted"),
}  # fmt: skip
"""Numbers that follow from others of their row, and these others; the rest of the heading is a quantity."""
COUNTED: Final[Mapping[str, frozenset[str]]] = {
    "failure": frozenset(("errors", "error", "failures", "failure", "failed", "fails", "ko", "failed requests")),
    "success": frozenset(("ok", "successes", "success", "succeeded", "successful", "passed", "pass")),
    "hit": frozenset(("hits", "hit")), "miss": frozenset(("misses", "miss")),
    "timeout": frozenset(("timeouts", "timeout")), "loss": frozenset(("lost", "loss", "losses", "dropped", "drops")),
}  # fmt: skip
"""Parts of a count, by the words of the part and of its share: `errors` and `error rate`."""
RUNS: Final = frozenset(("runs", "trials", "repetitions", "reps", "replicates", "repeats", "n runs", "number of runs"))
"""Counts of values where these are one a run, which percentiles of operations are not."""
LEVELS: Final[frozenset[str]] = frozenset((
    "size", "rf", "replication factor", "replicas", "run", "trial", "seed", "year", "version", "id", "index", "line",
    "table", "step", "iteration", "round", "block", "day", "date", "hour", "port", "target", "target rate",
    "target throughput", "target qps", "offered load", "load", "load percent", "rate", "concurrency", "parallelism",
    "connections", "record count", "records", "rows", "fields", "partitions", "clients", "users", "vus", "user count",
    "read share", "read percent", "ram", "document", "input", "factor", "level", "phase", "replicate", "repetition",
    "batch", "batch size", "value size", "row", "case", "group", "test", "scale", "scale factor", "warehouses",
))  # fmt: skip
"""Numbers that identify a row and are not results."""
WORKERS: Final[frozenset[str]] = frozenset((
    "nodes", "node", "threads", "thread", "cores", "core", "processors", "processor", "procs", "proc", "processes",
    "workers", "worker", "servers", "machines", "cpus", "instances", "ranks", "gpus", "executors", "shards", "tasks",
    "cluster size", "node count", "nodes count", "n nodes", "n threads", "n cores", "hosts",
))  # fmt: skip
"""Levels by which a speed-up is divided to give an efficiency."""
SIDES: Final = (("_baseline", "_treatment"), ("_before", "_after"), ("_1", "_2"))
"""Endings of the two groups of a comparison: `mean_before`, `mean_after`."""
SIDE_OF: Final = {ending[1:]: ending for both in SIDES for ending in both}

TIME_S: Final = {
    **dict.fromkeys(("ns", "nanos", "nsec", "nanoseconds"), 1e-9),
    **dict.fromkeys(("us", "usec", "usecs", "micros", "microseconds", "microsec"), 1e-6),
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "milliseconds", "millisec"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "seconds", "second"), 1.0),
    **dict.fromkeys(("m", "minutes", "mins", "minute"), 60.0), **dict.fromkeys(("h", "hours", "hrs", "hour"), 3600.0),
}  # fmt: skip
"""Units of time in seconds. `min` is none of them alone: it is a minimum too."""
SCALES: Final = {"k": 1e3, "thousand": 1e3, "thousands": 1e3, "million": 1e6, "millions": 1e6, "mio": 1e6}
OTHER_UNITS: Final = frozenset(("b", "bytes", "byte", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "mbit", "kbit",
                                "gbit", "w", "kw", "j", "kj", "c"))  # fmt: skip
PERCENT: Final = frozenset(("%", "percent", "pct"))
SCALING: Final = frozenset(("", "weak", "strong", "parallel", "scaling", "weak scaling", "strong scaling"))
"""Words next to a speed-up or an efficiency that leave it one."""
RATED: Final = frozenset(("op", "ops", "operations", "operation", "req", "reqs", "request", "requests",
                          "query", "queries", "transactions", "transaction", "tx", "txn", "txns",
                          "msg", "msgs", "messages", "events", "cnt", "iterations", "calls",
                          "io", "ios", "tps", "qps", "http"))  # fmt: skip
"""Words for counted things in a rate, without further meaning."""
ONLY_LAST: Final = frozenset(("s", "m", "h", "b", "w", "j", "c", "k"))
"""Letters that are a unit only in brackets or at the end after another word."""
NOISE: Final = frozenset(("of", "the", "in", "number", "no", "num", "nr", "value", "values", "total", "overall", "per",
                          "line", "ile", "percentile", "latency", "latencies", "lat", "response", "resp", "time", "rt",
                          "times", "delay", "req", "request", "all", "and", "measured", "observed", "achieved",
                          "actual", "for", "result", "results", "est", "approx"))  # fmt: skip
"""Words that leave the quantity what it is. A latency is a duration, and what most tables have."""
OF_A_WAIT: Final = frozenset(("latency", "latencies", "lat", "response", "resp", "rt", "delay", "percentile", "ile"))
UNSURE: Final = re.compile(
    r"\b(ci\d*|confidence|interval|trimmed|geometric|geomean|harmonic|weighted|moving|winsori[sz]ed|predicted|expected"
    r"|bootstrap|margin)\b|\+\s*/?\s*-|±"
)
"""Words that make another statistic of one that they accompany."""

_PERCENT = r"(?:percentiles?|perc|pctl|pctile|pct|%-?\s?t?ile|%|line|percent)"
_NUMBER = r"(\d{1,3}(?:\.\d+|_(?:9+|5|95)(?![0-9]))?)"
_PERCENTILES: Final = (
    re.compile(r"(?<![a-z0-9])(?:tp|p|pct|perc|percentile|pctl|pctile|quantile|prctile)[\s_.(=-]*"
               r"(\d{1,3}(?:[.]\d+|_(?:9+|5|95)(?![0-9]))|\d{1,6})(?![0-9.])\s*\)?(?:st|nd|rd|th)?"),
    re.compile(rf"(?<![a-z0-9.]){_NUMBER}[\s_-]*(?:st|nd|rd|th)[\s_-]*{_PERCENT}(?![a-z0-9])"),
    re.compile(rf"(?<![a-z0-9.]){_NUMBER}[\s_-]*(?:percentiles?|pctl|pctile|%[-\s]?t?ile|%\s*line)(?![a-z0-9])"),
    re.compile(r"(?<![a-z0-9.])(\d{1,3}\.\d+)th(?![a-z0-9])"),
)  # fmt: skip
"""Patterns that can only be a percentile: `p99.9`, `99.9th percentile`, `99.9th`, `99 percentile`, `90% Line`."""
_OPEN: Final = re.compile(rf"(?<![a-z0-9.]){_NUMBER}(?:[\s_-]*(?:%|pct|perc)|(st|nd|rd|th))(?![a-z0-9])")
"""A percentile or something else: `99%`, `99 pct` and `99th`, but `load 50%`, `CPU 95%` and `1st run`."""
LEAST_ORDINAL: Final = 5
"""Below it, `2nd` alone is the second of something."""
_WAITS: Final = OF_A_WAIT | {"time", "times", "duration", "durations", "elapsed", "wait", "rtt", "clat", "slat"}
_BESIDE: Final = _WAITS | (TIME_S.keys() - {"m", "h"})
"""Words next to which `99%` is a percentile."""
_QUARTILE: Final = re.compile(
    r"(?<![a-z0-9])(?:x?(1st|first|lower|2nd|second|middle|3rd|third|upper)[\s_.-]*(?:quartile|quart|qu|q)"
    r"|(?:quartile|quart|qu)[\s_.-]*([123]))(?![a-z0-9])\.?"
)
"""`first quartile`, and as R writes it: `1st Qu.`, or `X1st.Qu.` once it is the name of a column."""
_QUARTILES: Final = {
    **dict.fromkeys(("1st", "first", "lower", "1"), "q1"), **dict.fromkeys(("2nd", "second", "middle", "2"), "median"),
    **dict.fromkeys(("3rd", "third", "upper", "3"), "q3"),
}  # fmt: skip
_NUMBERED: Final = re.compile(r"(?<![a-z0-9])([pq]?)(\d{1,3})(?:st|nd|rd|th)?(?![a-z0-9.])")
_QUANTILE: Final = re.compile(r"(?<![a-z0-9])(?:q|quantile)[\s_=\"'-]*(0?\.\d+|[01]\.\d+|\d{2})(?![0-9])[\"']?")
_BARE: Final = re.compile(r"\.\d{1,5}")
"""cassandra-stress: `.95`, `.999`."""


class Heading(NamedTuple):
    """Content of a column."""

    statistic: str
    """The audit's name of the number; "" if it is not known."""
    quantity: str = ""
    """The summarised quantity, without words that do not change it: `read` of `read latency`."""
    dimension: str = ""
    """`time`, `rate`, `percent`, or another unit; "" if nothing says it."""
    scale: float = 1.0
    """Unit of time in seconds, or the power of ten of a count or rate."""
    side: str = ""
    """Ending of its group in a comparison."""

    @property
    def known(self) -> bool:
        """Whether the statistic is known."""
        return bool(self.statistic)


def percentile_name(fraction: float) -> str:
    """The audit's name of a percentile: `p99.9`, and `median` for 0.5."""
    share = round(100 * fraction, 9)
    return {0.0: "min", 25.0: "q1", 50.0: "median", 75.0: "q3", 100.0: "max"}.get(share, f"p{share:.9g}")


def _percentile(text: str) -> str:
    """The audit's name of these digits: `99.9`, `99_9` and `999` are one; "" if they are not a percentile."""
    text = text.replace("_", ".")
    if "." not in text and len(text) > 2 and text != "100":
        text = f"{text[:2]}.{text[2:]}" if text[0] in "90" else "999"
    share = float(text)
    return percentile_name(share / 100) if share <= 100 else ""


def percentile_labels(texts: Sequence[str]) -> list[str]:
    """The names of a column of percentiles: fractions where none is above 1. What is not a number stays as it is."""
    plain = [text.replace(",", ".") for text in texts]
    values = [float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None for text in plain]
    known = [value for value in values if value is not None]
    factor = 100 if any(0 < value < 1 for value in known) and max(known) <= 1 else 1
    return [text if value is None else f"p{round(factor * value, 9):.12g}"
            for text, value in zip(texts, values, strict=True)]  # fmt: skip


def numbered(labels: Iterable[str]) -> set[str]:
    """Labels that number runs, queries or phases: `5th` with `3rd` and `4th`, `Q2` with `Q4`, `P1` to `P3`. A row
    of every percentile from 1 to 99 is none."""
    series: dict[tuple[str, str, str], dict[int, str]] = {}
    for label in labels:
        plain = _plain(label)
        if match := _NUMBERED.search(plain):
            series.setdefault((match[1], plain[: match.start()], plain[match.end() :]), {})[int(match[2])] = label
    return {
        label for (letter, _, _), them in series.items() for label in them.values()
        if {3, 2 if letter == "p" else 4} <= them.keys() and (letter == "q" or max(them) < 90)
    }  # fmt: skip


def unit_of(text: str) -> str:
    """The unit in a heading whose words say nothing else: in brackets, or after the last underscore or blank."""
    plain, unit = _bracketed_unit(_plain(text))
    words = re.split(r"(?<=\w)[\s_]+", plain.strip())
    return unit or (words[-1] if words[-1] not in ONLY_LAST or plain.strip().endswith(f"_{words[-1]}") else "")


def _phrases(tables: Iterable[Mapping[str, tuple[str, ...]]]) -> dict[tuple[str, ...], str]:
    return {tuple(phrase.split()): name for table in tables for name, them in table.items() for phrase in them}


_SUMMARY_OF: Final = _phrases((SUMMARIES,))
_WHOLE_OF: Final = _phrases((WHOLE, SUMMARIES))
_ROLE_OF: Final = _phrases((ROLES,))
_LONGEST: Final = max(len(phrase) for phrase in (*_WHOLE_OF, *_ROLE_OF))
_OPERATION_WORDS: Final = frozenset(
    ("request", "operation", "transaction", "query", "op", "req", *(w for p in ROLES["operations"] for w in p.split()))
) - {"total", "count", "actually", "processed", "complete", "completed"}
KNOWN: Final = tuple(" ".join(phrase) for phrase in (*_WHOLE_OF, *_ROLE_OF))
"""Every phrase, for hints."""


@lru_cache(maxsize=4096)
def read(text: str, *, summarised: bool = False) -> Heading:
    """The heading of a column, or the name of a statistic in a long table. `summarised`: whatever it is about, `99%` is
    a percentile of it, because the table has other statistics of the same."""
    plain = _plain(text)
    return Heading("") if UNSURE.search(plain) else _read_plain(plain, summarised)


def _read_plain(plain: str, summarised: bool) -> Heading:
    plain, unit = _bracketed_unit(plain)
    plain, share = _take_percentile(plain, summarised)
    tokens, side = _side(re.findall(r"[a-z]+\d?(?![a-z0-9])|[a-z]+|\d+(?:\.\d+)?|%|#|/", plain), share is not None)
    rate, tokens, unit = _rate([word for word in tokens if word not in ("reported", "printed")], unit)
    whole = None if share else _WHOLE_OF.get(tuple(tokens))
    if not whole:
        tokens, unit = _trailing_unit(tokens, unit, share is not None)
        whole = None if share else _WHOLE_OF.get(tuple(tokens))
    dimension, scale = _measured_in(unit, rate)
    if whole:
        percent = whole == "share" and PERCENT & set(tokens)
        name = "" if rate and whole not in SUMMARIES else _of_cv(whole, unit)
        return Heading(name, "", "percent" if percent else dimension, scale, side)
    if share is None and " ".join(tokens) in RUNS:
        return Heading("count", "runs", dimension, scale, side)
    statistics, rest = _summaries(tokens)
    statistics = _count_of_a_count([*statistics, *([share] if share else [])])
    if len(set(statistics)) > 1:
        return Heading("")
    if statistics and not (statistics[0] == "count" and _part(rest)):
        return _summary(_of_cv(statistics[0], unit), rest, rate, dimension, scale, side)
    return _without_statistic(tokens, rest, rate, Heading("", "", dimension, scale, side))


def _plain(text: str) -> str:
    """Lower case, one form of each character, words of camelCase apart."""
    text = unicodedata.normalize("NFKC", text.replace("\ufeff", "").replace("μ", "µ")).replace("μ", "µ").strip()
    text = re.sub(r"µ\s*(?=s)", "u", text)
    text = text.replace("µ", " mean ").replace("σ", " sd ").replace("x\u0304", " mean ").replace("×", "x")
    text = re.sub(r"(?<=[a-z])(?=[A-Z][a-z0-9])|(?<=[a-z0-9)])(?=[A-Z][a-z])|(?<=[a-z]{2})(?=[A-Z]{2,}\b)", " ", text)
    text = re.sub(r"(?<=\d),(?=\d)", ".", text)  # p99,9
    text = re.sub(r"\b[pP]\s*\(\s*([\d.]+)\s*\)", r"p\1", text)
    return text.lower().replace("speed-up", "speedup")


def _bracketed_unit(text: str) -> tuple[str, str]:
    """The text without a unit in brackets, and that unit."""
    for match in re.finditer(r"[(\[{<]\s*([^()\[\]{}<>]*?)\s*[)\]}>]", text):
        inner = match[1].strip().replace("-", " ").removeprefix("in ")
        if inner in TIME_S or inner in SCALES or inner in OTHER_UNITS or inner in PERCENT:
            return text[: match.start()] + " " + text[match.end() :], inner
        if re.fullmatch(r"(?:[kmg]i?b|bytes|[kmg]?bits?)\s*(?:/|per\s)\s*\w+", inner):
            return text[: match.start()] + " " + text[match.end() :], "bytes"
    return text, ""


def _take_percentile(text: str, summarised: bool) -> tuple[str, str | None]:
    """The text without its percentile, and the name of that; None without one."""
    if _BARE.fullmatch(text.strip()):
        return "", percentile_name(float(text))
    for match, name in _percentiles_in(text, summarised):
        if name:
            return text[: match.start()] + " " + text[match.end() :], name
    return text, None


def _percentiles_in(text: str, summarised: bool) -> Iterator[tuple[re.Match[str], str]]:
    """Each way to read a percentile, the surest first, and its name; "" where it is none."""
    if match := _QUARTILE.search(text):
        yield match, _QUARTILES[match[1] or match[2]]
    if "quartile" in text:
        return
    if match := _QUANTILE.search(text):
        share = float(match[1])
        yield match, percentile_name(share if share <= 1 and "." in match[1] else share / 100)
    for pattern in _PERCENTILES:
        if match := pattern.search(text):
            yield match, _percentile(match[1])
    match = _OPEN.search(text)
    if match and (summarised or _of_waits(text[: match.start()], text[match.end() :])):
        placed = match[2] and float(match[1].replace("_", ".")) < LEAST_ORDINAL
        yield match, "" if placed else _percentile(match[1])


def _of_waits(before: str, after: str) -> bool:
    """Whether `99%` between these is alone, or next to a word for a time that something took."""
    left, right = re.search(r"([a-z0-9]+)[^a-z0-9]*$", before), re.match(r"[^a-z0-9]*([a-z0-9]+)", after)
    return (not left or left[1] in _BESIDE) and (not right or right[1] in _BESIDE or right[1] in SIDE_OF)


def _side(tokens: list[str], named: bool) -> tuple[list[str], str]:
    """The words without the group of a comparison, and its ending. `named`: they had a percentile."""
    if tokens and not named and len(tokens) == 1 and tokens[0] in SIDE_OF and not tokens[0].isdigit():
        return [], SIDE_OF[tokens[0]]
    if len(tokens) + named > 1:
        for at in (len(tokens) - 1, 0):
            ending = SIDE_OF.get(tokens[at])
            if ending and (at or named or not ending[1].isdigit()):
                return tokens[:at] + tokens[at + 1 :], ending
        for at, word in enumerate(tokens):
            if word in SIDE_OF and not word.isdigit():
                return tokens[:at] + tokens[at + 1 :], SIDE_OF[word]
        if re.fullmatch(r"[a-z]{4,}[12]", tokens[-1]):
            return [*tokens[:-1], tokens[-1][:-1]], f"_{tokens[-1][-1]}"
    return tokens, ""


def _rate(tokens: list[str], unit: str) -> tuple[bool, list[str], str]:
    """Whether it is a rate (`ops/s`, `requests per second`), the words without it, and the scale of the rate."""
    for at, word in enumerate(tokens[:-1]):
        if word in ("/", "per") and tokens[at + 1] in TIME_S:
            noun = tokens[at - 1] if at else ""
            scale = next((letter for letter in "km" if noun[:1] == letter and noun[1:] in RATED), "")
            kept = tokens[: at - 1] if noun in RATED or scale else tokens[:at]
            per = "" if TIME_S[tokens[at + 1]] == 1.0 else f"/{tokens[at + 1]}"
            if kept and kept[-1] == "k":
                kept, scale = kept[:-1], "k"
            return True, kept + tokens[at + 2 :], scale + per or unit
    return False, [word for word in tokens if word != "/"], unit


def _trailing_unit(tokens: list[str], unit: str, named: bool) -> tuple[list[str], str]:
    """The words without a unit among them: the last one, or an unmistakable one. `named`: they had a percentile."""
    if unit or not tokens:
        return tokens, unit
    for at in range(len(tokens) - 1, -1, -1):
        word = tokens[at]
        if word not in TIME_S and word not in OTHER_UNITS and word not in SCALES and word not in PERCENT:
            continue
        if len(tokens) + named > 1 and (word not in ONLY_LAST or at == len(tokens) - 1):
            return tokens[:at] + tokens[at + 1 :], word
    return tokens, unit


def _measured_in(unit: str, rate: bool) -> tuple[str, float]:
    letter, _, per = unit.partition("/")
    scale = {"k": 1e3, "m": 1e6}.get(letter, 1.0) / TIME_S.get(per, 1.0)
    if rate:
        return "rate" if unit not in OTHER_UNITS else "bandwidth", scale
    if unit in TIME_S:
        return "time", TIME_S[unit]
    if unit in SCALES:
        return "", SCALES[unit]
    return ("percent" if unit in PERCENT else unit), 1.0


def _of_cv(name: str, unit: str) -> str:
    return "cv_percent" if name == "cv" and unit in PERCENT else name


def _summaries(tokens: list[str]) -> tuple[list[str], list[str]]:
    """Every statistic among the words, longest phrases first, and the other words."""
    names, rest, at = [], [], 0
    while at < len(tokens):
        for length in range(min(_LONGEST, len(tokens) - at), 0, -1):
            phrase = tuple(tokens[at : at + length])
            name = _SUMMARY_OF.get(phrase)
            if name and not (phrase in (("n",), ("s", "d")) and len(tokens) > length and at):
                names.append(name)
                at += length
                break
        else:
            rest.append(tokens[at])
            at += 1
    return names, rest


def _count_of_a_count(statistics: list[str]) -> list[str]:
    """`number of samples`, `# samples`, `sample count`: one count; of `max count` not the count."""
    others = [name for name in statistics if name != "count"]
    return others if others and statistics[0] != "count" else statistics


def _part(words: Iterable[str]) -> str:
    """The kind of part that the words name: `failure` of `failed requests`."""
    words = set(words)
    return next((kind for kind, them in COUNTED.items() if words & them), "")


def _quantity(words: Iterable[str]) -> str:
    return " ".join(word for word in words if word not in NOISE and word != "#")


def _summary(name: str, rest: list[str], rate: bool, dimension: str, scale: float, side: str) -> Heading:
    """A statistic of a group of values."""
    quantity = _quantity(rest)
    if name == "count" and set(rest) & _OPERATION_WORDS:
        left = " ".join(word for word in rest if word not in _OPERATION_WORDS)
        return Heading("operations", _quantity(left.split()), dimension, scale, side)
    if name == "count" and quantity in WORKERS | LEVELS:
        return Heading("workers" if quantity in WORKERS else "level", "", dimension, scale, side)
    if rate or _role_in(rest) == "throughput":
        words = [word for word in rest if word not in ("throughput", "tput", "thruput", "xput")]
        return Heading(name, _quantity(words), dimension or "rate", scale, side)
    if not dimension and OF_A_WAIT & set(rest):
        dimension = "latency"
    if name == "min" and _role_in(rest) == "duration" and not OF_A_WAIT & set(rest):
        return Heading("")  # minutes, or a minimum
    return Heading(name, quantity, dimension, scale, side)


def _role_in(words: list[str]) -> str:
    return next(_roles_in(words), ("", 0, 0))[0]


def _roles_in(words: list[str]) -> Iterator[tuple[str, int, int]]:
    """Roles among the words with start and length, longest phrases first."""
    for length in range(min(_LONGEST, len(words)), 0, -1):
        for at in range(len(words) - length + 1):
            if name := _ROLE_OF.get(tuple(words[at : at + length])):
                yield name, at, length


def _without_statistic(tokens: list[str], rest: list[str], rate: bool, heading: Heading) -> Heading:
    """A number that others follow from, that follows from others, or that identifies the row."""
    words = [word for word in tokens if word not in ("#", "number", "of", "no", "num")]
    text, kind = " ".join(words), _part(words)
    if kind:
        return _part_or_share(words, kind, rate, heading)
    if words[:1] == ["target"] or tokens[:1] == ["offered"] or (text in LEVELS and not rate):
        return heading._replace(statistic="level", quantity=text)
    if rate:
        left = _quantity(word for word in rest if word not in ("throughput", "tput", "rate", "thruput"))
        return heading._replace(statistic="" if heading.dimension == "bandwidth" else "throughput", quantity=left)
    if len(words) == 1 and words[0] in TIME_S:
        return heading._replace(statistic="duration", dimension="time", scale=TIME_S[words[0]])
    if text in WORKERS:
        return heading._replace(statistic="workers")
    return _role(words, heading)


def _part_or_share(words: list[str], kind: str, rate: bool, heading: Heading) -> Heading:
    shares = {"rate", "ratio", "share", "percentage", "fraction", "proportion", *PERCENT}
    if rate or set(words) - COUNTED[kind] - shares - NOISE - _OPERATION_WORDS - {"count", "cache"}:
        return heading._replace(statistic="", quantity=" ".join(words))
    is_share = bool(shares & set(words)) or heading.dimension == "percent"
    return heading._replace(statistic="share" if is_share else "part", quantity=kind)


def _role(words: list[str], heading: Heading) -> Heading:
    for name, at, length in _roles_in(words):
        left = " ".join(word for word in words[:at] + words[at + length :] if word not in ("total", "overall", "the"))
        timed = name == "duration" and not OF_A_WAIT & set(words) and heading.dimension in ("", "time")
        counted = name in ("throughput", "operations") and heading.dimension in ("", "rate")
        if timed or counted or (name in ("speedup", "efficiency") and left in SCALING):
            return heading._replace(statistic=name, quantity=left)
        break
    if not words and heading.dimension in ("time", "percent"):
        return heading._replace(statistic="duration" if heading.dimension == "time" else "share")
    return heading._replace(statistic="value" if heading.side else "", quantity=" ".join(words))
