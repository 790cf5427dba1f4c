//! Shards of ScyllaDB: which core of a node owns a token, and how a connection reaches that core.
//!
//! Source: ScyllaDB, `docs/dev/protocol-extensions.md`, "Intranode sharding". Tried against our own simulated server only,
//! never against a ScyllaDB. Tables with tablets are not routed by this rule; their operations arrive, but often at another
//! core or node, which passes them on.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};

const ALGORITHM: &str = "biased-token-round-robin";
const PARTITIONER: &str = "Murmur3Partitioner";
const MAX_SHARDS: u32 = 4_096;
/// Local ports that are tried: the dynamic range, which is not assigned to anybody.
const FIRST_LOCAL_PORT: u32 = 49_152;
const LAST_LOCAL_PORT: u32 = 65_535;
/// Most local ports that are tried for one connection.
const MAX_PORT_TRIES: u32 = 256;

/// How a node divides its tokens among its cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sharding {
    pub count: u32,
    ignore_msb: u32,
    port: Option<u16>,
    port_tls: Option<u16>,
}

impl Sharding {
    /// From the options of `SUPPORTED`: the shard that the connection leads to, and the node's rule. `None` where there
    /// are no shards, or the rule is none that we know.
    pub fn announced(options: &[(&str, Vec<&str>)]) -> Option<(u32, Self)> {
        let text = |name: &str| {
            let option = options.iter().find(|(option, _)| *option == name)?;
            option.1.first().copied()
        };
        let number = |name: &str| text(name)?.parse().ok();
        let (shard, count) = (number("SCYLLA_SHARD")?, number("SCYLLA_NR_SHARDS")?);
        let ignore_msb = number("SCYLLA_SHARDING_IGNORE_MSB")?;
        let known = text("SCYLLA_SHARDING_ALGORITHM")? == ALGORITHM
            && text("SCYLLA_PARTITIONER").is_none_or(|name| name.ends_with(PARTITIONER));
        if !known || shard >= count || count > MAX_SHARDS || ignore_msb >= 64 {
            return None;
        }
        let port = |name: &str| text(name)?.parse().ok();
        let sharding = Self {
            count,
            ignore_msb,
            port: port("SCYLLA_SHARD_AWARE_PORT"),
            port_tls: port("SCYLLA_SHARD_AWARE_PORT_SSL"),
        };
        Some((shard, sharding))
    }

    /// Port at which the client's own port chooses the shard.
    pub fn port(&self, encrypted: bool) -> Option<u16> {
        if encrypted { self.port_tls } else { self.port }
    }

    /// The shard that owns a token: the token counted from the lowest one, its first bits shifted out, times the number of
    /// shards, over 2^64.
    #[inline]
    pub fn shard_of(&self, token: i64) -> u32 {
        let biased = (token as u64).wrapping_add(1 << 63) << self.ignore_msb;
        ((u128::from(biased) * u128::from(self.count)) >> 64) as u32
    }

    /// Connects from a local port that stands for that shard: its remainder by the number of shards. `salt` spreads where
    /// the search begins.
    pub fn connect(&self, to: SocketAddr, shard: u32, salt: u32, timeout: Duration) -> io::Result<TcpStream> {
        let steps = (LAST_LOCAL_PORT - FIRST_LOCAL_PORT - self.count) / self.count;
        let first = FIRST_LOCAL_PORT.next_multiple_of(self.count) + shard;
        let mut taken = Errno::ADDRINUSE;
        for attempt in 0..steps.min(MAX_PORT_TRIES) {
            let port = first + (salt.wrapping_add(attempt) % steps) * self.count;
            match connect_from(port as u16, to, timeout) {
                Err(error @ (Errno::ADDRINUSE | Errno::ADDRNOTAVAIL)) => taken = error,
                Err(Errno::INPROGRESS | Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                other => return other.map_err(Into::into),
            }
        }
        Err(taken.into())
    }
}

fn connect_from(port: u16, to: SocketAddr, timeout: Duration) -> Result<TcpStream, Errno> {
    let (family, any) = match to {
        SocketAddr::V4(_) => (AddressFamily::INET, IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        SocketAddr::V6(_) => (AddressFamily::INET6, IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // A port of a connection that has just been closed may be used again.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(timeout))?;
    bind(&socket, &SocketAddr::new(any, port))?;
    connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharding(count: u32, ignore_msb: u32) -> Sharding {
        Sharding {
            count,
            ignore_msb,
            port: Some(19_042),
            port_tls: None,
        }
    }

    #[test]
    fn tokens_fall_into_equal_shares() {
        let four = sharding(4, 0);
        let cases = [
            (i64::MIN, 0),
            (-1 << 62, 1),
            (-1, 1),
            (0, 2),
            (1 << 62, 3),
            (i64::MAX, 3),
        ];
        for (token, shard) in cases {
            assert_eq!(four.shard_of(token), shard, "{token}");
        }
        // With 12 bits ignored each of 4,096 pieces of the ring is divided anew: (token + 2^63) mod 2^52, times 3, over 2^52.
        let three = sharding(3, 12);
        for (offset, shard) in [
            (0_u64, 0),
            ((1 << 52) / 3 + 1, 1),
            ((1 << 52) * 2 / 3 + 1, 2),
            (1 << 52, 0),
        ] {
            assert_eq!(
                three.shard_of(i64::MIN.wrapping_add_unsigned(offset)),
                shard,
                "{offset}"
            );
        }
    }

    #[test]
    fn what_a_node_announces_is_read() {
        let mut options = vec![
            ("SCYLLA_SHARD", vec!["3"]),
            ("SCYLLA_NR_SHARDS", vec!["12"]),
            ("SCYLLA_SHARDING_IGNORE_MSB", vec!["12"]),
            ("SCYLLA_SHARDING_ALGORITHM", vec![ALGORITHM]),
            (
                "SCYLLA_PARTITIONER",
                vec!["org.apache.cassandra.dht.Murmur3Partitioner"],
            ),
            ("SCYLLA_SHARD_AWARE_PORT", vec!["19042"]),
        ];
        assert_eq!(Sharding::announced(&options), Some((3, sharding(12, 12))));
        assert_eq!(sharding(12, 12).port(true), None);
        options[3].1 = vec!["another"];
        assert_eq!(Sharding::announced(&options), None);
        assert_eq!(Sharding::announced(&[("COMPRESSION", vec!["lz4"])]), None);
    }

    #[test]
    fn the_local_port_stands_for_the_shard() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        for shard in 0..3 {
            // The same salt twice: the second finds its port taken.
            let open = || sharding(3, 12).connect(to, shard, 7, Duration::from_secs(5)).unwrap();
            let (first, second) = (open(), open());
            for stream in [&first, &second] {
                assert_eq!(u32::from(stream.local_addr().unwrap().port()) % 3, shard);
            }
            assert_ne!(first.local_addr().unwrap(), second.local_addr().unwrap());
        }
    }
}
