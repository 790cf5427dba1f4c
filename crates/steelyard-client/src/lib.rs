//! One file per protocol. `cql` drives load over Cassandra's native protocol; `link` is its slow path, which also serves
//! people and the conductor.

#![forbid(unsafe_code)]

mod connect;
pub mod cql;
pub mod link;
mod node;
mod ring;
mod routes;
mod shards;
mod statements;
mod watch;
