//! Token ring of the simulated cluster: members, and who owns which tokens. Every node computes it from the same addresses.

use std::net::SocketAddr;

use steelyard_cql::murmur3;

/// One node as the others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub address: SocketAddr,
    pub host_id: [u8; 16],
    /// It owns the keys with tokens up to this one, and above that of the member before.
    pub token: i64,
}

/// All nodes, in the order of their addresses.
#[derive(Clone, Debug)]
pub struct Ring {
    members: Vec<Member>,
    own: usize,
}

impl Ring {
    /// The ring of `own` and `peers`; equal shares for all.
    pub fn new(own: SocketAddr, peers: &[SocketAddr]) -> Self {
        let mut addresses: Vec<SocketAddr> = peers.iter().copied().chain([own]).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let count = addresses.len();
        let member = |(index, address): (usize, SocketAddr)| Member {
            address,
            host_id: uuid(&address.to_string()),
            token: token(index, count),
        };
        let own = addresses.binary_search(&own).unwrap_or_default();
        Self {
            members: addresses.into_iter().enumerate().map(member).collect(),
            own,
        }
    }

    pub fn own(&self) -> &Member {
        &self.members[self.own]
    }

    /// All but this node.
    pub fn peers(&self) -> impl Iterator<Item = &Member> {
        self.members
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != self.own)
            .map(|(_, member)| member)
    }

    pub fn size(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }
}

/// Evenly spaced: -2^63 + 1 + index * 2^64 / count.
fn token(index: usize, count: usize) -> i64 {
    let offset = (index as u128) * (1_u128 << 64) / (count as u128);
    #[allow(clippy::cast_possible_truncation)] // below 2^64
    let offset = offset as u64;
    (i64::MIN + 1).wrapping_add_unsigned(offset)
}

/// A uuid that depends on the text alone; marked as version 4.
pub fn uuid(text: &str) -> [u8; 16] {
    let halves = [
        murmur3::token(text.as_bytes()),
        murmur3::token(format!("{text}/second half").as_bytes()),
    ];
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&halves[0].to_be_bytes());
    bytes[8..].copy_from_slice(&halves[1].to_be_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_sees_the_same_ring() {
        let all: Vec<SocketAddr> = ["10.0.0.2:9042", "10.0.0.10:9042", "10.0.0.1:9042"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let mut tokens = Vec::new();
        for own in &all {
            let peers: Vec<SocketAddr> = all.iter().copied().filter(|address| address != own).collect();
            let ring = Ring::new(*own, &peers);
            assert_eq!(ring.size(), 3);
            assert_eq!(ring.own().address, *own);
            assert_eq!(ring.peers().count(), 2);
            tokens.push((ring.own().address, ring.own().token));
        }
        tokens.sort_unstable();
        let third = 6_148_914_691_236_517_205_i64;
        let expected = [i64::MIN + 1, i64::MIN + 1 + third, i64::MIN + 1 + third + third];
        assert_eq!(tokens.iter().map(|(_, token)| *token).collect::<Vec<_>>(), expected);
        assert_ne!(uuid("a"), uuid("b"));
    }
}
