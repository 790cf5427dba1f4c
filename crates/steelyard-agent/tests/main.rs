//! Integration tests of the agent, as a program, in one program, so that they are linked once.

mod clock;
mod enter;
mod files;
mod keep;
mod linktest;
mod load_and_cql;
mod program;
mod rtt;
mod scratch;
mod sweep;
mod tie;
