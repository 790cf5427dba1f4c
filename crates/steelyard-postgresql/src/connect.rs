//! Start of a load: the first connections of all workers, and whether there are a primary and replicas.

use std::sync::Arc;

use steelyard_channel::ClientTls;
use steelyard_protocol::ConnectError;
use steelyard_protocol::begin::{check_contacts, clients, nodes, open_all, per_node};
use steelyard_protocol::watch::watch;
use steelyard_wire::{Connected, Order, Postgresql, ReadFrom};
use steelyard_workload::OrderError;

use crate::client::{PostgresqlClient, Worker};
use crate::replicas::Replicas;
use crate::session::{Access, PASSWORD_VARIABLE};
use crate::statements::Statements;

/// Connects one client for each entry of `slots` (its places in flight) to every contact, or where the order has
/// `some_contacts` to every one that answers, and prepares the statements.
///
/// # Errors
///
/// A contact that does not answer or refuses; an order that is not possible; no primary among the contacts, or several; no replica
/// where replicas are read from.
pub fn connect(
    order: &Order,
    target: &Postgresql,
    slots: &[u32],
) -> Result<(Vec<PostgresqlClient>, Connected), ConnectError> {
    check_contacts(order)?;
    let per_node = per_node(order)?;
    let statements = Arc::new(Statements::of(order, target)?);
    let access = Access {
        tls: order.tls.as_ref().map(ClientTls::new).transpose()?,
        user: target.user.clone(),
        password: std::env::var(PASSWORD_VARIABLE).ok(),
        database: target.database.clone(),
        statements: Arc::clone(&statements),
    };
    let count = slots.len() * per_node;
    let (opened, absent) = open_all::<Worker>(&access, &order.contacts, count, order.some_contacts)?;
    let firsts = || {
        let peers = opened.iter();
        peers.filter_map(|(contact, peers)| peers.first().map(|(_, peer)| (contact, peer)))
    };
    let Some((primary, _)) = firsts().find(|(_, peer)| peer.is_primary) else {
        return Err(ConnectError::Refused {
            message: format!("none of {} is a primary", order.contacts.join(", ")),
            hint: "promote one of them (pg_promote); servers before version 14 do not say which they are",
            is_away: false,
        });
    };
    if firsts().filter(|(_, peer)| peer.is_primary).count() > 1 {
        return Err(ConnectError::Refused {
            message: format!("several of {} are primaries", order.contacts.join(", ")),
            hint: "name one primary and its replicas: writes would be divided between servers that do not know each other",
            is_away: false,
        });
    }
    if target.read_from == ReadFrom::Replicas && firsts().all(|(_, peer)| peer.is_primary) {
        let why = "replicas, but no node in service is one: choose primary or any, or add a replica";
        return Err(OrderError::because("target.read_from", why).into());
    }
    let server = firsts()
        .next()
        .map(|(_, peer)| peer.version.clone())
        .unwrap_or_default();
    let follows = order.discover && target.read_from != ReadFrom::Primary;
    let replicas = follows.then(|| Replicas::of(&access, primary)).transpose()?;
    let nodes = nodes::<Worker>(&opened);
    let (contacts, peers): (Vec<String>, Vec<_>) = opened.into_iter().unzip();
    let worker = || Worker::new(Arc::clone(&statements), nodes.clone(), target.read_from);
    let clients = clients(access, per_node, peers, slots, worker)?;
    if let Some(mut replicas) = replicas {
        let mut known = replicas.in_service.clone();
        known.retain(|contact| nodes.iter().any(|node| node.is_at(contact)));
        watch(&clients, known, move |access| replicas.again(access));
    }
    Ok((
        clients,
        Connected {
            connections: (contacts.len() * count) as u32,
            nodes: contacts,
            absent,
            server,
        },
    ))
}
