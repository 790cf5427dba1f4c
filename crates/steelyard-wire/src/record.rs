//! Records: what `load` and `probe` print, one JSON object per line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One line of output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// First line.
    Hello(Hello),
    /// Connections are established.
    Connected(Connected),
    /// One interval of one phase.
    Interval(Interval),
    /// End of a phase.
    Done(Done),
    /// The first operation was sent to a node that was not there at first.
    Routed(Routed),
    /// What an engine does whose operations take minutes; the agent prints none.
    Doing(Doing),
    /// One reading of a probe.
    Sample(Sample),
    /// Why the agent gave up.
    Error(Failure),
}

/// First line of every command that prints records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the wire: `FORMAT`.
    pub format: u32,
    /// Version of the agent.
    pub agent: String,
    /// Whether the program was built with optimisation.
    pub optimised: bool,
    /// Seconds since the epoch by this node's clock when the line was written.
    pub t_s: f64,
}

/// Connections are open and statements are prepared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connected {
    /// `address:port` of the nodes.
    pub nodes: Vec<String>,
    /// Contacts that do not answer, with the cause of each: `10.0.0.9:9042 refused the connection`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    /// Connections of all worker threads.
    pub connections: u32,
    /// Version that the first node gives.
    pub server: String,
}

/// Counts of one interval of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// `populate`, `warm-up`, `measure`, or the phase's name in the order.
    pub phase: String,
    /// Beginning of the interval, seconds since the epoch.
    pub t_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Operations sent.
    pub sent: u64,
    /// Operations ended, errors included.
    pub done: u64,
    /// Operations ended in an error.
    pub errors: u64,
    /// Operations that were due and will never be sent: neither done nor failed (open loop).
    #[serde(default)]
    pub unsent: u64,
    /// Rows in answers, by operation: scans of YCSB, everything of a program; of batches with `select` those that were written.
    /// Operations without rows are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rows: BTreeMap<String, u64>,
    /// Keys of operations that draw each of theirs and ended well, by operation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, u64>,
    /// Operations due but not yet sent at the end of the interval (open loop).
    pub backlog: u64,
    /// CPU time of this process over the interval's length.
    pub cpu_fraction: f64,
    /// Live figures for people; analysis uses `counts`.
    pub summary: Summary,
    /// Histograms of the interval.
    pub counts: Vec<Counts>,
}

/// Live figures of an interval, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Operations ended per second.
    pub rate_per_s: f64,
    /// Median of response times, milliseconds.
    pub response_ms_p50: f64,
    /// 99th percentile of response times, milliseconds.
    pub response_ms_p99: f64,
    /// Median of service times, milliseconds.
    pub service_ms_p50: f64,
    /// 99th percentile of service times, milliseconds.
    pub service_ms_p99: f64,
    /// 99th percentile of the generator's own delay, milliseconds.
    pub pacing_ms_p99: f64,
}

/// A histogram as a table of its occupied buckets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// `read`, `update`, `insert`, `scan`, `read-modify-write`, or what the program calls it. The steps of an operation that has
    /// several are counted under their own names (`read` and `update`; a program's statements, of a batch joined by `+`) with the
    /// measure `part`, which is no operation of its own.
    pub operation: String,
    /// `ok`, `not-found`, `not-applied`, or the kind of error: `timeout`, `unavailable`, `read-timeout`, `write-timeout`,
    /// `overloaded`, `connection`, `server`, `invalid`.
    pub outcome: String,
    /// `response` (done - due), `service` (done - sent), `lag` (sent - due), `pacing` (sent - the later of due and a place in
    /// flight being free: the generator's own delay), `part` (service time of one step of several).
    pub measure: String,
    /// `[low_ns, high_ns, count]`, both bounds inclusive.
    pub buckets: Vec<(u64, u64, u64)>,
}

/// The end of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// As in `Interval`.
    pub phase: String,
    /// First operation sent, seconds since the epoch.
    pub first_sent_s: f64,
    /// Last operation answered or given up.
    pub last_done_s: f64,
    /// last done - first sent.
    pub execution_ns: u64,
    /// Answered without error, not-found and not-applied included.
    pub operations: u64,
    /// Operations ended in an error.
    pub errors: u64,
    /// The same by kind; kinds without errors are left out.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Operations that were due and never sent: neither done nor failed (open loop).
    #[serde(default)]
    pub unsent: u64,
    /// Error messages from servers, by kind: the first few distinct texts of each, with the protocol's code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub error_texts: BTreeMap<String, Vec<String>>,
    /// Reads without a row for keys that the fill has written. Keys that the load itself inserts are left out: their insert may
    /// have failed, or still be in flight; they are in the counts as `not-found`.
    pub not_found: u64,
    /// Rows returned by scans, and by all operations of a program.
    pub rows: u64,
    /// User and system time of this process in the phase.
    pub cpu_ns: u64,
    /// CPU time of the busiest thread over the phase's length.
    pub busiest_thread_fraction: f64,
    /// Records that could not be written: must be zero.
    pub dropped: u64,
    /// Connections that were lost and established again.
    pub reconnections: u64,
    /// Rate that the places in flight allow at the phase's mean service time, for this process (Little's law); None for a
    /// closed loop, and where nothing was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carries_per_s: Option<f64>,
}

/// The first operation that was sent to a node which has joined since the load began; once a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Routed {
    /// When, seconds since the epoch.
    pub t_s: f64,
    /// The node's `address:port`.
    pub contact: String,
}

/// What an engine does whose operations take minutes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doing {
    /// In words.
    pub what: String,
}

/// One reading of a probe; `values` are per-second rates, fractions or amounts as the metric's name says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the epoch.
    pub t_s: f64,
    /// Values by the metrics' names.
    pub values: BTreeMap<String, f64>,
}

/// Reason why the agent gave up: the laboratory's fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}
