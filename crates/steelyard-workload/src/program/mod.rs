//! Programs: workloads as data, compiled once into a form that is cheap to carry out.
//!
//! `Stream` gives the operations and their keys; `Requests` gives the statements that they execute, with their values.
//! Everything is a pure function of seed, index, key and version, so that no two processes need to agree on anything. YCSB's
//! workload has a stream of its own, but its statements are compiled to the same form.

mod batch;
mod check;
mod constants;
mod cql_type;
mod drawn_keys;
mod encode;
mod kind_mix;
mod numbers;
mod operations;
mod random_values;
mod requests;
mod table;
mod validation;
mod value_compiler;
mod value_source;
mod ycsb_statements;

pub use batch::Batch;
pub use cql_type::{CqlType, Native};
pub(crate) use drawn_keys::operations_of_keys;
pub use numbers::Numbers;
pub use operations::Stream;
pub(crate) use operations::kinds;
pub use requests::{Request, Requests, Statement};
pub use value_source::{Execution, ValueSource};
