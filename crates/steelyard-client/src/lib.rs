//! The load's CQL client: `cql_client` drives load over Cassandra's native protocol; `blocking_connection`
//! executes single statements, for people, for the conductor, and at the start of a load.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod backoff;
pub mod blocking_connection;
pub mod connect;
mod connection;
mod contact;
pub mod cql_client;
pub mod deadline;
pub mod error;
mod reconnect;
mod ring;
mod routing;
mod shards;
mod slot;
mod statements;
mod topology;
mod worker;
