"""Support table of YCSB's properties: used, accepted without effect, or refused.

No other module decides this, so no property is silently ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from steelyard.dropin.ycsb.values import wrong
from steelyard.model.errors import StudyError

WORKLOADS = ("site.ycsb.workloads.CoreWorkload", "com.yahoo.ycsb.workloads.CoreWorkload")
DATABASES = ("site.ycsb.db.CassandraCQLClient", "com.yahoo.ycsb.db.CassandraCQLClient")

USED = frozenset(
    """
    workload db dotransactions recordcount operationcount insertstart insertcount threadcount target maxexecutiontime
    status status.interval label table fieldcount fieldnameprefix fieldlength minfieldlength fieldlengthdistribution
    readallfields writeallfields readproportion updateproportion insertproportion scanproportion
    readmodifywriteproportion requestdistribution hotspotdatafraction hotspotopnfraction exponential.percentile
    exponential.frac zeropadding insertorder minscanlength maxscanlength scanlengthdistribution
    core_workload_insertion_keep_going_on_error measurementtype measurement.interval measurement.histogram.verbose
    histogram.buckets timeseries.granularity hdrhistogram.percentiles hdrhistogram.fileoutput hdrhistogram.output.path
    reportlatencyforeacherror latencytrackederrors exporter exportfile hosts port cassandra.keyspace cassandra.username
    cassandra.password cassandra.readconsistencylevel cassandra.writeconsistencylevel cassandra.readtimeoutmillis
    cassandra.useSSL steelyard.seed steelyard.workers steelyard.tls.ca steelyard.tls.certificate steelyard.tls.key
    steelyard.tls.verify steelyard.tls.name """.split()  # noqa: SIM905 - one word a line would take two screens
)

NOTHING: Mapping[str, str] = {
    "cassandra.maxconnections": "there is one connection to each node for each worker of the agent",
    "cassandra.coreconnections": "there is one connection to each node for each worker of the agent",
    "cassandra.connecttimeoutmillis": "the agent waits 5 s for a connection, and tries lost ones again",
    "core_workload_insertion_retry_interval": "insertions are not tried again",
    "columnfamily": "tables of this binding have none",
    "debug": "there is no debug log",
    "discardscannedrecord": "only another binding reads it",
    "maxscanrate": "only another binding reads it",
    "measurement.trackjvm": "there is no JVM",
    "readallfieldsbyname": "columns are always named",
    "scanoptimelimit": "only another binding reads it",
    "spin.sleep": "the agent paces itself",
}
"""Accepted without effect; each is reported on standard error with the reason."""

ONLY_OFF: Mapping[str, tuple[str, str]] = {
    "cassandra.tracing": ("false", "we do not trace requests"),
    "core_workload_insertion_retry_limit": (
        "0",
        "insertions are not retried; with core_workload_insertion_keep_going_on_error=true the load continues, and "
        "loading once more fills what is missing",
    ),
    "dataintegrity": ("false", "we do not compare the values that are read with YCSB's"),
}
"""Accepted only with this value."""

REFUSED: Mapping[str, str] = {
    "fieldlengthhistogram": "lengths cannot come from a histogram file; fieldlengthdistribution: constant, uniform "
    "or zipfian",
    "measurement.raw.output_file": "individual operations are not kept, so there is no measurementtype raw",
    "measurement.raw.no_summary": "individual operations are not kept, so there is no measurementtype raw",
}


def check(properties: Mapping[str, str]) -> list[str]:
    """Messages about properties without effect. Raises StudyError for unsupported ones."""
    remarks: list[str] = []
    workload = properties.get("workload", WORKLOADS[0]).strip()
    if workload not in WORKLOADS:
        raise wrong("workload", workload, WORKLOADS, "this class is not supported")
    for name in sorted(properties):
        value = properties[name].strip()
        if name in USED:
            continue
        if name in NOTHING:
            remarks.append(f"{name}={value} means nothing here: {NOTHING[name]}")
        elif name in ONLY_OFF:
            off, why = ONLY_OFF[name]
            if value.lower() != off:
                raise wrong(name, value, (off,), why)
        else:
            raise _unknown(name, value)
    return remarks


def _unknown(name: str, value: str) -> StudyError:
    why = "we do not trace" if name.startswith("htrace.") else REFUSED.get(name)
    if why is not None:
        return StudyError(f"the property {name} is refused: {why}", "leave it out", key=name, read=value)
    near = difflib.get_close_matches(name, [*USED, *NOTHING, *ONLY_OFF], n=1, cutoff=0.75)
    hint = (
        f"did you mean {near[0]!r}?" if near else "not a property of the core workload or of the binding cassandra-cql"
    )
    return StudyError(f"the property {name} is refused: we do not have it", hint, key=name, read=value)
