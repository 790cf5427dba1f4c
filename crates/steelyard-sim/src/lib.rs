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

#![deny(missing_docs)]

mod catalog;
mod config;
mod connection;
mod draw;
mod law;
mod node;
mod plan;
mod queue;
mod ring;
mod rows;
mod schema_broadcast;
mod server;
mod shards;
mod statement;
mod system_tables;
mod tokens;
mod types;

use std::net::SocketAddr;
use std::num::NonZeroU64;

pub use config::{Config, SimError, Timing, TlsFiles};
pub use draw::Draws;
pub use law::{Distribution, Law};
pub use queue::{IDLE_GAP_NS, Queue, QueueSettings, Stall, WarmUp};

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
            warm_up: timing.warm_up,
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
