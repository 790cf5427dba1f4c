//! Integration tests of the agent, as a program, in one program, so that they are linked once.

mod clock;
mod disrupt;
mod enter;
mod files;
mod gauge;
mod hostile_server;
mod keep;
mod link_simulation;
mod linktest;
mod load_and_cql;
mod program;
mod protocols;
mod rtt;
mod scratch;
mod sweep;
mod tie;
mod with_variables;
