//! Integration tests of the agent, as a program, in one program, so that they are linked once.

mod enter;
mod load_and_cql;
mod program;
