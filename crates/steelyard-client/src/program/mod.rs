//! Requests of a program, and of YCSB's workload: CQL statements and the bytes of their values, compiled once into a form that is
//! cheap to carry out.
//!
//! `Requests` gives the statements that an operation executes, with their values: pure functions of seed, index, key and version.
//! YCSB's workload has a stream of its own, but its statements are compiled to the same form.

mod batch;
mod constants;
mod cql_type;
mod encode;
mod random_values;
mod requests;
mod table;
mod validation;
mod value_compiler;
mod value_source;
mod ycsb_statements;

pub use batch::Batch;
pub use cql_type::{CqlType, Native};
pub use requests::{Request, Requests, Statement, cql};
pub use value_source::{Execution, ValueSource};
