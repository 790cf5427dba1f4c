//! Topology of the cluster: a thread that listens for changes of nodes and keyspaces, reads the token ring again after each, and
//! hands the new routing table to the workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use steelyard_channel::{Backoff, MailSender};
use steelyard_wire::{Cql, Routing};

use crate::blocking_connection::BlockingConnection;
use crate::error::ConnectionError;
use crate::ring::{HostId, Member, Ring, read_local, read_peers, read_placement};
use crate::routing::{MAX_CONNECTIONS, RoutingTable};
use crate::worker::{Shared, WorkerMessage};

const EVENTS: [&str; 3] = ["TOPOLOGY_CHANGE", "STATUS_CHANGE", "SCHEMA_CHANGE"];
/// Longest wait for an event before checking whether the load has ended.
const POLL: Duration = Duration::from_millis(500);
/// Events come in groups: time without any event before the ring is read again, and the longest wait for that.
const QUIET: Duration = Duration::from_millis(200);
const QUIET_LONGEST: Duration = Duration::from_secs(2);
/// A node that joined but did not answer is tried again after this.
const JOIN_RETRY: Duration = Duration::from_secs(2);

/// What is known of the cluster's nodes.
pub(crate) struct Cluster {
    /// Identities of the nodes of `RoutingTable`, in their order.
    nodes: Vec<HostId>,
    /// The data centre of the first contact; operations go to nodes there.
    data_centre: String,
}

impl Cluster {
    /// Reads identities and, where operations are routed by token, the ring. `connections`: one to each contact, in their
    /// order.
    pub fn read(
        connections: &mut [&mut BlockingConnection],
        target: &Cql,
    ) -> Result<(Self, Option<Ring>), ConnectionError> {
        let members = connections
            .iter_mut()
            .map(|connection| read_local(connection))
            .collect::<Result<Vec<_>, _>>()?;
        let cluster = Self {
            nodes: members.iter().map(|member| member.id).collect(),
            data_centre: members
                .first()
                .map(|member| member.data_centre.clone())
                .unwrap_or_default(),
        };
        let Some(first) = connections.first_mut() else {
            return Ok((cluster, None));
        };
        let ring = if target.routing == Routing::Token {
            let peers = read_peers(first)?;
            Some(cluster.ring(first, members, peers, &target.keyspace)?)
        } else {
            None
        };
        Ok((cluster, ring))
    }

    fn ring(
        &self,
        connection: &mut BlockingConnection,
        mut members: Vec<Member>,
        peers: Vec<Member>,
        keyspace: &str,
    ) -> Result<Ring, ConnectionError> {
        for peer in peers {
            if members.iter().all(|known| known.id != peer.id) {
                members.push(peer);
            }
        }
        let placement = read_placement(connection, keyspace, &self.data_centre)?;
        Ok(Ring::build(&members, &self.nodes, &placement, &self.data_centre))
    }
}

/// The watching thread's state.
pub(crate) struct TopologyWatcher {
    shared: Arc<Shared>,
    cluster: Cluster,
    routing: Arc<RoutingTable>,
    workers: Vec<MailSender<WorkerMessage>>,
    closed: Arc<AtomicBool>,
    /// When to read the cluster again although there was no event.
    retry: Option<Instant>,
}

impl TopologyWatcher {
    pub fn new(
        shared: Arc<Shared>,
        cluster: Cluster,
        routing: Arc<RoutingTable>,
        workers: Vec<MailSender<WorkerMessage>>,
        closed: Arc<AtomicBool>,
    ) -> Self {
        Self {
            shared,
            cluster,
            routing,
            workers,
            closed,
            retry: None,
        }
    }

    /// Watches until the load has ended: on one node as long as that answers, then on the next.
    pub fn run(mut self) {
        let mut backoff = Backoff::new();
        // The first time nothing can have been missed, but there may be nodes that are not contacts.
        let mut first = !self.shared.order.discover;
        let mut turn = 0;
        while !self.ended() {
            if let Ok(mut connection) = self.open(turn) {
                // Events that came while there was no connection are lost.
                let current = std::mem::take(&mut first) || self.refresh(&mut connection).is_ok();
                // It ends with the connection, or with the load.
                if current && self.listen(&mut connection).is_err() {
                    backoff.reset();
                }
            }
            turn += 1;
            if !self.ended() {
                backoff.wait();
            }
        }
    }

    fn ended(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn open(&self, turn: usize) -> Result<BlockingConnection, ConnectionError> {
        let nodes = &self.routing.nodes;
        let there: Vec<_> = nodes.iter().filter(|node| !node.has_left()).collect();
        let node = there.get(turn % there.len().max(1)).copied().unwrap_or(&nodes[0]);
        let mut connection = BlockingConnection::open_for_load(&node.contact, None, 0, &self.shared.access)?;
        connection.register(&EVENTS)?;
        Ok(connection)
    }

    fn listen(&mut self, connection: &mut BlockingConnection) -> Result<(), ConnectionError> {
        while !self.ended() {
            let due = self.retry.is_some_and(|at| at <= Instant::now());
            if due || connection.event_within(POLL)? {
                let longest = Instant::now() + QUIET_LONGEST;
                while connection.event_within(QUIET)? && Instant::now() < longest {}
                self.refresh(connection)?;
            }
        }
        Ok(())
    }

    /// Reads the cluster again, and tells the workers what has changed.
    fn refresh(&mut self, connection: &mut BlockingConnection) -> Result<(), ConnectionError> {
        self.retry = None;
        let own = read_local(connection)?;
        let peers = read_peers(connection)?;
        let mut routing = (*self.routing).clone();
        self.identify_again(&own, &peers);
        if self.shared.order.discover {
            let listed = |id: &HostId| own.id == *id || peers.iter().any(|peer| peer.id == *id);
            for (node, id) in routing.nodes.iter_mut().zip(&self.cluster.nodes) {
                node.note_listed(listed(id));
            }
            self.add_joined(&own, &peers, connection.contact(), &mut routing);
        }
        if self.shared.target.routing == Routing::Token {
            let keyspace = &self.shared.target.keyspace;
            routing.ring = Some(self.cluster.ring(connection, vec![own], peers, keyspace)?);
        }
        if routing != *self.routing {
            self.routing = Arc::new(routing);
            for worker in &self.workers {
                worker.send(WorkerMessage::Routing(Arc::clone(&self.routing)));
            }
        }
        Ok(())
    }

    /// A node that was replaced answers at the same address with another identity.
    fn identify_again(&mut self, own: &Member, peers: &[Member]) {
        for (number, node) in self.routing.nodes.iter().enumerate() {
            let known = self.cluster.nodes[number];
            if node.has_left() || own.id == known || peers.iter().any(|peer| peer.id == known) {
                continue;
            }
            // One that does not answer is away; its old identity owns nothing.
            let connection = BlockingConnection::open_for_load(&node.contact, None, 0, &self.shared.access);
            if let Ok(member) = connection.and_then(|mut connection| read_local(&mut connection)) {
                self.cluster.nodes[number] = member.id;
            }
        }
    }

    /// Gives connections to nodes of our data centre that are not known yet. A node that does not answer is asked again later.
    fn add_joined(&mut self, own: &Member, peers: &[Member], contact: &str, routing: &mut RoutingTable) {
        let port = contact.rsplit_once(':').map_or("9042", |(_, port)| port);
        for member in peers.iter().chain([own]) {
            if member.data_centre != self.cluster.data_centre || self.cluster.nodes.contains(&member.id) {
                continue;
            }
            let Some((address, own_port)) = member.address else {
                continue;
            };
            let port = own_port.map_or(port.to_owned(), |port| port.to_string());
            let contact = match address {
                std::net::IpAddr::V4(address) => format!("{address}:{port}"),
                std::net::IpAddr::V6(address) => format!("[{address}]:{port}"),
            };
            let Ok(connection) = BlockingConnection::open_for_load(&contact, None, 0, &self.shared.access) else {
                self.retry = Some(Instant::now() + JOIN_RETRY);
                continue;
            };
            let per_shard = self.shared.order.connections_per_node as usize;
            let before = routing.nodes.len();
            routing.add(&contact, per_shard, connection.shard().map(|(_, rule)| rule));
            if routing.connections() > MAX_CONNECTIONS {
                routing.nodes.truncate(before);
                return;
            }
            self.cluster.nodes.push(member.id);
        }
    }
}
