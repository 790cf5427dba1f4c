//! Integration tests of workloads, in one program, so that they are linked once.

mod drawn_keys;
mod program;
mod reference;
mod stress_reference;
mod tables;
