//! How a load comes to its connections: the first ones, and new ones for those that are lost.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use rustix::fd::OwnedFd;
use steelyard_cql::{Consistency, Value};
use steelyard_load::LoadError;
use steelyard_wire::{Connected, Order, Routing};

use crate::cql::CqlClient;
use crate::link::{Credentials, Link, LinkError};
use crate::ring::Ring;
use crate::statements::Statements;

/// Waits before trying a lost node again: the first, doubled each time up to the longest.
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_LONGEST: Duration = Duration::from_secs(2);
/// Longest wait for a connection, and for each answer of the handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the load could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("this machine refuses: {0}")]
    Machine(#[from] io::Error),
}

/// What all workers share; never changed.
pub(crate) struct Shared {
    pub order: Order,
    pub statements: Statements,
    pub ring: Option<Ring>,
    pub read_consistency: Consistency,
    pub write_consistency: Consistency,
    credentials: Option<Credentials>,
}

/// A node that is back.
pub(crate) struct Revived {
    pub node: usize,
    pub stream: TcpStream,
    pub ids: Vec<Vec<u8>>,
}

/// Connects one client for each entry of `slots` (its places in flight) to every contact, and prepares the statements.
///
/// Errors: a contact that does not answer or refuses; a consistency level that does not exist.
pub fn connect(order: &Order, slots: &[u32]) -> Result<(Vec<CqlClient>, Connected), ConnectError> {
    let credentials = Credentials::from_environment();
    if order.contacts.is_empty() || order.contacts.len() > usize::from(u16::MAX) {
        return Err(LoadError::new("contacts", order.contacts.len(), "1 to 65535 of address:port").into());
    }
    let read_consistency = consistency("read_consistency", &order.read_consistency)?;
    let write_consistency = consistency("write_consistency", &order.write_consistency)?;
    let statements = Statements::new(order);
    let mut links = open_all(&order.contacts, slots.len(), credentials.as_ref())?;
    let mut server = String::new();
    let mut ring = None;
    if let Some(first) = links.first_mut() {
        first[0].rows("SELECT release_version FROM system.local", |row| {
            if let Some(Value::Text(version)) = row.get("release_version") {
                server = (*version).to_owned();
            }
        })?;
        if order.routing == Routing::Token {
            ring = Some(Ring::learn(first, &order.keyspace)?);
        }
    }
    let shared = Arc::new(Shared {
        order: order.clone(),
        statements,
        ring,
        read_consistency,
        write_consistency,
        credentials,
    });
    let mut clients = Vec::new();
    for (links, slots) in links.into_iter().zip(slots) {
        clients.push(CqlClient::new(Arc::clone(&shared), links, *slots)?);
    }
    let connections = (order.contacts.len() * slots.len()) as u32;
    Ok((
        clients,
        Connected {
            nodes: order.contacts.clone(),
            connections,
            server,
        },
    ))
}

fn consistency(field: &'static str, name: &str) -> Result<Consistency, LoadError> {
    let allowed = "ANY, ONE, TWO, THREE, QUORUM, ALL, LOCAL_QUORUM, EACH_QUORUM, SERIAL, LOCAL_SERIAL, LOCAL_ONE";
    Consistency::from_name(name).ok_or_else(|| LoadError::new(field, name, allowed))
}

/// All contacts at once: by worker, then in the contacts' order. The first contact that fails, in that order, is the error.
fn open_all(
    contacts: &[String],
    workers: usize,
    credentials: Option<&Credentials>,
) -> Result<Vec<Vec<Link>>, LinkError> {
    thread::scope(|scope| {
        let open = |contact| move || Link::open(contact, credentials, CONNECT_TIMEOUT);
        let threads: Vec<Vec<_>> = (0..workers)
            .map(|_| contacts.iter().map(|contact| scope.spawn(open(contact))).collect())
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Result<Link, LinkError>>| {
            thread.join().unwrap_or_else(|_| {
                Err(LinkError::Io {
                    contact: "a contact".to_owned(),
                    source: io::Error::other("connecting panicked"),
                })
            })
        };
        threads
            .into_iter()
            .map(|row| row.into_iter().map(join).collect())
            .collect()
    })
}

/// Tries a lost node until it is back, and rings the bell. Runs in a thread of its own, because a handshake may block.
pub(crate) fn revive(shared: &Shared, node: usize, reviver: &Sender<Revived>, bell: &OwnedFd, closed: &AtomicBool) {
    let mut backoff = BACKOFF_FIRST;
    while !closed.load(Ordering::Relaxed) {
        thread::sleep(backoff);
        backoff = (backoff * 2).min(BACKOFF_LONGEST);
        let connect = || {
            let mut link = Link::open(
                &shared.order.contacts[node],
                shared.credentials.as_ref(),
                CONNECT_TIMEOUT,
            )?;
            let ids = link.prepare(&shared.statements.texts)?;
            Ok::<_, LinkError>((link.into_stream()?, ids))
        };
        // A node that is not back yet refuses in many ways; all of them mean: try again.
        let Ok((stream, ids)) = connect() else { continue };
        if reviver.send(Revived { node, stream, ids }).is_ok() {
            let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
        }
        return;
    }
}
