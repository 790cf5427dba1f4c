//! A node in shards, as ScyllaDB announces them (`docs/dev/protocol-extensions.md`, "Intranode sharding"), so that a client
//! which routes by them can be tried. A shard here refuses what belongs to another, so that a wrong route is found out;
//! ScyllaDB would pass it on.

use std::net::SocketAddr;

/// Bits of the token that are passed over before it is divided: ScyllaDB's default.
const IGNORED_BITS: u32 = 12;

#[derive(Clone, Debug)]
pub struct Shards {
    pub count: u32,
    /// Port at which the client's own port chooses the shard.
    port: u16,
    encrypted: bool,
    next: u32,
}

impl Shards {
    pub fn new(count: u32, port: u16, encrypted: bool) -> Self {
        Self {
            count,
            port,
            encrypted,
            next: 0,
        }
    }

    /// Where a new connection comes to: by its port if it chose, else one after the other.
    pub fn of_connection(&mut self, client: SocketAddr, chose: bool) -> u32 {
        if chose {
            return u32::from(client.port()) % self.count;
        }
        self.next = (self.next + 1) % self.count;
        self.next
    }

    /// The owner of a token. Written out from the definition: floor(((token + 2^63) * 2^ignored mod 2^64) * count / 2^64).
    pub fn of_token(&self, token: i64) -> u32 {
        let biased = (i128::from(token) + (1_i128 << 63)) as u128;
        let shifted = (biased << IGNORED_BITS) % (1_u128 << 64);
        (shifted * u128::from(self.count) / (1_u128 << 64)) as u32
    }

    /// What `SUPPORTED` says to a connection at `shard`.
    pub fn options(&self, shard: u32) -> Vec<(&'static str, String)> {
        let port = if self.encrypted {
            "SCYLLA_SHARD_AWARE_PORT_SSL"
        } else {
            "SCYLLA_SHARD_AWARE_PORT"
        };
        vec![
            ("SCYLLA_SHARD", shard.to_string()),
            ("SCYLLA_NR_SHARDS", self.count.to_string()),
            (
                "SCYLLA_PARTITIONER",
                "org.apache.cassandra.dht.Murmur3Partitioner".to_owned(),
            ),
            ("SCYLLA_SHARDING_ALGORITHM", "biased-token-round-robin".to_owned()),
            ("SCYLLA_SHARDING_IGNORE_MSB", IGNORED_BITS.to_string()),
            (port, self.port.to_string()),
        ]
    }
}
