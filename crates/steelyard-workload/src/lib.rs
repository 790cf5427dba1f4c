//! Workloads: what a load sends. Operations, keys and values are pure functions of (seed, index, key), so that processes and
//! threads need not agree on anything.
//!
//! `stream` gives the operations of an order. Which requests they are in a protocol is the business of its client; when an
//! operation is sent, and how it is counted, that of `steelyard-load`, which sees only `operation` and `stream`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod decimal;
pub mod distributions;
mod error;
pub mod insert_lag;
mod key_chooser;
pub mod murmur3;
pub mod operation;
pub mod program;
pub mod random;
pub mod read_back;
pub mod requests;
mod shares;
pub mod stream;
pub mod stress;
pub mod ycsb;
pub mod ycsb_distributions;
mod ycsb_records;

pub use error::OrderError;
