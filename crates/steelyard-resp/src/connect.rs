//! Start of a load: the first connections of all workers, and which node serves which hash slot.

use std::sync::Arc;

use steelyard_protocol::begin::{check_contacts, clients, nodes, open_all, per_node, refuse_tls};
use steelyard_protocol::nodes::{Node, node_at};
use steelyard_protocol::{ConnectError, Malformed};
use steelyard_wire::{Connected, Order, Resp};
use steelyard_workload::OrderError;

use crate::client::{RespClient, Worker};
use crate::commands::Commands;
use crate::hash_slots::read_ranges;
use crate::owners::Owners;
use crate::protocol::Answer;
use crate::server::Server;

/// What a server that is no cluster says to CLUSTER SLOTS, and one that is too old for clusters.
const NO_CLUSTER: [&[u8]; 2] = [
    b"-ERR This instance has cluster support disabled",
    b"-ERR unknown command",
];

/// Connects one client for each entry of `slots` (its places in flight) to every contact, or where the order has
/// `some_contacts` to every one that answers, and to every other master that they name.
///
/// # Errors
///
/// A contact that does not answer or refuses; an order that is not possible.
pub fn connect(order: &Order, target: &Resp, slots: &[u32]) -> Result<(Vec<RespClient>, Connected), ConnectError> {
    check_contacts(order)?;
    refuse_tls(order, "resp")?;
    let per_node = per_node(order)?;
    let commands = Arc::new(Commands::of(order, target)?);
    let count = slots.len() * per_node;
    let (mut opened, absent) = open_all::<Worker>(&(), &order.contacts, count, order.some_contacts)?;
    let mut nodes = nodes::<Worker>(&opened);
    let mut server = Server::open(&nodes[0].contact)?;
    let info = server.ask(&[b"INFO", b"server"])?;
    let version = version(&server.accepted(info)?);
    let owners = read_owners(&mut server, &mut nodes)?;
    let masters: Vec<String> = nodes[opened.len()..].iter().map(|node| node.contact.clone()).collect();
    if !masters.is_empty() {
        opened.extend(open_all::<Worker>(&(), &masters, count, false)?.0);
    }
    let (contacts, peers): (Vec<String>, Vec<_>) = opened.into_iter().unzip();
    let worker = || Worker::new(Arc::clone(&commands), per_node, nodes.clone(), owners.clone());
    let clients = clients((), per_node, peers, slots, worker)?;
    Ok((
        clients,
        Connected {
            connections: (contacts.len() * count) as u32,
            nodes: contacts,
            absent,
            server: version,
        },
    ))
}

/// The version in an answer to INFO; empty where there is none.
fn version(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let version = text.lines().find_map(|line| line.strip_prefix("redis_version:"));
    version.unwrap_or_default().trim().to_owned()
}

/// Which node serves which hash slot, as the first says; masters that are not among the contacts are added to `nodes`.
fn read_owners(server: &mut Server, nodes: &mut Vec<Node>) -> Result<Owners, ConnectError> {
    let asked = server.address()?.ip().to_string();
    let contact = nodes[0].contact.clone();
    let answer = server.ask(&[b"CLUSTER", b"SLOTS"])?;
    if NO_CLUSTER.iter().any(|said| answer.starts_with(said)) {
        if nodes.len() > 1 {
            let why = format!("{contact} is no member of a cluster: a single server is the only contact");
            return Err(OrderError::because("contacts", why).into());
        }
        return Ok(Owners::single());
    }
    let answer = server.accepted(answer)?;
    let answer = Answer::read(&answer).map_err(|source| server.broken(source))?;
    let ranges = read_ranges(&answer, &asked).map_err(|source| server.broken(source))?;
    if ranges.is_empty() {
        return Err(ConnectError::Refused {
            message: format!("the cluster of {contact} serves no hash slot"),
            hint: "create the cluster first: redis-cli --cluster create",
            is_away: false,
        });
    }
    let mut owned = Vec::new();
    for (slots, master) in ranges {
        let node = node_at(nodes, &master).ok_or_else(|| server.broken(Malformed("more than 1024 masters")))?;
        owned.push((slots, node));
    }
    Ok(Owners::of_ranges(owned))
}
