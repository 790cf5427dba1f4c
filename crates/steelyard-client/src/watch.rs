//! Watches the cluster off the path: one connection in a thread of its own hears of nodes that come, go and move, and of
//! keyspaces that change; then the ring is learnt anew and handed to the workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use steelyard_wire::{Order, Routing};

use crate::connect::{BACKOFF_FIRST, BACKOFF_LONGEST, Bell, CONNECT_TIMEOUT, MAX_CONNECTIONS, News, Shared};
use crate::link::{Link, LinkError};
use crate::ring::{HostId, Member, Ring, read_local, read_peers, read_placement};
use crate::routes::Routes;

const EVENTS: [&str; 3] = ["TOPOLOGY_CHANGE", "STATUS_CHANGE", "SCHEMA_CHANGE"];
/// Longest wait for an event before it is looked whether the load has ended.
const POLL: Duration = Duration::from_millis(500);
/// Events come in flocks: so long must none have come before the ring is learnt anew, and so long is waited at most.
const QUIET: Duration = Duration::from_millis(200);
const QUIET_LONGEST: Duration = Duration::from_secs(2);
/// A node that joined but did not answer is tried again after this.
const JOIN_RETRY: Duration = Duration::from_secs(2);

/// What is known of the cluster's nodes.
pub(crate) struct Cluster {
    /// Identities of the nodes of `Routes`, in their order.
    nodes: Vec<HostId>,
    /// The data centre of the first contact; operations go to nodes there.
    here: String,
}

impl Cluster {
    /// Learns identities and, where operations are routed by token, the ring. `links`: one to each contact, in their
    /// order.
    pub fn learn(links: &mut [&mut Link], order: &Order) -> Result<(Self, Option<Ring>), LinkError> {
        let members = links
            .iter_mut()
            .map(|link| read_local(link))
            .collect::<Result<Vec<_>, _>>()?;
        let cluster = Self {
            nodes: members.iter().map(|member| member.id).collect(),
            here: members
                .first()
                .map(|member| member.data_centre.clone())
                .unwrap_or_default(),
        };
        let Some(first) = links.first_mut() else {
            return Ok((cluster, None));
        };
        let ring = if order.routing == Routing::Token {
            let peers = read_peers(first)?;
            Some(cluster.ring(first, members, peers, &order.keyspace)?)
        } else {
            None
        };
        Ok((cluster, ring))
    }

    fn ring(
        &self,
        link: &mut Link,
        mut members: Vec<Member>,
        peers: Vec<Member>,
        keyspace: &str,
    ) -> Result<Ring, LinkError> {
        for peer in peers {
            if members.iter().all(|known| known.id != peer.id) {
                members.push(peer);
            }
        }
        let placement = read_placement(link, keyspace, &self.here)?;
        Ok(Ring::build(&members, &self.nodes, &placement, &self.here))
    }
}

/// The watching thread's state.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    cluster: Cluster,
    routes: Arc<Routes>,
    workers: Vec<Bell>,
    closed: Arc<AtomicBool>,
    /// When to look again although there was no event.
    retry: Option<Instant>,
}

impl Watch {
    pub fn new(
        shared: Arc<Shared>,
        cluster: Cluster,
        routes: Arc<Routes>,
        workers: Vec<Bell>,
        closed: Arc<AtomicBool>,
    ) -> Self {
        Self {
            shared,
            cluster,
            routes,
            workers,
            closed,
            retry: None,
        }
    }

    /// Watches until the load has ended: on one node as long as that answers, then on the next.
    pub fn keep(mut self) {
        let mut backoff = BACKOFF_FIRST;
        // At the very first there was no such while, but there may be nodes that are no contact.
        let mut first = !self.shared.order.discover;
        let mut turn = 0;
        while !self.ended() {
            if let Ok(mut link) = self.open(turn) {
                // What happened while nobody watched is not told.
                let known = std::mem::take(&mut first) || self.look(&mut link).is_ok();
                // It ends with the connection, or with the load.
                if known && self.listen(&mut link).is_err() {
                    backoff = BACKOFF_FIRST;
                }
            }
            turn += 1;
            if !self.ended() {
                thread::sleep(backoff);
                backoff = (backoff * 2).min(BACKOFF_LONGEST);
            }
        }
    }

    fn ended(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn open(&self, turn: usize) -> Result<Link, LinkError> {
        let place = &self.routes.nodes[turn % self.routes.nodes.len()];
        let mut link = Link::open(&place.contact, &self.shared.access, CONNECT_TIMEOUT)?;
        link.register(&EVENTS)?;
        Ok(link)
    }

    fn listen(&mut self, link: &mut Link) -> Result<(), LinkError> {
        while !self.ended() {
            let due = self.retry.is_some_and(|at| at <= Instant::now());
            if due || link.event_within(POLL)? {
                let longest = Instant::now() + QUIET_LONGEST;
                while link.event_within(QUIET)? && Instant::now() < longest {}
                self.look(link)?;
            }
        }
        Ok(())
    }

    /// Learns the cluster anew, and tells the workers what has changed.
    fn look(&mut self, link: &mut Link) -> Result<(), LinkError> {
        self.retry = None;
        let own = read_local(link)?;
        let peers = read_peers(link)?;
        let mut routes = (*self.routes).clone();
        self.identify_again(&own, &peers);
        if self.shared.order.discover {
            self.add_joined(&own, &peers, link.contact(), &mut routes);
        }
        if self.shared.order.routing == Routing::Token {
            let keyspace = &self.shared.order.keyspace;
            routes.ring = Some(self.cluster.ring(link, vec![own], peers, keyspace)?);
        }
        if routes != *self.routes {
            self.routes = Arc::new(routes);
            for worker in &self.workers {
                worker.ring(News::Routes(Arc::clone(&self.routes)));
            }
        }
        Ok(())
    }

    /// A node that was replaced answers at the same address with another identity.
    fn identify_again(&mut self, own: &Member, peers: &[Member]) {
        for (number, place) in self.routes.nodes.iter().enumerate() {
            let known = self.cluster.nodes[number];
            if own.id == known || peers.iter().any(|peer| peer.id == known) {
                continue;
            }
            // One that does not answer is away; its old identity owns nothing.
            let link = Link::open(&place.contact, &self.shared.access, CONNECT_TIMEOUT);
            if let Ok(member) = link.and_then(|mut link| read_local(&mut link)) {
                self.cluster.nodes[number] = member.id;
            }
        }
    }

    /// Gives connections to nodes of our data centre that are not known yet. Whoever does not answer is asked again later.
    fn add_joined(&mut self, own: &Member, peers: &[Member], contact: &str, routes: &mut Routes) {
        let port = contact.rsplit_once(':').map_or("9042", |(_, port)| port);
        for member in peers.iter().chain([own]) {
            if member.data_centre != self.cluster.here || self.cluster.nodes.contains(&member.id) {
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
            let Ok(link) = Link::open(&contact, &self.shared.access, CONNECT_TIMEOUT) else {
                self.retry = Some(Instant::now() + JOIN_RETRY);
                continue;
            };
            let per_shard = self.shared.order.connections_per_node as usize;
            let before = routes.nodes.len();
            routes.add(&contact, per_shard, link.shard().map(|(_, rule)| rule));
            if routes.connections() > MAX_CONNECTIONS {
                routes.nodes.truncate(before);
                return;
            }
            self.cluster.nodes.push(member.id);
        }
    }
}
