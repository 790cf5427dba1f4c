//! How a load comes to its connections: the first ones, and new ones for those that are lost.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use rustix::fd::OwnedFd;
use steelyard_channel::Pipe;
use steelyard_cql::Value;
use steelyard_wire::{Connected, Order, Routing};
use steelyard_workload::OrderError;

use crate::cql::CqlClient;
use crate::link::{Access, Link, LinkError};
use crate::routes::{Place, Routes};
use crate::shards::Sharding;
use crate::statements::Statements;
use crate::watch::{Cluster, Watch};

/// Waits before trying a lost node again: the first, doubled each time up to the longest.
pub(crate) const BACKOFF_FIRST: Duration = Duration::from_millis(50);
pub(crate) const BACKOFF_LONGEST: Duration = Duration::from_secs(2);
/// Longest wait for a connection, and for each answer of the handshake.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections of one worker: their numbers have 16 bits.
pub(crate) const MAX_CONNECTIONS: usize = u16::MAX as usize;
/// Connections of one worker to one node, or to one shard.
const MAX_PER_NODE: usize = 1_024;

/// Why the load could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Order(#[from] OrderError),
    #[error("this machine refuses: {0}")]
    Machine(#[from] io::Error),
}

/// What all workers share; never changed.
pub(crate) struct Shared {
    pub order: Order,
    pub statements: Statements,
    pub access: Access,
}

/// What other threads tell a worker.
pub(crate) enum News {
    /// A connection stands, again or for the first time.
    Up {
        connection: usize,
        pipe: Pipe,
        ids: Vec<Vec<u8>>,
    },
    /// Nodes or their tokens have changed.
    Routes(Arc<Routes>),
}

/// How other threads reach a worker, wherever it waits.
#[derive(Clone)]
pub(crate) struct Bell {
    pub news: Sender<News>,
    pub bell: Arc<OwnedFd>,
}

impl Bell {
    pub fn ring(&self, news: News) {
        // A worker that has ended hears nothing, and needs not.
        if self.news.send(news).is_ok() {
            let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        }
    }
}

/// Connects one client for each entry of `slots` (its places in flight) to every contact, and prepares the statements.
///
/// Errors: a contact that does not answer or refuses; a consistency level that does not exist.
pub fn connect(order: &Order, slots: &[u32]) -> Result<(Vec<CqlClient>, Connected), ConnectError> {
    let access = Access::of_order(order).map_err(LinkError::from)?;
    if order.contacts.is_empty() || order.contacts.len() > usize::from(u16::MAX) {
        return Err(OrderError::new("contacts", order.contacts.len(), "1 to 65535 of address:port").into());
    }
    let statements = Statements::new(order)?;
    let per_shard = order.connections_per_node as usize;
    if !(1..=MAX_PER_NODE).contains(&per_shard) {
        return Err(OrderError::new("connections_per_node", per_shard, "1 to 1024").into());
    }
    let mut links = open_all(&order.contacts, slots.len(), &access, per_shard)?;
    let mut server = String::new();
    let mut routes = Routes::default();
    let mut cluster = None;
    if let Some(first) = links.first_mut() {
        first[0][0].rows("SELECT release_version FROM system.local", |row| {
            if let Some(Value::Text(version)) = row.get("release_version") {
                server = (*version).to_owned();
            }
        })?;
        for (contact, links) in order.contacts.iter().zip(&*first) {
            routes.add(
                contact,
                per_shard,
                links.first().and_then(Link::shard).map(|(_, rule)| rule),
            );
        }
        if order.routing == Routing::Token || order.discover {
            let mut one_each: Vec<&mut Link> = first.iter_mut().filter_map(|links| links.first_mut()).collect();
            let (learnt, ring) = Cluster::learn(&mut one_each, order)?;
            routes.ring = ring;
            cluster = Some(learnt);
        }
    }
    if routes.connections() > MAX_CONNECTIONS {
        let allowed = "65535 connections of one thread at most, over all nodes and shards";
        return Err(OrderError::new("connections_per_node", per_shard, allowed).into());
    }
    let shared = Arc::new(Shared {
        order: order.clone(),
        statements,
        access,
    });
    let connections = (routes.connections() * slots.len()) as u32;
    let routes = Arc::new(routes);
    let closed = Arc::new(AtomicBool::new(false));
    let mut clients = Vec::new();
    for (links, slots) in links.into_iter().zip(slots) {
        let links = links.into_iter().flatten().collect();
        clients.push(CqlClient::new(
            Arc::clone(&shared),
            Arc::clone(&routes),
            links,
            *slots,
            Arc::clone(&closed),
        )?);
    }
    if let Some(cluster) = cluster {
        let bells = clients.iter().map(CqlClient::bell).collect();
        let watch = Watch::new(shared, cluster, routes, bells, closed);
        thread::spawn(move || watch.keep());
    }
    Ok((
        clients,
        Connected {
            nodes: order.contacts.clone(),
            connections,
            server,
        },
    ))
}

/// All connections of all workers at once: by worker, then in the contacts' order, then by shard. The first contact that
/// fails, in that order, is the error.
fn open_all(
    contacts: &[String],
    workers: usize,
    access: &Access,
    per_shard: usize,
) -> Result<Vec<Vec<Vec<Link>>>, LinkError> {
    thread::scope(|scope| {
        let open = |contact, worker| move || open_node(contact, access, per_shard, worker);
        let threads: Vec<Vec<_>> = (0..workers)
            .map(|worker| {
                contacts
                    .iter()
                    .map(|contact| scope.spawn(open(contact, worker as u32)))
                    .collect()
            })
            .collect();
        threads
            .into_iter()
            .map(|row| row.into_iter().map(join).collect())
            .collect()
    })
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, Result<T, LinkError>>) -> Result<T, LinkError> {
    thread.join().unwrap_or_else(|_| {
        Err(LinkError::Io {
            contact: "a contact".to_owned(),
            source: io::Error::other("connecting panicked"),
        })
    })
}

/// One worker's connections to one node: the first tells whether there are shards. One after the other: a thread for each
/// would cost a memory arena for each, megabytes that stay.
fn open_node(contact: &str, access: &Access, per_shard: usize, worker: u32) -> Result<Vec<Link>, LinkError> {
    let first = Link::open(contact, access, CONNECT_TIMEOUT)?;
    let (at, rule) = match first.shard() {
        Some((at, rule)) => (at as usize * per_shard, Some(rule)),
        None => (0, None),
    };
    let count = per_shard * rule.map_or(1, |rule| rule.count as usize);
    let others = (0..count).filter(|number| *number != at);
    let mut links = others
        .map(|number| open_for(contact, (number / per_shard) as u32, rule, worker, access))
        .collect::<Result<Vec<_>, _>>()?;
    links.insert(at, first);
    Ok(links)
}

fn open_for(contact: &str, shard: u32, rule: Option<Sharding>, salt: u32, access: &Access) -> Result<Link, LinkError> {
    match rule {
        Some(rule) => Link::open_at(contact, (shard, rule), salt, access, CONNECT_TIMEOUT),
        None => Link::open(contact, access, CONNECT_TIMEOUT),
    }
}

/// Tries a connection that does not stand until it does, and rings the bell. Runs in a thread of its own, because a
/// handshake may block.
pub(crate) fn revive(shared: &Shared, place: &Place, connection: usize, bell: &Bell, closed: &AtomicBool) {
    let mut backoff = BACKOFF_FIRST;
    let (shard, rule) = match place.shard(connection) {
        Some((shard, rule)) => (shard, Some(rule)),
        None => (0, None),
    };
    while !closed.load(Ordering::Relaxed) {
        thread::sleep(backoff);
        backoff = (backoff * 2).min(BACKOFF_LONGEST);
        let connect = || {
            let mut link = open_for(&place.contact, shard, rule, connection as u32, &shared.access)?;
            let ids = link.prepare(&shared.statements.texts)?;
            Ok::<_, LinkError>((link.into_pipe()?, ids))
        };
        // A node that is not back yet refuses in many ways; all of them mean: try again.
        let Ok((pipe, ids)) = connect() else { continue };
        return bell.ring(News::Up { connection, pipe, ids });
    }
}
