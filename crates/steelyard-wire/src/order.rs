//! What the conductor asks of `steelyard-agent load`.

use serde::{Deserialize, Serialize};

/// One order: drive this workload against these contacts by this schedule until this stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    pub format: u32,
    /// `cql`.
    pub protocol: String,
    /// `address:port` of every node.
    pub contacts: Vec<String>,
    pub keyspace: String,
    pub table: String,
    /// Name of the key column.
    pub key: String,
    /// Names of the value columns.
    pub fields: Vec<String>,
    pub action: Action,
    pub workload: Workload,
    /// Seed of the operation stream.
    pub seed: u64,
    pub schedule: Schedule,
    pub stop: Stop,
    #[serde(default)]
    pub share: Share,
    /// Seconds of the same load before the measured phase.
    #[serde(default)]
    pub warm_up_s: f64,
    pub read_consistency: String,
    pub write_consistency: String,
    pub timeout_ms: u64,
    pub routing: Routing,
    pub interval_s: f64,
}

/// Fill the table with records 0..records, or drive the mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    Populate,
    Load,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// To a replica of the key.
    Token,
    /// To every node in turn.
    RoundRobin,
}

/// When operations are due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// Each of `threads` sends its next operation when the last is answered.
    Closed { threads: u32 },
    /// Evenly spaced; at most `in_flight` unanswered at once, the rest waits and is sent late, never skipped.
    Constant { rate_per_s: f64, in_flight: u32 },
    /// Exponential gaps with mean 1 / `rate_per_s`.
    Poisson { rate_per_s: f64, in_flight: u32 },
}

/// The first that is reached ends the phase. Operations, like a schedule's rate, are over all shares; `threads` and
/// `in_flight` are each process's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    #[serde(default)]
    pub operations: Option<u64>,
    #[serde(default)]
    pub duration_s: Option<f64>,
}

/// Which operations of the stream are this process's: those whose index modulo `of` is `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    pub index: u64,
    pub of: u64,
}

impl Default for Share {
    fn default() -> Self {
        Self { index: 0, of: 1 }
    }
}

/// YCSB's core workload as YCSB defines it; names follow its properties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// `ycsb`.
    pub kind: String,
    /// Number of records to fill: keys insert_start up to insert_start + records - 1. YCSB's recordcount is their end.
    pub records: u64,
    /// insertstart
    #[serde(default)]
    pub insert_start: u64,
    pub proportions: Proportions,
    pub request_distribution: RequestDistribution,
    /// fieldlength
    pub field_length: u32,
    /// minfieldlength
    #[serde(default = "one")]
    pub min_field_length: u32,
    pub field_length_distribution: LengthDistribution,
    pub insert_order: InsertOrder,
    /// zeropadding
    #[serde(default = "one")]
    pub zero_padding: u32,
    /// readallfields
    pub read_all_fields: bool,
    /// writeallfields
    pub write_all_fields: bool,
    /// minscanlength
    #[serde(default = "one")]
    pub min_scan_length: u32,
    /// maxscanlength
    pub max_scan_length: u32,
    pub scan_length_distribution: LengthDistribution,
    /// hotspotdatafraction
    #[serde(default = "default_hotspot_data")]
    pub hotspot_data_fraction: f64,
    /// hotspotopnfraction
    #[serde(default = "default_hotspot_operations")]
    pub hotspot_operation_fraction: f64,
    /// exponential.percentile
    #[serde(default = "default_exponential_percentile")]
    pub exponential_percentile: f64,
    /// exponential.frac
    #[serde(default = "default_exponential_fraction")]
    pub exponential_fraction: f64,
    /// Keys that the zipfian key space reserves for inserts; None: operations x insert share x 2, as YCSB.
    #[serde(default)]
    pub expected_new_keys: Option<u64>,
    /// Requests see only keys inserted more than so many operations ago; None: 16 for each
    /// other operation that may be in flight.
    #[serde(default)]
    pub insert_lag: Option<u64>,
}

/// Shares of the operations; they are normalised by their sum, as YCSB's DiscreteGenerator does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Proportions {
    pub read: f64,
    pub update: f64,
    pub insert: f64,
    pub scan: f64,
    pub read_modify_write: f64,
}

impl Proportions {
    /// read, update, insert, scan, read_modify_write: the order in which YCSB lays them out.
    pub fn shares(&self) -> [f64; 5] {
        [self.read, self.update, self.insert, self.scan, self.read_modify_write]
    }

    pub fn sum(&self) -> f64 {
        self.shares().iter().sum()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestDistribution {
    Uniform,
    /// YCSB's `zipfian` for requests: scrambled over the key space.
    Zipfian,
    Latest,
    Hotspot,
    Sequential,
    Exponential,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LengthDistribution {
    Constant,
    Uniform,
    Zipfian,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InsertOrder {
    Hashed,
    Ordered,
}

fn one() -> u32 {
    1
}

fn default_hotspot_data() -> f64 {
    0.2
}

fn default_hotspot_operations() -> f64 {
    0.8
}

fn default_exponential_percentile() -> f64 {
    95.0
}

fn default_exponential_fraction() -> f64 {
    0.857_142_857_1
}
