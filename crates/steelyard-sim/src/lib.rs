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
//! serve(&config, |address| println!("listening {address}")).unwrap();
//! ```

#![deny(missing_docs)]

mod catalog;
mod config;
mod connection;
mod draw;
mod failure_detector;
mod law;
mod log;
mod membership;
mod moving;
mod node;
mod peer;
mod plan;
mod queue;
mod refusal;
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

use crate::log::Log;
use crate::moving::Moving;

pub use config::{Config, Growth, SimError, Timing, TlsFiles};
pub use draw::Draws;
pub use law::{Distribution, Law};
pub use queue::{IDLE_GAP_NS, Queue, QueueSettings, Stall, WarmUp};

/// Listen and serve. Calls `listening` with the bound address, and returns when the node has left its cluster, or with the
/// reason why it could not go on.
pub fn serve(config: &Config, listening: impl FnOnce(SocketAddr)) -> Result<(), SimError> {
    let tls = config.tls.as_ref().map(server::Tls::new).transpose()?;
    let Some(contact) = config.join.or_else(|| taken_out_by(config, tls.as_ref())) else {
        let (server, address) = open(config, &config.peers, tls)?;
        listening(address);
        return server.run();
    };
    let failed = |reason| SimError::Join {
        address: config.listen,
        reason,
    };
    // Whether somebody has the address is said now, not after minutes.
    drop(server::bind(config.listen)?);
    let log = Log {
        clock_offset_s: config.clock_offset_s,
    };
    let client = tls.as_ref().map(server::Tls::client);
    let (moving, learnt) = Moving::join(config.listen, contact, config.growth, log, client).map_err(failed)?;
    let (mut server, address) = open(config, &learnt.members, tls)?;
    server.catch_up(&learnt).map_err(failed)?;
    moving.enter().map_err(failed)?;
    listening(address);
    server.run()
}

/// A peer that has taken this node out of its ring while it was dead: so it joins again.
fn taken_out_by(config: &Config, tls: Option<&server::Tls>) -> Option<SocketAddr> {
    config.growth.detect?;
    let without = |peer: &&SocketAddr| {
        let members = moving::members(**peer, tls.map(server::Tls::client));
        members.is_ok_and(|members| !members.contains(&config.listen))
    };
    config.peers.iter().find(without).copied()
}

fn open(
    config: &Config,
    peers: &[SocketAddr],
    tls: Option<server::Tls>,
) -> Result<(server::Server, SocketAddr), SimError> {
    let listener = server::bind(config.listen)?;
    let address = listener.local_addr().map_err(|source| SimError::Bind {
        address: config.listen,
        source,
    })?;
    let ring = ring::Ring::new(address, peers);
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
    (node.queue, node.stream_cost) = (queue, config.growth.stream_cost);
    let mut listeners = vec![listener];
    if config.shards > 0 {
        let chosen = server::bind(SocketAddr::new(address.ip(), 0))?;
        let port = chosen.local_addr().map_or(0, |address| address.port());
        node.shards = Some(shards::Shards::new(config.shards, port, config.tls.is_some()));
        listeners.push(chosen);
    }
    let log = Log {
        clock_offset_s: config.clock_offset_s,
    };
    let server = server::Server::new(listeners, node, spin_ns, tls, (config.growth, log))?;
    Ok((server, address))
}
