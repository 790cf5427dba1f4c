//! The load generator: when operations are sent, and how they are counted. Schedules, the driving loop, histograms, records.
//!
//! What is sent comes from `steelyard-workload`; how it travels is a `client::Client`. Neither CQL nor any other protocol is
//! known here.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod client;
pub mod clock;
pub mod drive;
pub mod error_samples;
pub mod histogram;
pub mod outcome;
pub mod output;
mod phase_sequence;
mod read_back;
mod reporter;
pub mod schedule;
mod sequence;
pub mod tally;
pub mod turns;
mod worker;
