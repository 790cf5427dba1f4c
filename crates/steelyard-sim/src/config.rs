//! Configuration of one simulated node, and the errors that end it.

use std::io;
use std::net::SocketAddr;

use steelyard_channel::TlsError;

use crate::law::Law;
use crate::queue::Stall;

/// Why the simulated node cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("cannot listen on {address}: {source}")]
    Bind { address: SocketAddr, source: io::Error },
    #[error("cannot {what}: {source}")]
    Kernel { what: &'static str, source: io::Error },
}

/// How operations take time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    pub law: Law,
    pub servers: u32,
    pub start_cv: f64,
    pub trial_cv: f64,
    pub stalls: Vec<Stall>,
    /// The same for all nodes of a cluster: it decides the factors, and with a node's address its service times.
    pub seed: u64,
    /// How long before an answer is due the program stops to sleep and watches the clock.
    pub spin_us: u32,
}

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub listen: SocketAddr,
    /// The other nodes of the cluster.
    pub peers: Vec<SocketAddr>,
    /// None: the null server.
    pub timing: Option<Timing>,
    /// Keep rows, so that keys that were not written to this node are absent. Otherwise every key exists.
    pub remember: bool,
    /// Every connection is encrypted, those among the nodes too.
    pub tls: Option<TlsFiles>,
    /// Announce so many shards and refuse operations that come to the wrong one; 0: none.
    pub shards: u32,
}

/// Paths of PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: String,
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
            timing: None,
            remember: false,
            tls: None,
            shards: 0,
        }
    }
}
