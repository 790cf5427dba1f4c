//! Integration tests of workloads, in one program, so that they are linked once.

mod reference;
mod stress_reference;
