"""Tables as tools and people write them: each with a slip, which is found, and put right, of which nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.reference.audit import csv_file, csv_input
from steelyard.reference.audit.finding import Audit
from steelyard.reference.audit.single_cell import Conventions
from steelyard.reference.printed import Rounding

FORMS = {
    "wide": ("op,count,mean,min,max,p95,p99\nread,4000,2.31,0.4,9.8,3.1,{}\n", "2.9", "3.9", "order"),
    "above max": ("op,count,mean,min,max,p95,p99\nread,4000,2.31,0.4,9.8,3.1,{}\n", "30", "9.1", "order"),
    "long": ("op,statistic,value\nread,n,4000\nread,p95,3.1\nread,p99,{}\nread,max,9.5\n", "2.9", "3.9", "order"),
    "long with units": ("metric,unit,value\nn,,50\nmean,ms,4.5\nmax,us,{}\n", "4100", "5100", "mean"),
    "describe": (",lat_ms,size\ncount,9,9\nmean,{},4\nstd,1,1\nmin,4,3\n50%,5,4\n95%,6,5\nmax,7,6\n", "9", "5", "mean"),
    "groupby": (",latency,latency,size\n,mean,max,mean\nop,,,\nread,{},4.0,1\nscan,3.0,4.0,1\n", "5.1", "3.1", "mean"),
    "merged": ("op,latency (ms),,throughput\n,p50,p99,mean\nread,5.5,{},10\n", "4.1", "6.1", "order"),
    "transposed": ("metric,read,update\np50 (ms),1.0,2.0\np95 (ms),3.0,4.0\np99 (ms),{},5.0\n", "2.0", "3.5", "order"),
    "mark and commas": ("\ufeffop;n;mean (ms);max (ms)\nread;1.000;{};2,90\nscan;2.000;1,00;2,90\n",
             "3,10", "2,10", "mean"),
    "mixed units": ("op,p50 [us],p99 [ms],max (s)\na,800,2.0,{}\n", "0.0012", "0.0032", "order"),
    "units in cells": ("host,Latency Avg,Latency Max\na,1.2ms,{}\n", "900us", "1.9ms", "mean"),
    "micro sign": ("op,p95 (µs),p99 (μs)\na,950,{}\n", "900", "990", "order"),
    "thousands": ('op,count,"mean, ms","max, ms"\nread,"10,000","{}","1,210.5"\n', "1,300.5", "1,100.5", "mean"),
    "thin blanks": ("op;count;mean;max\nread;10\u202f000;{};1\u00a0200\n", "1\u00a0300", "1\u00a0100", "mean"),
    "tabs": ("system\tp50\tp99\na\t5.0\t{}\n", "4.0", "6.0", "order"),
    "bars": ("system|p50|p99\na|5.0|{}\n", "4.0", "6.0", "order"),
    "excel": ("sep=;\nop;p50;p99\na;5,0;{}\n", "4,0", "6,0", "order"),
    "number sign": ("# Samples,Average,Median,99% Line,Max\n900,120,110,150,{}\n", "140", "300", "order"),
    "row numbers": ("#,system,n,mean,sd,min,max\n1,a,21,4.6,{},3.9,5.1\n2,b,21,4.6,0.4,3.9,5.1\n",
             "0.9", "0.4", "deviation"),
    "prefixes": ("metric,avg_latency_ms,stddev_latency_ms,min_lat_ms,max_lat_ms,count\nread,4.6,{},3.9,5.1,21\n",
                 "0.9", "0.4", "deviation"),
    "two counts": ("run,requests,count,p50,max,mean\n1,100000,10k,4.4,9.8,{}\n", "11.2", "5.0", "mean"),
    "two quantities": ("op,read_p99_ms,read_max_ms,write_p99_ms,write_max_ms\na,5.0,{},90.0,99.0\n",
             "4.0", "6.0", "order"),
    "no count": ("op,mean,sd,min,max\na,10.0,{},9.0,11.0\n", "5.0", "1.0", "deviation"),
    "runs": ("nodes,runs,mean_ms,sd_ms,min_ms,max_ms\n3,5,10.0,{},9.0,11.0\n", "1.3", "1.0", "deviation"),
    "twice": ("op,median,p50,max\na,5.0,{},9\n", "6.0", "5.0", "order"),
    "rate": ("operations,seconds,throughput_per_s\n1000,4.0,{}\n", "300", "250", "throughput"),
    "rate of a count": ("op,count,time_ms,ops/s\nread,1000,4000,{}\n", "300", "250", "throughput"),
    "rate in minutes": ("test,requests (k),time (min),throughput (kops/s)\na,60.0,1.00,{}\n",
             "1.3", "1.0", "throughput"),
    "series": ("total ops,op/s,mean,max,time\n1000,250,1,9,4.0\n3000,500,1,9,8.0\n6000,{},1,9,12.0\n", "600", "750",
               "throughput"),
    "speed-up": ("nodes,time_s,speedup\n1,1000,1.00\n5,200,{}\n", "4.00", "5.00", "speed-up"),
    "speed-up in a row": ("system,t1,tN,speed-up\na,1000,200,{}\n", "4.00", "5.00", "speed-up"),
    "speed-up of N": ("N,ops/s,speed up\n1,1000,1.0\n4,3200,{}\n", "2.2", "3.2", "speed-up"),
    "efficiency": ("nodes,time_s,speedup,efficiency\n1,1000,1.00,1.00\n4,270,3.70,{}\n", "0.98", "0.93", "efficiency"),
    "share": ("system,part,whole,share\na,19,48,{}\n", "41%", "40%", "share"),
    "share of what": ("name,answered,asked,percent\na,19,48,{}\n", "41", "40", "share"),
    "error rate": ("test,requests,errors,error rate\na,1000,20,0.020\nb,1000,25,{}\n", "0.035", "0.025", "share"),
    "share of a column": ("op,share,count\na,50.0,500\nb,30.0,300\nc,{},200\n", "25.0", "20.0", "share"),
    "part above whole": ("run,failed,total\na,{},48\n", "49", "19", "share"),
    "before and after": ("name,before,after,change %\na,100,120,{}\n", "35", "20", "percentage"),
    "hits and misses": ("workload,hits,misses,hit ratio\nA,80,20,{}\nB,70,30,0.70\n", "0.85", "0.80", "share"),
    "packets": ("client,sent,received,lost,loss %\na,1000,960,40,{}\n", "5.0", "4.0", "share"),
    "metrics of two groups": ("metric,baseline,treatment,change_percent\nmean,10.0,12.0,20\np99,20.0,25.0,{}\n",
                              "35", "25", "percentage"),
    "percentiles as rows": ("percentile,read (us),update (us)\n50,120,200\n95,400,380\n99.9,{},900\n", "390", "410",
                            "order"),
    "quantiles as rows": ("op,quantile,value\nread,0.5,120\nread,0.95,400\nread,0.999,{}\n", "390", "410", "order"),
    "series of two kinds": ("type,total ops,op/s,time\nread,500,250,2.0\nall,1000,500,2.0\nread,1500,500,4.0\n"
                            "all,3000,{},4.0\n", "1200", "1000", "throughput"),
    "overall of nodes": ("nodes,n,mean,sd\n1,10,5.0,1.0\n2,10,7.0,1.0\noverall,20,{},1.4\n", "9.0", "6.0",
                         "pooled mean"),
    "YCSB": ("[OVERALL], RunTime(ms), 4000\n[READ], Operations, 1000\n[READ], AverageLatency(us), 2310\n"
             "[READ], 95thPercentileLatency(us), 3100\n[READ], 99thPercentileLatency(us), {}\n",
             "2900", "4900", "order"),
    "gc of cassandra-stress": ("type,mean,.95,.99,max,gc: #,max ms\ntotal,1.2,2.2,{},9.9,1,3\n", "2.0", "3.2", "order"),
    "summary of R": ("Min.,1st Qu.,Median,3rd Qu.,Max.\n1,{},20,40,100\n", "30", "10", "order"),
    "summary of R, the mean": ("run,n,Min.,X1st.Qu.,Median,Mean,X3rd.Qu.,Max.\na,900,1,10,20,{},40,100\n",
                               "55", "30", "mean"),
    "describe in one line": ("op,size_mean,size_std,size_min,size_50%,size_90%\na,8,3,2,{},9\n", "9.9", "7", "order"),
    "quantiles to the end": ("quantile,value\n0.0,1\n0.5,20\n0.999,{}\n1.0,90\n", "95", "80", "order"),
    "percents below 1": ("percentile,ms,us\n0.1,3,5\n1,{},6\n50,20,50\n", "1", "4", "order"),
    "attempts": ("run,attempts,timeouts\na,100,{}\n", "150", "50", "share"),
    "requests that were sent": ("run,requests_sent,errors,lost\na,100,{},1\n", "150", "50", "share"),
    "errors apart": ("test,requests,errors,error rate\na,100,25,{}%\n", "30", "20", "share"),
    "errors among them": ("test,requests sent,errors,error rate\na,100,25,{}%\n", "20", "25", "share"),
    "errors and timeouts": ("test,requests,errors,timeouts,error rate\na,100,10,5,{}%\n", "18", "15", "share"),
    "success without errors": ("test,requests,errors,success rate\na,100,25,{}%\n", "70", "80", "share"),
    "fio": ("job,clat_mean_us,clat_99.00th,clat_99.90th,lat_mean_us\nseq,120,800,{},121\n", "700", "900", "order"),
}  # fmt: skip


def audited(folder: Path, text: str) -> Audit:
    path = folder / "t.csv"
    path.write_text(text, encoding="utf-8")
    return csv_input.audit(path, Conventions(), Rounding())


@pytest.mark.parametrize("form", FORMS)
def test_a_slip_is_found_in_every_form(tmp_path: Path, form: str) -> None:
    text, slip, right, kind = FORMS[form]
    assert {one.kind for one in audited(tmp_path, text.replace("{}", slip)).findings} == {kind}
    found = audited(tmp_path, text.replace("{}", right))
    assert found.findings == ()
    assert found.made[kind] >= 1


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("op,p50,p99,Laufzeit\na,1,2,7.5\nb,1,2,8.5\n", "Laufzeit"),
        ("op,p50,p99,mean of p99\na,1,2,3.1\n", "mean of p99"),
        ("op,p50,p99,cpu_percent\na,1,2,31\n", "cpu_percent"),
        ("op,p50,p99,throughput\na,1,2,31\n", "throughput"),
        ("op,mean_throughput,p50,p99,max\na,1000,1,2,3\n", "mean_throughput"),
        ("op,p50,p99,sd\na,1,2,31\n", "sd"),
        ("op,statistic,value\na,p50,1\na,p99,2\na,kurtosis,3\n", "kurtosis"),
        ("op,n,p50,p99,speedup\na,1,1,2,4\n", "speedup"),
    ],
)
def test_a_column_without_a_check_is_named(tmp_path: Path, text: str, column: str) -> None:
    found = audited(tmp_path, text)
    assert any(why.startswith(f"column {column!r}: ") for why in found.left_out), found.left_out
    assert found.findings == ()
    assert found.made


@pytest.mark.parametrize(
    ("heading", "numbers"),
    [
        ("1st run,2nd run,3rd run,mean (ms),max (ms)", "9.5,8.5,7.5,8.5,9.5"),
        ("1st,2nd,3rd,4th,5th,6th,p50,p99", "9.5,8.5,7.5,6.5,5.5,4.5,7.0,9.5"),
        ("median,p99,load 50%,CPU 95%,top 1%", "2.5,9.5,30.5,20.5,80.5"),
        ("p50 (ms),max (ms),latency at load 50% (ms),95% load latency (ms)", "2.5,9.5,30.5,20.5"),
        ("load max,load 50 pct,p50,p99", "9.5,19.5,2.5,9.5"),
        ("p50,p99,10th request,90th request", "2.5,9.5,30.5,20.5"),
        ("Q1,Q2,Q3,Q4,p50,p99", "9.5,8.5,7.5,6.5,1.5,2.5"),
        ("Q10,Q11,Q12,Q03,Q04,mean,max", "9.5,8.5,7.5,6.5,1.5,2.5,3.5"),
        ("P1,P2,P3,mean,max", "9.5,8.5,7.5,2.5,3.5"),
    ],
)
def test_ordinals_and_percentages_of_something_else_are_no_percentiles(
    tmp_path: Path, heading: str, numbers: str
) -> None:
    """As percentiles, they would contradict each other."""
    found = audited(tmp_path, f"system,{heading}\na,{numbers}\n")
    assert found.findings == ()
    assert sum(found.made.values()) == 1


def test_queries_as_rows_are_no_quartiles(tmp_path: Path) -> None:
    rows = "".join(f"Q{at:02d},{30 - at}.5,{40 - at}.5,{41 - at}.5\n" for at in range(1, 23))
    found = audited(tmp_path, f"query,Run,p50,p99\n{rows}")
    assert (found.findings, found.made) == ((), {"order": 22})


@pytest.mark.parametrize(("done", "failed"), [("requests", "timeouts"), ("Request Count", "Failure Count"),
                                              ("total ops", "errors"), ("operations", "lost")])  # fmt: skip
def test_what_failed_may_be_counted_apart(tmp_path: Path, done: str, failed: str) -> None:
    """As wrk does it; whether it was looked at is said."""
    found = audited(tmp_path, f"run,{done},{failed},p50,p99\na,100,150,1,2\n")
    assert found.findings == ()
    assert "share" not in found.made
    assert any(why.startswith(f"{failed}: {done} may not include") for why in found.left_out)


def test_a_number_of_its_own_in_every_row_is_no_name(tmp_path: Path) -> None:
    """Nor does it keep rows apart that one row pools."""
    rows = "size,n,mean,foo_ms\n1,10,5.0,1.5\n2,10,7.0,2.5\noverall,20,{},2.2\n"
    found = audited(tmp_path, rows.replace("{}", "9.0"))
    assert [(one.kind, one.cell) for one in found.findings] == [("pooled mean", {"size": "overall"})]
    assert audited(tmp_path, rows.replace("{}", "6.0")).findings == ()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('op,mean,max\na,"1,234","2,345"\n', 2, "'1,234' is not a number"),
        ("op;mean;max\na;1,5;2.5\n", 2, "'1,5' is not a number"),
        ("op,mean,max\na,1,5,2,5\n", 2, "5 fields where the heading has 3"),
        ("op,mean,max\na,5 apples,9\n", 2, "'5 apples' is not a number"),
        ("op,Mean (SD),mean,max\na,4.2 (0.3),4.2,oops\nb,4.2 (0.3),4.2,5\n", 2, "'oops' is not a number"),
    ],
)
def test_what_may_be_two_numbers_is_refused(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(csv_file.TableError) as caught:
        audited(tmp_path, text)
    assert (caught.value.line, words in caught.value.message) == (line, True), caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "nodes,runs,mean latency (ms),p50 latency (ms),max latency (ms)\n3,5,16.5,10.2,461\n",
        "nodes,n,mean ops/s,sd ops/s,mean latency (ms),max latency (ms)\n3,5,1000,50,16.5,461\n",
        "nodes,n,operations,mean latency (ms),p99 latency (ms),max latency (ms)\n3,5,20000,16.5,300,461\n",
    ],
)
def test_a_count_of_runs_is_not_the_number_of_operations(tmp_path: Path, text: str) -> None:
    """Of 5 values with a maximum of 461, the mean would be 92 at least."""
    found = audited(tmp_path, text)
    assert found.findings == ()
    assert found.made["mean"] >= 1
