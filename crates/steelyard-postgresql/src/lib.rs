//! The load's client of PostgreSQL's protocol, version 3.0, for a primary and its replicas: YCSB's operations as prepared statements,
//! pipelined. `null` is the server that answers at once.
//!
//! Each operation is a group of its own (Bind, Execute, Sync), so that an error concerns no other. Parameters and values are text,
//! which YCSB's are anyway.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod client;
mod connect;
pub mod messages;
pub mod null;
mod peer;
mod replicas;
mod scram;
mod session;
mod statements;

pub use client::PostgresqlClient;
pub use connect::connect;
pub use session::{PASSWORD_VARIABLE, POSTGRESQL};
