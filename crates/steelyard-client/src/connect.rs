//! Start of a load: the first connections of all workers, the routing table, the thread that watches the topology.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use crate::program::cql;
use steelyard_channel::ContactError;
use steelyard_channel::Deadline;
use steelyard_cql::Value;
use steelyard_wire::{Connected, Order, Routing};
use steelyard_workload::OrderError;

use crate::blocking_connection::{Access, BlockingConnection, CONNECT_TIMEOUT, told_apart};
use crate::cql_client::CqlClient;
use crate::error::{ConnectError, ConnectionError};
use crate::routing::{MAX_CONNECTIONS, RoutingTable};
use crate::statements::Statements;
use crate::topology::{Cluster, TopologyWatcher};
use crate::worker::Shared;

/// Connections of one worker to one node, or to one shard.
const MAX_PER_NODE: usize = 1_024;

/// Connects one client for each entry of `slots` (its places in flight) to every contact, or where the order has
/// `some_contacts` to every one that answers, and prepares the statements.
///
/// Errors: a contact that does not answer or refuses; a consistency level that does not exist.
pub fn connect(order: &Order, slots: &[u32]) -> Result<(Vec<CqlClient>, Connected), ConnectError> {
    let target = cql(order)?;
    let access = Access::of_order(order, target).map_err(ConnectionError::from)?;
    if order.contacts.is_empty() || order.contacts.len() > usize::from(u16::MAX) {
        return Err(OrderError::new("contacts", order.contacts.len(), "1 to 65535 of address:port").into());
    }
    let statements = Statements::new(order, target)?;
    let per_shard = order.connections_per_node as usize;
    if !(1..=MAX_PER_NODE).contains(&per_shard) {
        return Err(OrderError::new("connections_per_node", per_shard, "1 to 1024").into());
    }
    let Opened {
        contacts,
        absent,
        mut workers,
    } = open_all(order, slots.len(), &access, per_shard)?;
    let mut server = String::new();
    let mut routing = RoutingTable::default();
    let mut cluster = None;
    if let Some(first) = workers.first_mut() {
        first[0][0].rows("SELECT release_version FROM system.local", |row| {
            if let Some(Value::Text(version)) = row.get("release_version") {
                server = (*version).to_owned();
            }
        })?;
        for (contact, opened) in contacts.iter().zip(&*first) {
            routing.add(
                contact,
                per_shard,
                opened.first().and_then(BlockingConnection::shard).map(|(_, rule)| rule),
            );
        }
        if target.routing == Routing::Token || order.discover {
            let mut first_of_each: Vec<&mut BlockingConnection> =
                first.iter_mut().filter_map(|opened| opened.first_mut()).collect();
            let (members, ring) = Cluster::read(&mut first_of_each, target)?;
            routing.ring = ring;
            cluster = Some(members);
        }
    }
    if routing.connections() > MAX_CONNECTIONS {
        let allowed = "at most 65535 connections per thread over all nodes and shards";
        return Err(OrderError::new("connections_per_node", per_shard, allowed).into());
    }
    let shared = Arc::new(Shared {
        order: order.clone(),
        target: target.clone(),
        statements,
        access,
    });
    let connections = (routing.connections() * slots.len()) as u32;
    let routing = Arc::new(routing);
    let closed = Arc::new(AtomicBool::new(false));
    let mut clients = Vec::new();
    for (opened, slots) in workers.into_iter().zip(slots) {
        let opened = opened.into_iter().flatten().collect();
        clients.push(CqlClient::new(
            Arc::clone(&shared),
            Arc::clone(&routing),
            opened,
            *slots,
            Arc::clone(&closed),
        )?);
    }
    if let Some(cluster) = cluster {
        let workers = clients.iter().map(CqlClient::sender).collect();
        let watcher = TopologyWatcher::new(shared, cluster, routing, workers, closed);
        thread::spawn(move || watcher.run());
    }
    Ok((
        clients,
        Connected {
            nodes: contacts,
            absent,
            connections,
            server,
        },
    ))
}

/// The first connections of a load.
struct Opened {
    /// Contacts that answer.
    contacts: Vec<String>,
    /// Why the others do not.
    absent: Vec<String>,
    /// By worker, then in the order of `contacts`, then by shard.
    workers: Vec<Vec<Vec<BlockingConnection>>>,
}

/// All connections of all workers at once. The first contact that fails, in their order, is the error; where some are enough, the
/// first that refuses, or all if none answers.
fn open_all(order: &Order, workers: usize, access: &Access, per_shard: usize) -> Result<Opened, ConnectionError> {
    let rows: Vec<Vec<Result<_, ConnectionError>>> = thread::scope(|scope| {
        let open = |contact, worker| move || open_node(contact, access, per_shard, worker);
        let threads: Vec<Vec<_>> = (0..workers)
            .map(|worker| {
                let contacts = order.contacts.iter();
                contacts
                    .map(|contact| scope.spawn(open(contact, worker as u32)))
                    .collect()
            })
            .collect();
        threads
            .into_iter()
            .map(|row| row.into_iter().map(join).collect())
            .collect()
    });
    // A contact that is away from one worker is left out for all: they have the same routing table.
    let mut causes: Vec<Option<String>> = vec![None; order.contacts.len()];
    let mut opened = Vec::new();
    for row in rows {
        let mut worker = Vec::new();
        for ((connections, cause), contact) in row.into_iter().zip(&mut causes).zip(&order.contacts) {
            let connections = connections.map_err(|error| {
                let deadline = Deadline::new(contact, CONNECT_TIMEOUT);
                told_apart(error, access, &deadline)
            });
            match connections {
                Ok(connections) => worker.push(Some(connections)),
                Err(error) if order.some_contacts && order.contacts.len() > 1 && error.is_absence() => {
                    cause.get_or_insert(error.to_string());
                    worker.push(None);
                }
                Err(error) => return Err(error),
            }
        }
        opened.push(worker);
    }
    let answers = |number: usize| causes[number].is_none();
    let contacts: Vec<String> = (0..causes.len())
        .filter(|number| answers(*number))
        .map(|number| order.contacts[number].clone())
        .collect();
    let kept = |worker: Vec<Option<_>>| {
        let numbered = worker.into_iter().enumerate();
        numbered
            .filter(|(number, _)| answers(*number))
            .filter_map(|(_, connections)| connections)
            .collect()
    };
    let workers = opened.into_iter().map(kept).collect();
    let absent: Vec<String> = causes.into_iter().flatten().collect();
    if contacts.is_empty() {
        return Err(ContactError::NoContact { causes: absent }.into());
    }
    Ok(Opened {
        contacts,
        absent,
        workers,
    })
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, Result<T, ConnectionError>>) -> Result<T, ConnectionError> {
    thread.join().unwrap_or_else(|_| {
        Err(ContactError::Io {
            contact: "a contact".to_owned(),
            source: io::Error::other("connecting panicked"),
        }
        .into())
    })
}

/// One worker's connections to one node: the first tells whether there are shards. One after the other: a thread for each
/// would cost a memory arena for each, megabytes that stay.
fn open_node(
    contact: &str,
    access: &Access,
    per_shard: usize,
    worker: u32,
) -> Result<Vec<BlockingConnection>, ConnectionError> {
    let first = BlockingConnection::open_for_load(contact, None, worker, access)?;
    let (at, rule) = match first.shard() {
        Some((at, rule)) => (at as usize * per_shard, Some(rule)),
        None => (0, None),
    };
    let count = per_shard * rule.map_or(1, |rule| rule.count as usize);
    let others = (0..count).filter(|number| *number != at);
    let mut opened = others
        .map(|number| {
            let shard = rule.map(|rule| ((number / per_shard) as u32, rule));
            BlockingConnection::open_for_load(contact, shard, worker, access)
        })
        .collect::<Result<Vec<_>, _>>()?;
    opened.insert(at, first);
    Ok(opened)
}
