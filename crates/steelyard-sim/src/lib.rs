//! A simulated cluster with a planted scalability law, and the null server.
//!
//! Why: a laboratory that claims to measure how systems scale must recover a law that is known because we planted it; and its load
//! generator must be shown to be faster than what it measures. Each process is one node. It speaks Cassandra's native
//! protocol as far as our client and public drivers need, and answers operations at the instants that a queue with a known service
//! time dictates. The null server answers at once.
//!
//! ```no_run
//! use steelyard_sim::{Config, serve};
//! let config = Config::null("127.0.0.1:9042".parse().unwrap());
//! let error = serve(&config, |address| println!("listening {address}"));
//! ```

mod catalog;
mod connection;
mod draw;
mod law;
mod node;
mod plan;
mod queue;
mod ring;
mod rows;
mod server;
mod shards;
mod spread;
mod statement;
mod system_tables;
mod tokens;
mod types;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU64;

pub use draw::Draws;
pub use law::{Distribution, Law};
pub use queue::{IDLE_GAP_NS, Queue, QueueSettings, Stall};
use steelyard_channel::TlsError;

/// The program cannot go on.
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

/// Listen and serve. Calls `listening` with the bound address, and returns only the reason why it could not go on.
pub fn serve(config: &Config, listening: impl FnOnce(SocketAddr)) -> SimError {
    match open(config) {
        Ok((server, address)) => {
            listening(address);
            server.run()
        }
        Err(error) => error,
    }
}

fn open(config: &Config) -> Result<(server::Server, SocketAddr), SimError> {
    let listener = server::bind(config.listen)?;
    let address = listener.local_addr().map_err(|source| SimError::Bind {
        address: config.listen,
        source,
    })?;
    let ring = ring::Ring::new(address, &config.peers);
    let queue = config.timing.as_ref().map(|timing| {
        let cluster_draws = Draws::new(timing.seed);
        Queue::new(QueueSettings {
            law: timing.law,
            nodes: ring.size(),
            servers: timing.servers,
            start_cv: timing.start_cv,
            trial_cv: timing.trial_cv,
            stalls: timing.stalls.clone(),
            cluster_draws,
            node_draws: cluster_draws.salted(address.to_string().as_bytes()),
        })
    });
    // The kernel may otherwise be 50 us late on purpose, to save wake-ups.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).map_err(|error| SimError::Kernel {
        what: "set the timer's slack",
        source: error.into(),
    })?;
    let spin_ns = config
        .timing
        .as_ref()
        .map_or(0, |timing| u64::from(timing.spin_us) * 1000);
    let mut node = node::Node::new(ring, config.remember);
    let mut listeners = vec![listener];
    if config.shards > 0 {
        let chosen = server::bind(SocketAddr::new(address.ip(), 0))?;
        let port = chosen.local_addr().map_or(0, |address| address.port());
        node.shards = Some(shards::Shards::new(config.shards, port, config.tls.is_some()));
        listeners.push(chosen);
    }
    let tls = config.tls.as_ref().map(server::Tls::new).transpose()?;
    Ok((server::Server::new(listeners, node, queue, spin_ns, tls)?, address))
}
