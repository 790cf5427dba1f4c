//! Orders: what the conductor asks of `steelyard-agent load`.

use serde::{Deserialize, Serialize};

use crate::defaults::is_false;
use crate::program::Program;
use crate::requests::Requests;
use crate::schedule::{DEFAULT_BACKLOG_LIMIT, LoadPhase, Schedule, default_backlog_limit};
use crate::target::Target;

/// One order: drive this workload against these contacts by this schedule until this stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Version of the wire: `FORMAT`.
    pub format: u32,
    /// `address:port` of every node.
    pub contacts: Vec<String>,
    /// Whether the load goes on without contacts that do not answer, as long as one does; `Connected` names them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub some_contacts: bool,
    /// Fill the data, or drive the mix.
    pub action: Action,
    /// The protocol that the nodes speak, and what it alone needs.
    pub target: Target,
    /// What is executed.
    pub work: Work,
    /// Seed of the operation stream.
    pub seed: u64,
    /// Schedule of the measured phase and the warm-up; if there are `phases`, of the warm-up alone.
    pub schedule: Schedule,
    /// What ends the measured phase.
    pub stop: Stop,
    /// Measured phases instead of the one defined by `schedule` and `stop`; `stop` is then empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<LoadPhase>,
    /// Whether measured phases come as `Word`s on standard input while the load runs, in place of `stop` and `phases`, which are
    /// then empty. `schedule` says how many may be in flight.
    #[serde(default, skip_serializing_if = "is_false")]
    pub words: bool,
    /// Open loop: operations of this process that may be due and not yet sent. One that becomes due beyond it is never sent.
    #[serde(default = "default_backlog_limit", skip_serializing_if = "is_default_backlog_limit")]
    pub backlog_limit: u64,
    /// Open loop: seconds after the end for which what was due before it is still sent; the rest is never sent. None: the
    /// load's length once more, at least a time-out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_s: Option<f64>,
    /// When the first phase starts, seconds since the epoch by this node's clock, so that several processes start together;
    /// None: as soon as the connections are open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at_s: Option<f64>,
    /// Whether the first phase waits for the word `go` on standard input, once the connections are open, so that several processes
    /// start together whatever their clocks say. Not with `words`, whose first word is `go` anyway.
    #[serde(default, skip_serializing_if = "is_false")]
    pub go: bool,
    /// Share of the operations of this process.
    #[serde(default)]
    pub share: Share,
    /// Seconds of the same load before the measured phase.
    #[serde(default)]
    pub warm_up_s: f64,
    /// Milliseconds after which an operation is given up.
    pub timeout_ms: u64,
    /// Maximum number of times that a request is sent, each with that time-out, until the answer is not an error. Not retried: rows
    /// that differ from what was written, and operations that could not be sent. Times count from the first try to the last.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub tries: u32,
    /// Connections from each worker thread to each node; on a sharded node (ScyllaDB) to each shard. Over HTTP each place in
    /// flight has one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub connections_per_node: u32,
    /// CQL: whether nodes that join the first contact's data centre also get a share of the operations. PostgreSQL, where replicas
    /// are read from: whether those that join are. Over RESP nodes always get their share: the cluster sends each key to its node.
    #[serde(default, skip_serializing_if = "is_false")]
    pub discover: bool,
    /// Whether rows that were written are read back after the last phase, as the phase `read-back`; and how many seconds later those
    /// that were not right are read again, as the phase `read-again`. YCSB's workload, by one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_again_s: Option<f64>,
    /// Encryption; None: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Seconds of an interval record.
    pub interval_s: f64,
}

impl Order {
    /// The schedules of the measured phases, and how many seconds each lasts; `None`: it does not end by time.
    pub fn measured_schedules(&self) -> impl Iterator<Item = (&Schedule, Option<f64>)> {
        let single = self.phases.is_empty().then_some((&self.schedule, self.stop.duration_s));
        let phases = self
            .phases
            .iter()
            .map(|phase| (&phase.schedule, Some(phase.duration_s)));
        single.into_iter().chain(phases)
    }
}

/// Fill the data with records 0..records, or drive the mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Fill the data.
    Populate,
    /// Drive the mix of operations.
    Load,
}

/// Encryption of every connection. Paths are those of the machine that drives the load; files are PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Certificates of the trusted authorities; None: those of this machine.
    #[serde(default)]
    pub ca: Option<String>,
    /// Certificate of this client and its chain, if the cluster requires one; requires `key`.
    #[serde(default)]
    pub certificate: Option<String>,
    /// The certificate's private key.
    #[serde(default)]
    pub key: Option<String>,
    /// Which parts of a node's certificate are checked.
    #[serde(default)]
    pub verify: Verify,
    /// Name that the nodes' certificates must have; None: each contact's own name or address.
    #[serde(default)]
    pub name: Option<String>,
}

/// Which parts of a node's certificate are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// That a trusted authority signed it, its dates, and its name.
    #[default]
    Full,
    /// All but the name.
    Chain,
    /// Nothing: encrypted, but anybody may be at the other end.
    None,
}

/// End of a phase: the first limit that is reached. Operations, like a schedule's rate, are over all shares; `threads` and
/// `in_flight` are each process's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Operations over all shares; None: not ended by number.
    #[serde(default)]
    pub operations: Option<u64>,
    /// Keys that all operations take which draw each of theirs; the last takes what is left. None: not ended by keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u64>,
    /// Seconds; None: not ended by time.
    #[serde(default)]
    pub duration_s: Option<f64>,
}

/// Which operations of the stream are this process's: those whose index modulo `of` is `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Number of this share, from 0.
    pub index: u64,
    /// Number of shares.
    pub of: u64,
}

impl Default for Share {
    fn default() -> Self {
        Self { index: 0, of: 1 }
    }
}

/// What is executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Work {
    /// YCSB's core workload.
    Ycsb(Ycsb),
    /// A workload as data.
    Program(Program),
    /// Requests for documents.
    Requests(Requests),
}

impl Work {
    /// Keys of the filled state; documents are none.
    pub fn records(&self) -> u64 {
        match self {
            Self::Ycsb(ycsb) => ycsb.records,
            Self::Program(program) => program.records,
            Self::Requests(_) => 0,
        }
    }

    /// YCSB's workload, where it is one.
    pub fn ycsb(&self) -> Option<&Ycsb> {
        match self {
            Self::Ycsb(ycsb) => Some(ycsb),
            _ => None,
        }
    }

    /// YCSB's workload to change, where it is one.
    pub fn ycsb_mut(&mut self) -> Option<&mut Ycsb> {
        match self {
            Self::Ycsb(ycsb) => Some(ycsb),
            _ => None,
        }
    }
}

/// YCSB's core workload as YCSB defines it; names follow its properties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ycsb {
    /// Names of the values of a record.
    pub fields: Vec<String>,
    /// Number of records to fill: keys insert_start up to insert_start + records - 1. YCSB's recordcount is their end.
    pub records: u64,
    /// insertstart
    #[serde(default)]
    pub insert_start: u64,
    /// Shares of the kinds of operations.
    pub proportions: Proportions,
    /// requestdistribution
    pub request_distribution: RequestDistribution,
    /// fieldlength
    pub field_length: u32,
    /// minfieldlength
    #[serde(default = "one")]
    pub min_field_length: u32,
    /// fieldlengthdistribution
    pub field_length_distribution: LengthDistribution,
    /// insertorder
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
    /// scanlengthdistribution
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
    /// Requests see only keys inserted more than this many operations ago; None: 16 for each
    /// other operation that may be in flight.
    #[serde(default)]
    pub insert_lag: Option<u64>,
    /// Share of the reads and scans whose values are compared with those that were written, 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub validate_fraction: f64,
}

/// Shares of the operations; they are normalised by their sum, as YCSB's DiscreteGenerator does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Proportions {
    /// readproportion
    pub read: f64,
    /// updateproportion
    pub update: f64,
    /// insertproportion
    pub insert: f64,
    /// scanproportion
    pub scan: f64,
    /// readmodifywriteproportion
    pub read_modify_write: f64,
}

impl Proportions {
    /// read, update, insert, scan, read_modify_write: the order in which YCSB lays them out.
    pub fn shares(&self) -> [f64; 5] {
        [self.read, self.update, self.insert, self.scan, self.read_modify_write]
    }

    /// Sum of all shares.
    pub fn sum(&self) -> f64 {
        self.shares().iter().sum()
    }
}

/// Which of the existing keys a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestDistribution {
    /// Each key with equal probability.
    Uniform,
    /// YCSB's `zipfian` for requests: scrambled over the key space.
    Zipfian,
    /// New keys more often than old ones.
    Latest,
    /// A fraction of the keys gets a fraction of the operations.
    Hotspot,
    /// Keys in sequence.
    Sequential,
    /// Exponentially falling from the newest key.
    Exponential,
}

/// Distribution of the lengths of fields and scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LengthDistribution {
    /// Always the longest.
    Constant,
    /// Each length with equal probability.
    Uniform,
    /// Short ones more often.
    Zipfian,
}

/// How key names are derived from key numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InsertOrder {
    /// By a hash of the number.
    Hashed,
    /// By the number itself.
    Ordered,
}

fn one() -> u32 {
    1
}

// serde hands references to these.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(number: &u32) -> bool {
    *number == 1
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_default_backlog_limit(limit: &u64) -> bool {
    *limit == DEFAULT_BACKLOG_LIMIT
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
