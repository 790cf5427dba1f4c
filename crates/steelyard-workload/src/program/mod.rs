//! Programs: workloads as data, compiled once into a form that is cheap to carry out.
//!
//! `Stream` gives the operations and their keys as pure functions of seed and index, so that no two processes need to agree on
//! anything. Which statements and values an operation sends is the business of the client of a protocol.

mod check;
mod drawn_keys;
mod kind_mix;
mod numbers;
mod operations;

pub use check::check;
pub(crate) use drawn_keys::operations_of_keys;
pub use drawn_keys::{DrawnKeys, repeat_random};
pub use numbers::Numbers;
pub(crate) use operations::kinds;
pub use operations::{Stream, keys_taken};
