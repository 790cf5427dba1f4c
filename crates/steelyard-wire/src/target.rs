//! Targets of orders: the protocol that the nodes speak, and what it alone needs.

use serde::{Deserialize, Serialize};

use crate::defaults::is_false;

/// The protocol that the nodes speak, and what it alone needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "protocol", rename_all = "kebab-case")]
pub enum Target {
    /// Cassandra's native protocol.
    Cql(Cql),
    /// Redis' protocol, RESP2, of one server or a cluster.
    Resp(Resp),
    /// HTTP/1.1, without encryption.
    Http(Http),
    /// The JSON gateway of etcd, over HTTP/1.1.
    Etcd(Etcd),
    /// PostgreSQL's protocol, version 3.0.
    Postgresql(Postgresql),
}

impl Target {
    /// What CQL needs, where it is the protocol.
    pub fn cql(&self) -> Option<&Cql> {
        match self {
            Self::Cql(cql) => Some(cql),
            _ => None,
        }
    }

    /// What CQL needs, to change, where it is the protocol.
    pub fn cql_mut(&mut self) -> Option<&mut Cql> {
        match self {
            Self::Cql(cql) => Some(cql),
            _ => None,
        }
    }
}

/// What a load over Cassandra's native protocol needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cql {
    /// Keyspace of the table.
    pub keyspace: String,
    /// YCSB's table; a program's statements name theirs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub table: String,
    /// Name of the key column; YCSB's only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Consistency level of statements that read.
    pub read_consistency: String,
    /// Consistency level of statements that write.
    pub write_consistency: String,
    /// Consistency level of the first part of lightweight transactions: `SERIAL` or `LOCAL_SERIAL`.
    #[serde(default = "serial", skip_serializing_if = "is_serial")]
    pub serial_consistency: String,
    /// How the node for a request is chosen.
    pub routing: Routing,
    /// Compression of the protocol's frames, in both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
}

/// What a load over RESP needs. Which node has which key says the cluster itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resp {
    /// Key of the sorted set of all keys, which YCSB's binding for Redis calls `_indices`: each insert adds to it, and scans
    /// read it. None: there is no such set, and scans are not possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
}

/// What a load over HTTP needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// Whether connections are kept for further requests. Else each request has a connection of its own, made and closed within
    /// its response time.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub keep_alive: bool,
}

impl Default for Http {
    fn default() -> Self {
        Self { keep_alive: true }
    }
}

/// What a load of etcd needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Etcd {
    /// Whether the member that is asked answers reads from its own state, which may be behind, without a word to the others.
    #[serde(default, skip_serializing_if = "is_false")]
    pub serializable: bool,
}

/// What a load of PostgreSQL needs. Which node is the primary, the nodes say themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Postgresql {
    /// Database of the table.
    #[serde(default = "steelyard", skip_serializing_if = "is_steelyard")]
    pub database: String,
    /// Name under which connections log in; the password is in the environment.
    #[serde(default = "steelyard", skip_serializing_if = "is_steelyard")]
    pub user: String,
    /// YCSB's table.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub table: String,
    /// Name of the key column.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Where reads and scans go. All else goes to the primary, also the read of a read-modify-write.
    #[serde(default, skip_serializing_if = "ReadFrom::is_default")]
    pub read_from: ReadFrom,
}

/// Which nodes are asked to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadFrom {
    /// The primary.
    #[default]
    Primary,
    /// The replicas in turn.
    Replicas,
    /// All nodes in turn.
    Any,
}

impl ReadFrom {
    // serde hands references to these.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How the node for a request is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// To a replica of the key.
    Token,
    /// To every node in turn.
    RoundRobin,
}

/// How frames are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// LZ4.
    Lz4,
    /// Snappy.
    Snappy,
}

fn serial() -> String {
    "SERIAL".to_owned()
}

fn is_serial(name: &String) -> bool {
    name == "SERIAL"
}

fn steelyard() -> String {
    "steelyard".to_owned()
}

fn is_steelyard(name: &String) -> bool {
    name == "steelyard"
}

fn yes() -> bool {
    true
}

// serde hands references to these.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_true(flag: &bool) -> bool {
    *flag
}
