//! Key and length distributions, operations, schedules, timing and the driving loop: everything of load but the protocol.

mod chooser;
pub mod client;
pub mod distribution;
pub mod drive;
pub mod histogram;
pub mod random;
pub mod schedule;
pub mod tally;
mod worker;
pub mod ycsb;

pub use ycsb::LoadError;
