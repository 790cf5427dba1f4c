//! Key and length distributions, operations, schedules, timing and the driving loop: everything of load but the protocol.

#![forbid(unsafe_code)]

mod chooser;
pub mod client;
pub mod distribution;
pub mod drive;
mod error;
pub mod histogram;
mod leg;
pub mod operation;
pub mod program;
pub mod random;
mod reporter;
pub mod schedule;
pub mod spread;
pub mod stress;
pub mod tally;
pub mod texts;
mod worker;
pub mod ycsb;

pub use error::LoadError;
