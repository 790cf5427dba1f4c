//! Token ring of the simulated cluster: members, and who owns which tokens. Every node computes it from the same addresses.

use std::net::SocketAddr;

use steelyard_workload::murmur3;

/// One node as the others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub address: SocketAddr,
    pub host_id: [u8; 16],
    /// It owns the keys with tokens up to this one, and above that of the member before.
    pub token: i64,
}

/// All members, in the order of their addresses.
#[derive(Clone, Debug)]
pub struct Ring {
    members: Vec<Member>,
    /// This node; after it has left, as it was last.
    own: Member,
}

impl Ring {
    /// The ring of `own` and `peers`; equal shares for all.
    pub fn new(own: SocketAddr, peers: &[SocketAddr]) -> Self {
        let mut ring = Self {
            members: Vec::new(),
            own: member(own, 0, 1),
        };
        ring.share_out(peers.iter().copied().chain([own]).collect());
        ring
    }

    /// Takes a member in; the shares are equal again.
    pub fn add(&mut self, address: SocketAddr) {
        self.share_out(self.addresses().chain([address]).collect());
    }

    /// Goes on without a member; the shares are equal again.
    pub fn remove(&mut self, address: SocketAddr) {
        self.share_out(self.addresses().filter(|other| *other != address).collect());
    }

    fn share_out(&mut self, mut addresses: Vec<SocketAddr>) {
        addresses.sort_unstable();
        addresses.dedup();
        let count = addresses.len();
        let numbered = addresses.into_iter().enumerate();
        self.members = numbered.map(|(index, address)| member(address, index, count)).collect();
        if let Some(own) = self.members.iter().find(|member| member.address == self.own.address) {
            self.own = own.clone();
        }
    }

    pub fn own(&self) -> &Member {
        &self.own
    }

    /// All members, this node too while it is one.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.members.iter().map(|member| member.address)
    }

    /// All but this node.
    pub fn peers(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.address != self.own.address)
    }

    pub fn size(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }
}

fn member(address: SocketAddr, index: usize, count: usize) -> Member {
    Member {
        address,
        host_id: uuid(&address.to_string()),
        token: token(index, count),
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

    #[test]
    fn a_ring_that_changes_is_that_of_its_members() {
        let address = |last: u8| SocketAddr::from(([10, 0, 0, last], 9042));
        let all = |ring: &Ring| ring.members.clone();
        let mut ring = Ring::new(address(2), &[address(1)]);
        ring.add(address(3));
        assert_eq!(all(&ring), all(&Ring::new(address(2), &[address(1), address(3)])));
        ring.remove(address(1));
        assert_eq!(all(&ring), all(&Ring::new(address(2), &[address(3)])));
        assert_eq!((ring.own(), ring.peers().count()), (&ring.members[0], 1));
        let before = ring.own().clone();
        ring.remove(address(2));
        assert_eq!((ring.own(), ring.size(), ring.peers().count()), (&before, 1, 1));
    }
}
