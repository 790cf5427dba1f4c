//! Start of a load: the first connections of all workers.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use rustix::io::Errno;
use serde::Deserialize;
use steelyard_channel::contact::open_each;
use steelyard_channel::{Channel, ContactError, Deadline, Pipe};
use steelyard_protocol::ConnectError;
use steelyard_protocol::begin::{check_contacts, refuse_tls};
use steelyard_protocol::exchange::{TIMEOUT, dial};
use steelyard_wire::{Connected, Order, Target};
use steelyard_workload::OrderError;

use crate::client::HttpClient;
use crate::connection::explain;
use crate::dialect::Dialect;
use crate::documents::Documents;
use crate::etcd::Gateway;
use crate::nodes::Node;
use crate::pool::Pool;
use crate::server::{Said, ask};

/// The answer of etcd to `/version`.
#[derive(Deserialize)]
struct Version {
    etcdserver: String,
}

/// Connects one client for each entry of `slots` (its places in flight) to every contact, or where the order has
/// `some_contacts` to every one that answers. There are connections for all places in flight, as many to each node, unless each
/// request has its own.
///
/// # Errors
///
/// A contact that does not answer or is no such server; an order that is not possible.
pub fn connect(order: &Order, slots: &[u32]) -> Result<(Vec<HttpClient>, Connected), ConnectError> {
    let (protocol, keep_alive, dialect) = match &order.target {
        Target::Etcd(target) => ("etcd", true, Dialect::Etcd(Gateway::of(order, *target)?)),
        Target::Http(target) => (
            "http",
            target.keep_alive,
            Dialect::Documents(Documents::of(order, *target)?),
        ),
        _ => {
            let why = "not of HTTP: choose http or etcd";
            return Err(OrderError::because("target.protocol", why).into());
        }
    };
    check_contacts(order)?;
    refuse_tls(order, protocol)?;
    if order.connections_per_node != 1 {
        let why = format!("not possible over {protocol}, where each place in flight has its connection: leave it out");
        return Err(OrderError::because("connections_per_node", why).into());
    }
    let count = |slots: u32| slots.div_ceil(order.contacts.len() as u32);
    let all: u32 = slots.iter().map(|slots| count(*slots)).sum();
    let some = order.some_contacts && order.contacts.len() > 1;
    let (mut opened, absent) = open_each(&order.contacts, some, ConnectError::is_absence, |contact| {
        let said = dialect.greet(contact)?;
        let connections = if keep_alive { all } else { 0 };
        let deadline = || Deadline::new(contact, TIMEOUT);
        let streams = (0..connections).map(|_| dial(&deadline()).map_err(|error| or_machine(error, &said)));
        Ok::<_, ConnectError>((streams.collect::<Result<Vec<TcpStream>, _>>()?, said))
    })?;
    let nodes: Vec<String> = opened.iter().map(|(contact, _)| contact.clone()).collect();
    let connected = Connected {
        connections: opened.iter().map(|(_, (streams, _))| streams.len() as u32).sum(),
        server: opened
            .first()
            .map_or_else(String::new, |(_, (_, said))| said.server.clone()),
        nodes,
        absent,
    };
    let dialect = Arc::new(dialect);
    let mut clients = Vec::new();
    for slots in slots {
        let mut pipes = Vec::new();
        let mut nodes = Vec::new();
        for (number, (contact, (streams, said))) in opened.iter_mut().enumerate() {
            nodes.push(Node::new(
                contact.clone(),
                said.address,
                dialect.fields_of_node(contact),
            ));
            let own = streams.len().min(count(*slots) as usize);
            for stream in streams.drain(..own) {
                stream.set_nonblocking(true)?;
                pipes.push((number, Pipe::new(Channel::Plain(stream))));
            }
        }
        let pool = Pool::new(keep_alive, nodes, pipes)?;
        clients.push(HttpClient::new(Arc::clone(&dialect), pool, *slots));
    }
    Ok((clients, connected))
}

impl Dialect {
    /// Asks a contact whether it is such a server; what it calls itself. What a server of documents says of one is a result of
    /// the load.
    fn greet(&self, contact: &str) -> Result<Said, ConnectError> {
        match self {
            Self::Documents(documents) => ask(contact, "HEAD", documents.first_path()),
            Self::Etcd(_) => {
                let mut said = ask(contact, "GET", "/version")?;
                let version: Option<Version> = serde_json::from_slice(&said.body).ok();
                said.server = version
                    .ok_or_else(|| ConnectError::Refused {
                        message: format!("{contact} is no etcd: {} for /version", said.status),
                        hint: "is that the member's port for clients (2379 by default)?",
                        is_away: true,
                    })?
                    .etcdserver;
                Ok(said)
            }
        }
    }
}

/// A contact that has answered cannot be reached again: this machine's limits are no fault of it.
fn or_machine(error: ContactError, said: &Said) -> ConnectError {
    if let ContactError::Connect { source, .. } = &error
        && let Some(errno @ (Errno::MFILE | Errno::NFILE | Errno::ADDRNOTAVAIL)) = Errno::from_io_error(source)
    {
        return io::Error::into(explain(said.address, errno));
    }
    error.into()
}
