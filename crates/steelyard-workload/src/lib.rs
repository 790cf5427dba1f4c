//! Workloads: what a load sends. Operations, keys and values are pure functions of (seed, index, key), so that processes and
//! threads need not agree on anything.
//!
//! `stream` gives the operations of an order, `program::Requests` the CQL statements and values that they execute. When an
//! operation is sent, and how it is counted, is the business of `steelyard-load`, which sees only `operation` and `stream`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod decimal;
pub mod distributions;
mod error;
pub mod insert_lag;
mod key_chooser;
pub mod operation;
pub mod program;
pub mod random;
pub mod stream;
pub mod stress;
pub mod ycsb;
pub mod ycsb_distributions;

pub use error::OrderError;
