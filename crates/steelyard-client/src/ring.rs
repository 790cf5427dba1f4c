//! Who owns which tokens: learnt once from the cluster, then looked up for every operation.

use steelyard_cql::Value;

use crate::link::{Link, LinkError, unexpected};

const STRANGER: u16 = u16::MAX;

/// Replicas of every token range, as indices of the order's contacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ring {
    /// Upper ends of the ranges, ascending.
    tokens: Vec<i64>,
    /// `factor` entries a range; nodes that are no contact are left out by `STRANGER`.
    replicas: Vec<u16>,
    factor: usize,
}

/// A node as it describes itself or a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub id: [u8; 16],
    pub data_centre: String,
    pub tokens: Vec<i64>,
}

impl Ring {
    /// Each token's replicas are the owners of it and of the next tokens clockwise, until `factor` distinct nodes are
    /// found: `SimpleStrategy`, and `NetworkTopologyStrategy` in one data centre with one rack. `owned` are tokens with
    /// their member's number; members from `contacts` on are no contacts.
    fn build(mut owned: Vec<(i64, usize)>, contacts: usize, factor: usize) -> Self {
        owned.sort_unstable();
        let mut members: Vec<usize> = owned.iter().map(|(_, member)| *member).collect();
        members.sort_unstable();
        members.dedup();
        let factor = factor.clamp(1, members.len().max(1));
        let mut replicas = Vec::with_capacity(owned.len() * factor);
        for start in 0..owned.len() {
            let mut found: Vec<usize> = Vec::with_capacity(factor);
            for (_, member) in owned[start..].iter().chain(&owned[..start]) {
                if found.len() == factor {
                    break;
                }
                if !found.contains(member) {
                    found.push(*member);
                }
            }
            replicas.extend(
                found
                    .iter()
                    .map(|member| if *member < contacts { *member as u16 } else { STRANGER }),
            );
        }
        Self {
            tokens: owned.into_iter().map(|(token, _)| token).collect(),
            replicas,
            factor,
        }
    }

    /// Contacts that are replicas of a token, the primary first.
    #[inline]
    pub fn replicas(&self, token: i64) -> impl Iterator<Item = u16> + Clone + '_ {
        let range = self.tokens.partition_point(|end| *end < token);
        let range = if range == self.tokens.len() { 0 } else { range };
        let place = range * self.factor;
        let replicas = self.replicas.get(place..place + self.factor).unwrap_or_default();
        replicas.iter().copied().filter(|node| *node != STRANGER)
    }

    /// Replicas of each range at most.
    pub fn factor(&self) -> usize {
        self.factor
    }

    /// Learns the ring from the contacts, in their order.
    pub fn learn(links: &mut [Link], keyspace: &str) -> Result<Self, LinkError> {
        let contacts = links.len();
        let mut members = Vec::new();
        for link in links.iter_mut() {
            match read_members(link, "SELECT host_id, data_center, tokens FROM system.local")?.pop() {
                Some(member) => members.push(member),
                None => {
                    return Err(unexpected(
                        link.contact().to_owned(),
                        "no row of system.local".to_owned(),
                        "one",
                    ));
                }
            }
        }
        let Some(first) = links.first_mut() else {
            return Ok(Self::build(Vec::new(), contacts, 1));
        };
        let here = members[0].data_centre.clone();
        for peer in read_members(first, "SELECT host_id, data_center, tokens FROM system.peers")? {
            if members.iter().all(|known| known.id != peer.id) {
                members.push(peer);
            }
        }
        let factor = read_factor(first, keyspace, &here)?;
        let near = members
            .iter()
            .enumerate()
            .filter(|(_, member)| member.data_centre == here);
        let owned = near
            .flat_map(|(at, member)| member.tokens.iter().map(move |token| (*token, at)))
            .collect();
        Ok(Self::build(owned, contacts, factor))
    }
}

/// The nodes that a statement lists. A peer that is just joining may have nulls; it owns nothing yet and is left out.
fn read_members(link: &mut Link, statement: &str) -> Result<Vec<Member>, LinkError> {
    let mut members = Vec::new();
    link.rows(statement, |row| {
        let (Some(Value::Uuid(id)), Some(Value::Text(data_centre)), Some(Value::List(tokens))) =
            (row.get("host_id"), row.get("data_center"), row.get("tokens"))
        else {
            return;
        };
        let number = |token: &Value<'_>| match token {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        };
        let tokens = tokens.iter().filter_map(number).collect();
        members.push(Member {
            id: *id,
            data_centre: (*data_centre).to_owned(),
            tokens,
        });
    })?;
    Ok(members)
}

/// The keyspace's replication factor in that data centre; 1 where its strategy has none.
fn read_factor(link: &mut Link, keyspace: &str, data_centre: &str) -> Result<usize, LinkError> {
    let quoted = keyspace.replace('\'', "''");
    let statement = format!("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '{quoted}'");
    let mut factor = 1;
    link.rows(&statement, |row| {
        let Some(Value::Map(pairs)) = row.get("replication") else {
            return;
        };
        let value = |name: &str| {
            pairs.iter().find_map(|(key, value)| match (key, value) {
                (Value::Text(key), Value::Text(value)) if *key == name => Some(*value),
                _ => None,
            })
        };
        // A factor with transient replicas reads "3/1".
        let text = value("replication_factor")
            .or_else(|| value(data_centre))
            .and_then(|text| text.split('/').next());
        factor = text.and_then(|text| text.parse().ok()).unwrap_or(1);
    })?;
    Ok(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ring: &Ring, token: i64) -> Vec<u16> {
        ring.replicas(token).collect()
    }

    #[test]
    fn a_range_belongs_to_the_token_that_ends_it() {
        let ring = Ring::build(vec![(100, 2), (-100, 0), (0, 1)], 3, 1);
        let cases = [
            (i64::MIN, 0),
            (-100, 0),
            (-99, 1),
            (0, 1),
            (1, 2),
            (100, 2),
            (101, 0),
            (i64::MAX, 0),
        ];
        for (token, node) in cases {
            assert_eq!(at(&ring, token), [node], "{token}");
        }
    }

    #[test]
    fn replicas_are_the_next_distinct_nodes_clockwise() {
        let ring = Ring::build(vec![(0, 0), (10, 0), (20, 1), (30, 2)], 3, 2);
        assert_eq!(at(&ring, 5), [0, 1]);
        assert_eq!(at(&ring, 15), [1, 2]);
        assert_eq!(at(&ring, 25), [2, 0]);
        assert_eq!(Ring::build(vec![(0, 0), (10, 1)], 2, 5).factor(), 2);
    }

    #[test]
    fn nodes_that_are_no_contact_are_left_out_but_keep_their_ranges() {
        let ring = Ring::build(vec![(0, 0), (10, 1)], 1, 1);
        assert_eq!(at(&ring, 5), Vec::<u16>::new());
        assert_eq!(at(&ring, 11), [0]);
        assert_eq!(at(&Ring::build(Vec::new(), 1, 3), 5), Vec::<u16>::new());
    }
}
