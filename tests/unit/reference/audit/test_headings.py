"""Headings as papers and tools print them, each with what it means; what is ambiguous is not guessed."""

from __future__ import annotations

import pytest

from steelyard.reference.audit.headings import numbered, percentile_labels, read, unit_of

MEANINGS = [
    # pandas describe()
    ("count", "count"), ("mean", "mean"), ("std", "sd"), ("min", "min"), ("25%", "q1"), ("50%", "median"),
    ("95%", "p95"), ("99.9%", "p99.9"),
    # YCSB
    ("RunTime(ms)", "duration [time]"), ("Throughput(ops/sec)", "throughput [rate]"), ("Operations", "operations"),
    ("AverageLatency(us)", "mean [time]"), ("MinLatency(us)", "min [time]"),
    ("95thPercentileLatency(us)", "p95 [time]"),
    # cassandra-stress
    ("total ops", "operations"), ("op/s", "throughput [rate]"), ("med", "median"), (".95", "p95"), (".999", "p99.9"),
    ("latency 99.9th percentile", "p99.9 [latency]"), ("op rate", "throughput"), ("errors", "part of failure"),
    ("Total operation time", "duration"),
    # latte
    ("Mean resp. time [ms]", "mean [time]"), ("Throughput [op/s]", "throughput [rate]"), ("Cycles", "operations"),
    # wrk, hey, ab
    ("Latency Stdev", "sd [latency]"), ("Requests/sec", "throughput [rate]"), ("+/- Stdev", ""),
    ("Transfer/sec", "throughput of transfer [rate]"), ("Complete requests", "operations"),
    ("Failed requests", "part of failure"), ("Time taken for tests", "duration"),
    # k6, JMeter, Locust, Gatling
    ("p(95)", "p95"), ("# Samples", "count"), ("90% Line", "p90"), ("Error %", "share of failure [percent]"),
    ("Received KB/sec", " of received [bandwidth]"), ("Std. Dev.", "sd"), ("Request Count", "operations"),
    ("Median Response Time", "median [latency]"), ("Average Content Size", "mean of content size"),
    ("100%", "max"), ("50th pct", "median"), ("% KO", "share of failure [percent]"), ("Cnt/s", "throughput [rate]"),
    # pgbench, fio, sysbench
    ("tps", "throughput"), ("latency average", "mean [latency]"),
    ("number of transactions actually processed", "operations"), ("IOPS", "throughput"),
    ("clat_stdev_us", "sd of clat [time]"), ("clat_99.00th", "p99 of clat"), ("95th percentile:", "p95"),
    # papers and people
    ("P99", "p99"), ("99th", "p99"), ("perc_99", "p99"), ("percentile_99_9", "p99.9"), ("p999", "p99.9"),
    ("p99,9", "p99.9"), ("q50", "median"), ("q0.99", "p99"), ("Q1", "q1"), ("quantile=0.999", "p99.9"), ("tp99", "p99"),
    ("99%ile", "p99"), ("99 percentile", "p99"), ("P99.9 (µs)", "p99.9 [time]"), ("latency p99 (ms)", "p99 [time]"),
    ("read_p99_ms", "p99 of read [time]"), ("service_ms_p99", "p99 of service [time]"), ("p99 us", "p99 [time]"),
    ("avgLatencyMs", "mean [time]"), ("avg_latency_ms", "mean [time]"), ("std_dev", "sd"), ("stddev (ms)", "sd [time]"),
    ("Standard deviation", "sd"), ("σ", "sd"), ("μ", "mean"), ("CV (%)", "cv_percent [percent]"), ("SEM", "se"),
    ("IQR", "iqr"), ("third quartile", "q3"), ("N", "count"), ("#", "count"), ("samples", "count"),
    ("sample size", "count"), ("number of samples", "count"), ("runs", "count of runs"),
    ("mean_ms_before", "mean_before [time]"), ("latency_p99_1", "p99_1 [latency]"), ("n_2", "count_2"),
    ("before", "value_before"), ("throughput_per_s", "throughput [rate]"), ("kops/s", "throughput [rate]"),
    ("elapsed (s)", "duration [time]"), ("seconds", "duration [time]"), ("speed-up", "speedup"), ("Speedup", "speedup"),
    ("Parallel efficiency (%)", "efficiency [percent]"), ("share_percent", "share [percent]"),
    ("hit ratio", "share of hit"),
    ("error_rate", "share of failure"), ("total", "whole"), ("nodes", "workers"), ("cluster_size", "workers"),
    # R: summary(), after check.names too; Excel, Minitab and papers
    ("Min.", "min"), ("1st Qu.", "q1"), ("3rd Qu.", "q3"), ("X1st.Qu.", "q1"), ("latency.3rd.Qu.", "q3 [latency]"),
    ("1st quartile", "q1"), ("3rd quartile (ms)", "q3 [time]"), ("Quartile 1", "q1"), ("Lower Quartile", "q1"),
    ("upper quartile", "q3"), ("LQ", "q1"), ("UQ", "q3"), ("2nd Qu", "median"), ("1st Qu. before", "q1_before"),
    # a percentile by what stands beside it, or by its word
    ("latency 99%", "p99 [latency]"), ("99% latency", "p99 [latency]"), ("99th_ms", "p99 [time]"),
    ("99% (us)", "p99 [time]"),
    ("read latency 95th", "p95 of read [latency]"), ("response time 99%", "p99 [latency]"), ("99.9th", "p99.9"),
    ("1st percentile", "p1"), ("read 99%ile", "p99 of read"), ("latency_99th_before", "p99_before [latency]"),
    # ordinals and percentages of something else
    ("1st run", " of 1 st run"), ("2nd trial", " of 2 nd trial"), ("3rd", " of 3 rd"),
    ("10th request", " of 10 th request"),
    ("2nd run latency", " of 2 nd run latency"), ("CPU 95%", " of cpu 95 [percent]"),
    ("uptime 99.9%", " of uptime 99.9 [percent]"),
    ("load 50%", " of load 50 [percent]"), ("load 50 pct", " of load 50 [percent]"), ("top 1%", " of top 1 [percent]"),
    ("latency at load 50%", " of latency at load 50 [percent]"), ("95% load latency", " of 95 load latency [percent]"),
    # two statistics, another statistic, or a level
    ("mean of p99", ""), ("mean ± sd", ""), ("Mean (SD)", ""), ("95% CI", ""), ("trimmed mean", ""), ("min or max", ""),
    ("geometric mean", ""), ("50% reads", " of 50 reads [percent]"), ("cpu_percent", " of cpu [percent]"),
    ("duration_min", ""), ("value", " of value"), ("target rate", "level of target rate"), ("op", " of op"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "meaning"), MEANINGS)
def test_what_a_heading_means(text: str, meaning: str) -> None:
    heading = read(text)
    words = f"{heading.statistic}{heading.side}"
    words += f" of {heading.quantity}" if heading.quantity else ""
    assert words + (f" [{heading.dimension}]" if heading.dimension else "") == meaning


def test_there_are_many() -> None:
    assert len({text for text, _ in MEANINGS}) > 100


@pytest.mark.parametrize("share", ["50", "66", "75", "80", "90", "95", "98", "99", "99.9", "99.95", "99.99", "99.999"])
def test_every_form_of_a_percentile(share: str) -> None:
    """One statistic, however it is written, with any prefix and suffix."""
    plain, under = share.replace(".", ""), share.replace(".", "_")
    forms = [f"p{share}", f"P{share}", f"p({share})", f"{share}%", f"{share}th", f"{share}th percentile",
             f"{share} pct",
             f"{share}%ile", f"{share}% Line", f"pct_{share}", f"perc_{under}", f"percentile_{under}", f"p{under}",
             f"q0.{plain}", f"{share}. percentile".replace(". p", " p"), f"Percentile {share}"]  # fmt: skip
    if share[:2] == "99" or "." not in share:
        forms.append(f"p{plain}")
    (statistic,) = {read(form).statistic for form in forms}
    assert statistic == {"50": "median", "75": "q3"}.get(share, f"p{share}")
    for form in (
        f"p{share}_ms",
        f"latency_p{under}_us",
        f"read p{share} (ms)",
        f"p{share} [s]",
        f"LatencyP{plain[:2]}Ms",
    ):
        assert read(form).dimension == "time", form


@pytest.mark.parametrize(
    ("text", "scale"),
    [("p99 (µs)", 1e-6), ("p99 (μs)", 1e-6), ("p99_us", 1e-6), ("p99 [ns]", 1e-9), ("p99 in ms", 1e-3), ("p99, s", 1.0),
     ("duration (minutes)", 60.0), ("kops/s", 1e3), ("throughput (Mops/s)", 1e6), ("requests per minute", 1 / 60)],
)  # fmt: skip
def test_units(text: str, scale: float) -> None:
    assert read(text).scale == pytest.approx(scale)


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        ([f"{at}{end}" for at, end in zip(range(1, 8), ("st", "nd", "rd", *["th"] * 4), strict=True)], True),
        ([f"Q{at}" for at in range(1, 5)], True), ([f"q{at:02d}_s" for at in range(1, 23)], True),
        ([f"Q{at}" for at in range(1, 100)], True), (["P1 (s)", "P2 (s)", "P3 (s)"], True),
        (["Q1", "Q2", "Q3"], False), (["1st Qu.", "2nd Qu.", "3rd Qu."], False), (["5th", "25th", "95th"], False),
        ([f"p{at}" for at in range(1, 100)], False), (["p1", "p5", "p50"], False), (["p99", "p99.9", "p99.99"], False),
    ],
)  # fmt: skip
def test_runs_queries_and_phases_are_numbered(labels: list[str], named: bool) -> None:
    assert numbered(["mean", *labels, "max"]) == (set(labels) if named else set())


@pytest.mark.parametrize(
    ("texts", "names"),
    [(["0", "0.5", "0.999", "1.000"], ["min", "median", "p99.9", "max"]),
     (["0,5", "0,99", "1"], ["median", "p99", "max"]),
     (["0.1", "1", "50", "99.9", "100"], ["p0.1", "p1", "median", "p99.9", "max"]), (["1"], ["p1"]),
     (["p50", "99th", "max", "999"], ["median", "p99", "max", "p99.9"])],
)  # fmt: skip
def test_a_column_of_percentiles(texts: list[str], names: list[str]) -> None:
    assert [read(label).statistic for label in percentile_labels(texts)] == names


@pytest.mark.parametrize(
    ("text", "unit"),
    [("value_ms", "ms"), ("value (µs)", "us"), ("Value [in ms]", "ms"), ("valueMs", "ms"), ("value in ms", "ms"),
     ("value_s", "s"), ("host h", "")],
)  # fmt: skip
def test_the_unit_beside_a_value(text: str, unit: str) -> None:
    assert unit_of(text) == unit
