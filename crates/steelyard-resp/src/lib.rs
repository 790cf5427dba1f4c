//! The load's client of Redis' protocol, RESP2, for one server or a cluster: YCSB's operations as its binding for Redis has
//! them. `null` is the server that answers at once.
//!
//! Why RESP2: what is read here is the same in RESP3 but for the first byte, and RESP2 needs no handshake, so that every server
//! speaks it.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod client;
mod commands;
mod connect;
mod hash_slots;
pub mod null;
mod owners;
pub mod protocol;
mod server;

pub use client::RespClient;
pub use connect::connect;
pub use hash_slots::{Redirect, hash_slot, read_ranges};
pub use server::RESP;
