//! The load's CQL client: `cql_client` drives load over Cassandra's native protocol; `blocking_connection`
//! executes single statements, for people, for the conductor, and at the start of a load; `program` compiles
//! workloads to statements and the bytes of their values.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod blocking_connection;
pub mod connect;
mod connection;
pub mod cql_client;
pub mod error;
pub mod program;
mod reconnect;
mod ring;
mod routing;
mod shards;
mod slot;
mod statements;
mod topology;
mod worker;
