//! Routing table: from the token of an operation to replicas, shards and connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steelyard_load::turns::turns;

use crate::ring::Ring;
use crate::shards::Sharding;

/// Most connections of one worker: their numbers have 16 bits.
pub(crate) const MAX_CONNECTIONS: usize = u16::MAX as usize;

/// The connections of one worker by node, and the token ring. Every worker has the same table; a connection never changes its
/// number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoutingTable {
    pub ring: Option<Ring>,
    pub nodes: Vec<NodeConnections>,
}

/// The connections of one node: `per_shard` for its first shard, then as many for its second, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeConnections {
    /// `address:port`.
    pub contact: String,
    pub first: usize,
    pub per_shard: usize,
    pub sharding: Option<Sharding>,
    pub life: Arc<Life>,
}

/// A node's membership from when it is known until it leaves; every table and thread sees the same. One that comes back has
/// another.
#[derive(Debug, Default)]
pub(crate) struct Life {
    /// It has left: nothing more is sent to it.
    left: AtomicBool,
    /// An operation was sent to it.
    pub routed: AtomicBool,
}

impl PartialEq for Life {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Life {}

impl NodeConnections {
    #[inline]
    pub fn has_left(&self) -> bool {
        self.life.left.load(Ordering::Relaxed)
    }

    /// Notes whether the cluster still lists the node.
    pub fn note_listed(&mut self, listed: bool) {
        if !listed {
            self.life.left.store(true, Ordering::Relaxed);
        } else if self.has_left() {
            self.life = Arc::default();
        }
    }

    pub fn count(&self) -> usize {
        self.per_shard * self.sharding.map_or(1, |sharding| sharding.count as usize)
    }

    /// The shard that a connection of this node is meant for.
    pub fn shard(&self, connection: usize) -> Option<(u32, Sharding)> {
        let shard = (connection - self.first) / self.per_shard;
        self.sharding.map(|sharding| (shard as u32, sharding))
    }

    /// A usable connection: of the token's shard, else any other of the node. `turn` goes round.
    #[inline]
    fn pick(&self, token: Option<i64>, turn: usize, usable: impl Fn(usize) -> bool) -> Option<usize> {
        if self.has_left() {
            return None;
        }
        let count = self.count();
        if count == 1 {
            return Some(self.first).filter(|connection| usable(*connection));
        }
        let own = match (self.sharding, token) {
            (Some(sharding), Some(token)) => {
                let first = self.first + sharding.shard_of(token) as usize * self.per_shard;
                in_turn(first, self.per_shard, turn).find(|connection| usable(*connection))
            }
            _ => None,
        };
        own.or_else(|| in_turn(self.first, count, turn).find(|connection| usable(*connection)))
    }
}

/// `count` numbers from `first` on, beginning with another at every turn.
#[inline]
fn in_turn(first: usize, count: usize, turn: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |step| first + (turn + step) % count)
}

impl RoutingTable {
    /// Adds a node with connections of its own.
    pub fn add(&mut self, contact: &str, per_shard: usize, sharding: Option<Sharding>) {
        let first = self.connections();
        self.nodes.push(NodeConnections {
            contact: contact.to_owned(),
            first,
            per_shard,
            sharding,
            life: Arc::default(),
        });
    }

    /// Number of connections.
    pub fn connections(&self) -> usize {
        self.nodes.last().map_or(0, |node| node.first + node.count())
    }

    /// The node of a connection.
    pub fn node_of(&self, connection: usize) -> Option<&NodeConnections> {
        let after = self.nodes.partition_point(|node| node.first <= connection);
        self.nodes.get(after.checked_sub(1)?)
    }

    /// A usable connection: of a replica of `token`, all of them in turn; else of any node that has not left, all of them in
    /// turn.
    #[inline]
    pub fn choose(&self, token: Option<i64>, turn: usize, usable: impl Fn(usize) -> bool + Copy) -> Option<usize> {
        if let (Some(ring), Some(token)) = (&self.ring, token) {
            let (replicas, factor) = (ring.replicas(token), ring.factor());
            let pick = |place| {
                let node = usize::from(replicas.clone().nth(place)?);
                self.nodes.get(node)?.pick(Some(token), turn / factor, usable)
            };
            let connection = turns(factor, turn).find_map(pick);
            if connection.is_some() {
                return connection;
            }
        }
        let standing = self.nodes.iter().filter(|node| !node.has_left());
        let count = standing.clone().count();
        let pick = |place| standing.clone().nth(place)?.pick(token, turn / count, usable);
        if count == 0 {
            None
        } else {
            turns(count, turn).find_map(pick)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::tests::ring_of;

    fn node(first: usize, per_shard: usize, shards: Option<u32>) -> NodeConnections {
        let rule = |shards: u32| {
            let count = shards.to_string();
            let options = [
                ("SCYLLA_SHARD", vec!["0"]),
                ("SCYLLA_NR_SHARDS", vec![count.as_str()]),
                ("SCYLLA_SHARDING_IGNORE_MSB", vec!["0"]),
                ("SCYLLA_SHARDING_ALGORITHM", vec!["biased-token-round-robin"]),
            ];
            Sharding::announced(&options).unwrap().1
        };
        NodeConnections {
            contact: "n:1".into(),
            first,
            per_shard,
            sharding: shards.map(rule),
            life: Arc::default(),
        }
    }

    fn chosen(routes: &RoutingTable, token: Option<i64>, down: &[usize]) -> Vec<Option<usize>> {
        (0..8)
            .map(|turn| routes.choose(token, turn, |connection| !down.contains(&connection)))
            .collect()
    }

    #[test]
    fn without_a_ring_every_node_has_its_turn_and_then_every_connection() {
        let nodes = vec![node(0, 2, None), node(2, 2, None)];
        let routes = RoutingTable { ring: None, nodes };
        let turns = [0, 2, 1, 3, 0, 2, 1, 3].map(Some);
        assert_eq!(chosen(&routes, None, &[]), turns);
        assert_eq!(chosen(&routes, None, &[2, 3]), [0, 0, 1, 1, 0, 0, 1, 1].map(Some));
        assert_eq!(chosen(&routes, None, &[0, 1, 2, 3]), [None; 8]);
    }

    #[test]
    fn with_a_ring_the_replicas_have_their_turn_and_their_connections() {
        let nodes = vec![node(0, 2, None), node(2, 2, None), node(4, 2, None)];
        // Two replicas a token: node 1 then node 2 for those up to 10.
        let ring = Some(ring_of(&[(10, 1), (20, 2), (30, 0)], 3, 2));
        let routes = RoutingTable { ring, nodes };
        assert_eq!(chosen(&routes, Some(5), &[]), [2, 4, 3, 5, 2, 4, 3, 5].map(Some));
        assert_eq!(chosen(&routes, Some(5), &[2, 3]), [4, 4, 5, 5, 4, 4, 5, 5].map(Some));
        // No replica at all: whoever is left.
        assert!(
            chosen(&routes, Some(5), &[2, 3, 4, 5])
                .iter()
                .all(|connection| connection.is_some_and(|at| at < 2))
        );
    }

    #[test]
    fn a_node_that_has_left_is_passed_over_until_it_comes_back() {
        let nodes = vec![node(0, 1, None), node(1, 1, None)];
        let ring = Some(ring_of(&[(i64::MAX, 1)], 2, 1));
        let mut routes = RoutingTable { ring, nodes };
        assert_eq!(chosen(&routes, Some(0), &[]), [Some(1); 8]);
        let before = routes.clone();
        routes.nodes[1].note_listed(false);
        assert_eq!(chosen(&routes, Some(0), &[]), [Some(0); 8]);
        assert_eq!(chosen(&before, None, &[]), [Some(0); 8], "every table knows at once");
        routes.nodes[1].note_listed(true);
        assert_ne!(routes, before);
        assert_eq!(chosen(&routes, Some(0), &[]), [Some(1); 8]);
    }

    /// How many of 240 operations each of these nodes is given.
    fn shares(routes: &RoutingTable, down: &[usize]) -> Vec<usize> {
        let mut counts = vec![0; routes.nodes.len()];
        for turn in 0..240 {
            let chosen = routes.choose(Some(5), turn, |connection| !down.contains(&connection));
            counts[chosen.unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn the_others_share_evenly_what_a_node_cannot_take() {
        let nodes: Vec<_> = (0..4).map(|first| node(first, 1, None)).collect();
        let mut routes = RoutingTable { ring: None, nodes };
        assert_eq!(shares(&routes, &[]), [60, 60, 60, 60]);
        assert_eq!(shares(&routes, &[1]), [80, 0, 80, 80], "its connection is lost");
        routes.nodes[1].note_listed(false);
        assert_eq!(shares(&routes, &[]), [80, 0, 80, 80], "it has left");
        routes.nodes[3].note_listed(false);
        assert_eq!(shares(&routes, &[]), [120, 0, 120, 0]);
        let ring = Some(ring_of(&[(10, 0), (20, 1), (30, 2)], 3, 3));
        let nodes = (0..3).map(|first| node(first, 1, None)).collect();
        let replicated = RoutingTable { ring, nodes };
        assert_eq!(shares(&replicated, &[0]), [0, 120, 120], "every node has every row");
    }

    #[test]
    fn a_token_goes_to_its_shard_while_that_stands() {
        let nodes = vec![node(0, 2, Some(4)), node(8, 1, None)];
        let ring = Some(ring_of(&[(i64::MAX, 0)], 2, 1));
        let routes = RoutingTable { ring, nodes };
        assert_eq!(routes.connections(), 9);
        // Token 0 is in the third of four shards: connections 4 and 5.
        assert_eq!(chosen(&routes, Some(0), &[]), [4, 5, 4, 5, 4, 5, 4, 5].map(Some));
        assert_eq!(chosen(&routes, Some(0), &[4]), [Some(5); 8]);
        assert!(
            chosen(&routes, Some(0), &[4, 5])
                .iter()
                .all(|connection| connection.is_some_and(|at| !(4..=5).contains(&at)))
        );
        assert_eq!(
            routes.node_of(5).and_then(|node| node.shard(5)).map(|(shard, _)| shard),
            Some(2)
        );
        assert_eq!(routes.node_of(8).map(|node| node.first), Some(8));
    }
}
