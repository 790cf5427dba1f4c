//! Beginning of a load: its contacts, their first connections, and the clients that they are dealt to.

use std::sync::Arc;

use steelyard_channel::Pipe;
use steelyard_channel::contact::{Opened, open_each};
use steelyard_wire::Order;
use steelyard_workload::OrderError;

use crate::ConnectError;
use crate::client::PipelinedClient;
use crate::nodes::Node;
use crate::pipelined::Pipelined;
use crate::threads::Shared;

const MAX_CONTACTS: usize = 1_024;
/// Connections of one worker to one node.
const MAX_PER_NODE: usize = 1_024;

/// Refuses an order without contacts, or with too many.
///
/// # Errors
///
/// How many are allowed.
pub fn check_contacts(order: &Order) -> Result<(), OrderError> {
    match order.contacts.len() {
        1..=MAX_CONTACTS => Ok(()),
        count => Err(OrderError::new("contacts", count, "1 to 1024 of address:port")),
    }
}

/// Refuses an order that asks for TLS.
///
/// # Errors
///
/// That the protocol has none.
pub fn refuse_tls(order: &Order, protocol: &str) -> Result<(), OrderError> {
    match order.tls {
        None => Ok(()),
        Some(_) => Err(OrderError::because(
            "tls",
            format!("not possible over {protocol}: leave it out"),
        )),
    }
}

/// Connections of each worker to each node.
///
/// # Errors
///
/// How many are allowed.
pub fn per_node(order: &Order) -> Result<usize, OrderError> {
    match order.connections_per_node as usize {
        count @ 1..=MAX_PER_NODE => Ok(count),
        count => Err(OrderError::new("connections_per_node", count, "1 to 1024")),
    }
}

/// Connections with what is known of them.
pub type Peers<P> = Vec<(Pipe, <P as Pipelined>::Peer)>;

/// `count` connections to each contact, and where `some` are enough, why the others are away.
///
/// # Errors
///
/// A contact that does not answer or refuses.
pub fn open_all<P: Pipelined>(
    access: &P::Access,
    contacts: &[String],
    count: usize,
    some: bool,
) -> Result<Opened<Peers<P>>, ConnectError> {
    let some = some && contacts.len() > 1;
    open_each(contacts, some, ConnectError::is_absence, |contact| {
        (0..count).map(|_| P::open(access, contact)).collect()
    })
}

/// The nodes of connections.
pub fn nodes<P: Pipelined>(opened: &[(String, Peers<P>)]) -> Vec<Node> {
    let address = |peers: &Peers<P>| peers.first()?.0.channel().socket().peer_addr().ok();
    opened
        .iter()
        .map(|(contact, peers)| Node {
            contact: contact.clone(),
            address: address(peers),
        })
        .collect()
}

/// A client for each entry of `slots` (its places in flight), each with `per_node` of the connections to each node.
///
/// # Errors
///
/// No entry; what the kernel says.
pub fn clients<P: Pipelined>(
    access: P::Access,
    per_node: usize,
    opened: Vec<Peers<P>>,
    slots: &[u32],
    protocol: impl Fn() -> P,
) -> Result<Vec<PipelinedClient<P>>, ConnectError> {
    let shared = Arc::new(Shared::new(access, per_node));
    let mut nodes: Vec<_> = opened.into_iter().map(Vec::into_iter).collect();
    let mut clients = Vec::new();
    for slots in slots {
        let own = nodes.iter_mut().flat_map(|peers| peers.by_ref().take(per_node));
        clients.push(PipelinedClient::new(Arc::clone(&shared), protocol(), own, *slots)?);
    }
    Ok(clients)
}
