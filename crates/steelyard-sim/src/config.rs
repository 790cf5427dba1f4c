//! Configuration of one simulated node, and the errors that end it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use steelyard_channel::TlsError;

use crate::law::Law;
use crate::queue::{Stall, WarmUp};

/// Why the simulated node cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A TLS file that cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The node could not join.
    #[error("{address} could not join the cluster: {reason}")]
    Join {
        /// Its address.
        address: SocketAddr,
        /// Why, in the words of the member that refused it.
        reason: String,
    },
    /// The kernel refuses something.
    #[error("cannot {what}: {source}")]
    Kernel {
        /// What was asked for.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// How operations take time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Mean service time as a function of the cluster's size.
    pub law: Law,
    /// Operations that a node serves at the same time.
    pub servers: u32,
    /// Coefficient of variation of a factor that is drawn once.
    pub start_cv: f64,
    /// Coefficient of variation of a factor that is drawn for each burst of operations.
    pub trial_cv: f64,
    /// How the node gets faster with its own operations.
    pub warm_up: Option<WarmUp>,
    /// When the node stands still.
    pub stalls: Vec<Stall>,
    /// The same for all nodes of a cluster: it decides the factors, and with a node's address its service times.
    pub seed: u64,
    /// How long before an answer is due the program stops to sleep and watches the clock.
    pub spin_us: u32,
}

/// How a node joins and leaves a cluster that runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// From the start of a node that joins until it talks to the others.
    pub boot: Duration,
    /// How long the ring is known to change before data move; a node that leaves waits so long again before it ends.
    pub ring_delay: Duration,
    /// All data of the cluster.
    pub data_bytes: f64,
    /// How fast a node's share of them moves.
    pub stream_bytes_per_s: f64,
    /// Factor on the service time of the members while another node streams.
    pub stream_cost: f64,
    /// How long a member is dead before the others take it out of the ring; None: it stays.
    pub detect: Option<Duration>,
}

impl Default for Growth {
    fn default() -> Self {
        Self {
            boot: Duration::ZERO,
            ring_delay: Duration::ZERO,
            data_bytes: 0.0,
            stream_bytes_per_s: f64::INFINITY,
            stream_cost: 1.0,
            detect: None,
        }
    }
}

impl Growth {
    /// How long the share of one of `nodes` takes.
    #[allow(clippy::cast_precision_loss)] // few nodes
    pub fn stream(&self, nodes: usize) -> Duration {
        let seconds = self.data_bytes / (nodes.max(1) as f64 * self.stream_bytes_per_s);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where clients connect; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The other nodes of the cluster.
    pub peers: Vec<SocketAddr>,
    /// A member of a running cluster that the node joins; it then learns the others from it.
    pub join: Option<SocketAddr>,
    /// How it joins and leaves.
    pub growth: Growth,
    /// Added to the wall clock in log lines, for tests of wrong clocks.
    pub clock_offset_s: f64,
    /// None: the null server.
    pub timing: Option<Timing>,
    /// Keep rows, so that keys that were not written to this node are absent. Otherwise every key exists.
    pub remember: bool,
    /// Every connection is encrypted, those among the nodes too.
    pub tls: Option<TlsFiles>,
    /// Announce this many shards and refuse operations that arrive at the wrong one; 0: none.
    pub shards: u32,
}

/// Paths of PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate and its chain.
    pub certificate: String,
    /// Its private key.
    pub key: String,
    /// Authorities of which clients must show a certificate.
    pub client_ca: Option<String>,
}

impl Config {
    /// A lone null server.
    pub fn null(listen: SocketAddr) -> Self {
        Self {
            listen,
            peers: Vec::new(),
            join: None,
            growth: Growth::default(),
            clock_offset_s: 0.0,
            timing: None,
            remember: false,
            tls: None,
            shards: 0,
        }
    }
}
