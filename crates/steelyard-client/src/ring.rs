//! Token ring: which nodes are replicas of a token. Read from the cluster, looked up for every operation.

use std::net::IpAddr;

use steelyard_cql::Value;

use crate::blocking_connection::BlockingConnection;
use crate::error::ConnectionError;

const NOT_SENT_TO: u16 = u16::MAX;
/// Replicas of a range that are kept, however many the keyspace names; operations go to them in turn.
const MAX_REPLICAS: usize = 64;
/// What is asked of a node about itself, and about the others: the second way where the first is unknown (before
/// Cassandra 4, and on others that speak its protocol).
const LOCAL: &str = "SELECT host_id, data_center, rack, tokens FROM system.local";
const PEERS_WITH_PORTS: &str =
    "SELECT host_id, data_center, rack, tokens, native_address, native_port FROM system.peers_v2";
const PEERS: &str = "SELECT host_id, data_center, rack, tokens, rpc_address FROM system.peers";

/// Replicas of every token range, as numbers of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ring {
    /// Upper ends of the ranges, ascending.
    tokens: Vec<i64>,
    /// `factor` entries a range; nodes to which nothing is sent are `NOT_SENT_TO`, as are entries that a range has not.
    replicas: Vec<u16>,
    factor: usize,
}

/// A node's identity in its cluster.
pub(crate) type HostId = [u8; 16];

/// A node as it describes itself or a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub id: HostId,
    pub data_centre: String,
    pub rack: String,
    pub tokens: Vec<i64>,
    /// Where clients reach it, if it says so; without a port the one that the cluster's others have.
    pub address: Option<(IpAddr, Option<u16>)>,
}

/// How a keyspace places its replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The next distinct nodes, wherever they are: `SimpleStrategy`.
    Next(usize),
    /// In each data centre a number of its own, in different racks while there are any: `NetworkTopologyStrategy`; here
    /// that of the one data centre to which we send.
    ByRack(usize),
}

impl Ring {
    /// `nodes`: identities of those to which operations are sent, in their order. Only they are replicas that `replicas`
    /// gives; `here` is their data centre.
    pub fn build(members: &[Member], nodes: &[HostId], placement: &Placement, here: &str) -> Self {
        let (factor, near) = match placement {
            Placement::Next(factor) => (*factor, None),
            Placement::ByRack(factor) => (*factor, Some(here)),
        };
        let takes_part = |member: &Member| near.is_none_or(|near| member.data_centre == near);
        let mut owned: Vec<(i64, &Member)> = members
            .iter()
            .filter(|member| takes_part(member))
            .flat_map(|member| member.tokens.iter().map(move |token| (*token, member)))
            .collect();
        owned.sort_by_key(|(token, _)| *token);
        let distinct = |part: fn(&Member) -> &[u8]| {
            let mut parts: Vec<&[u8]> = owned.iter().map(|(_, member)| part(member)).collect();
            parts.sort_unstable();
            parts.dedup();
            parts.len()
        };
        let (count, racks) = (distinct(|member| &member.id), distinct(|member| member.rack.as_bytes()));
        let wanted = factor.clamp(1, count.clamp(1, MAX_REPLICAS));
        // Where there are fewer racks than replicas, so many may be in a rack that has one already.
        let repeats = match placement {
            Placement::Next(_) => usize::MAX,
            Placement::ByRack(_) => factor.saturating_sub(racks),
        };
        let number = |member: &Member| {
            let position = nodes.iter().position(|id| *id == member.id);
            position.and_then(|at| u16::try_from(at).ok()).unwrap_or(NOT_SENT_TO)
        };
        let mut replicas = Vec::with_capacity(owned.len() * wanted);
        for start in 0..owned.len() {
            let clockwise = owned[start..].iter().chain(&owned[..start]).map(|(_, member)| *member);
            let owners = walk(clockwise, wanted, repeats);
            replicas.extend(owners.iter().map(|member| number(member)));
            replicas.resize((start + 1) * wanted, NOT_SENT_TO);
        }
        Self {
            tokens: owned.into_iter().map(|(token, _)| token).collect(),
            replicas,
            factor: wanted,
        }
    }

    /// Nodes that are replicas of a token, the primary first.
    #[inline]
    pub fn replicas(&self, token: i64) -> impl Iterator<Item = u16> + Clone + '_ {
        let range = self.tokens.partition_point(|end| *end < token);
        let range = if range == self.tokens.len() { 0 } else { range };
        let first = range * self.factor;
        let replicas = self.replicas.get(first..first + self.factor).unwrap_or_default();
        replicas.iter().copied().filter(|node| *node != NOT_SENT_TO)
    }

    /// Replicas of each range at most.
    pub fn factor(&self) -> usize {
        self.factor
    }
}

/// The replicas of the range whose owners come `clockwise`: distinct nodes, each in a rack that has none yet, or one of
/// `repeats` that need not be. The rule is that of Cassandra's `NetworkTopologyStrategy` (class `DatacenterEndpoints`);
/// with unlimited repeats it is `SimpleStrategy`'s.
fn walk<'a>(clockwise: impl Iterator<Item = &'a Member>, wanted: usize, mut repeats: usize) -> Vec<&'a Member> {
    let mut owners: Vec<&Member> = Vec::with_capacity(wanted);
    for member in clockwise {
        if owners.len() == wanted {
            break;
        }
        if owners.iter().any(|other| other.id == member.id) {
            continue;
        }
        let same_rack = |other: &&Member| other.rack == member.rack && other.data_centre == member.data_centre;
        if owners.iter().any(same_rack) {
            if repeats == 0 {
                continue;
            }
            repeats -= 1;
        }
        owners.push(member);
    }
    owners
}

/// The node that a connection leads to, as it describes itself.
pub(crate) fn read_local(connection: &mut BlockingConnection) -> Result<Member, ConnectionError> {
    let member = read_members(connection, LOCAL)?.pop();
    member.ok_or_else(|| {
        ConnectionError::unexpected(
            connection.contact().to_owned(),
            "no row of system.local".to_owned(),
            "one",
        )
    })
}

/// The other nodes that it knows.
pub(crate) fn read_peers(connection: &mut BlockingConnection) -> Result<Vec<Member>, ConnectionError> {
    match read_members(connection, PEERS_WITH_PORTS) {
        Err(ConnectionError::Server { .. }) => read_members(connection, PEERS),
        other => other,
    }
}

/// The nodes that a statement lists. A peer that is just joining may have nulls; it owns nothing yet and is left out.
fn read_members(connection: &mut BlockingConnection, statement: &str) -> Result<Vec<Member>, ConnectionError> {
    let mut members = Vec::new();
    connection.rows(statement, |row| {
        let (Some(Value::Uuid(id)), Some(Value::Text(data_centre)), Some(Value::List(tokens))) =
            (row.get("host_id"), row.get("data_center"), row.get("tokens"))
        else {
            return;
        };
        let number = |token: &Value<'_>| match token {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        };
        let rack = match row.get("rack") {
            Some(Value::Text(rack)) => (*rack).to_owned(),
            _ => String::new(),
        };
        let port = match row.get("native_port") {
            Some(Value::Int(port)) => u16::try_from(*port).ok(),
            _ => None,
        };
        let address = match row.get("native_address").or_else(|| row.get("rpc_address")) {
            Some(Value::Inet(address)) => Some((*address, port)),
            _ => None,
        };
        members.push(Member {
            id: *id,
            data_centre: (*data_centre).to_owned(),
            rack,
            tokens: tokens.iter().filter_map(number).collect(),
            address,
        });
    })?;
    Ok(members)
}

/// The keyspace's placement in that data centre; one replica where its strategy names no number.
pub(crate) fn read_placement(
    connection: &mut BlockingConnection,
    keyspace: &str,
    data_centre: &str,
) -> Result<Placement, ConnectionError> {
    let quoted = keyspace.replace('\'', "''");
    let statement = format!("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '{quoted}'");
    let mut placement = Placement::Next(1);
    connection.rows(&statement, |row| {
        let Some(Value::Map(pairs)) = row.get("replication") else {
            return;
        };
        let value = |name: &str| {
            pairs.iter().find_map(|(key, value)| match (key, value) {
                (Value::Text(key), Value::Text(value)) if *key == name => Some(*value),
                _ => None,
            })
        };
        placement = placement_of(value("class").unwrap_or_default(), value, data_centre);
    })?;
    Ok(placement)
}

fn placement_of<'a>(class: &str, value: impl Fn(&str) -> Option<&'a str>, data_centre: &str) -> Placement {
    // A factor with transient replicas reads "3/1".
    let number = |text: &str| text.split('/').next().and_then(|text| text.parse().ok());
    if class.ends_with("NetworkTopologyStrategy") {
        return Placement::ByRack(value(data_centre).and_then(number).unwrap_or(1));
    }
    Placement::Next(value("replication_factor").and_then(number).unwrap_or(1))
}

#[cfg(test)]
#[path = "ring_tests.rs"]
pub(crate) mod tests;
