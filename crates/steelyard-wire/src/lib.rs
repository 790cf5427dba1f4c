//! The wire: orders and records, the types on which the agent and the conductor agree.
//!
//! An order is one JSON document; records are JSON lines on standard output, one object a line, told apart by their field
//! `record`. Both are versioned by `format`. `schema/` holds the examples that the tests of both languages read.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod defaults;
mod order;
pub mod program;
mod record;
mod requests;
mod schedule;
mod target;
mod word;

pub use order::*;
pub use record::*;
pub use requests::{Document, Requests};
pub use schedule::{Arrivals, DEFAULT_BACKLOG_LIMIT, LoadPhase, Schedule};
pub use target::*;
pub use word::Word;

/// Version of orders and records. Raised when an old reader would misread a new writer.
pub const FORMAT: u32 = 1;
