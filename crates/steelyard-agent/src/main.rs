//! `steelyard-agent`: the one program that Steelyard runs on nodes.

mod atomic_file;
mod clock_command;
mod cql_command;
mod cql_json;
mod cql_watch;
mod disrupt;
mod enter;
mod exit;
mod files;
mod gauge;
mod keep;
mod link_command;
mod link_live;
mod link_simulation;
mod linktest;
mod load;
mod ops;
mod privileges;
mod probe;
mod process;
mod protocols;
mod rtt;
mod seconds;
mod sim;
mod sweep;
mod tail;
mod ticks;
mod tie;
mod wall_clock;
mod with_variables;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::Exit;

/// Drives load, reads instruments, stands in for a cluster. Speaks JSON lines; see docs/reference/wire.md.
#[derive(Parser)]
#[command(name = "steelyard-agent", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Send statements to a cluster and print their rows.
    Cql(cql_command::Arguments),
    /// Carry out an order: drive operations and print records.
    Load(load::Arguments),
    /// Print the operations of an order without sending them.
    Ops(ops::Arguments),
    /// Print a sample of this machine and of one node every interval.
    Probe(probe::Arguments),
    /// A simulated cluster with a planted scalability law, or a null server.
    Sim(sim::Arguments),
    /// Print what is added to a file, a line of JSON every interval.
    Tail(tail::Arguments),
    /// Run a command inside a network namespace and cgroups.
    Enter(enter::Arguments),
    /// Start a process that outlives this command; ask for it, signal it, stop it.
    Keep(keep::Arguments),
    /// Read, write, list, remove and compare files of this machine.
    Files(files::Arguments),
    /// Kill every process of a lease.
    Sweep(sweep::Arguments),
    /// Disturb this node for a limited time, and let go whatever happens.
    Disrupt(disrupt::Arguments),
    /// Print the wall clock for each line of standard input.
    Clock(clock_command::Arguments),
    /// Measure round-trip times to another node.
    Rtt(rtt::Arguments),
    /// Measure what this node can do within its limits.
    Gauge(gauge::Arguments),
    /// A medium between nodes, in user space: live between network namespaces, or 802.11 simulated without packets.
    Link(link_command::Arguments),
    /// Measure the path to another node: round trips, losses, TCP's goodput.
    Linktest(linktest::Arguments),
    /// Run a command that ends when standard input does.
    Tie(tie::Arguments),
    /// Run a command with environment variables from the first line of standard input.
    WithVariables(with_variables::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Cql(arguments) => cql_command::run(&arguments),
        Command::Load(arguments) => load::run(&arguments),
        Command::Ops(arguments) => ops::run(&arguments),
        Command::Probe(arguments) => probe::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Tail(arguments) => tail::run(&arguments),
        Command::Enter(arguments) => enter::run(&arguments),
        Command::Keep(arguments) => keep::run(&arguments),
        Command::Files(arguments) => files::run(&arguments),
        Command::Sweep(arguments) => sweep::run(&arguments),
        Command::Disrupt(arguments) => disrupt::run(&arguments),
        Command::Clock(arguments) => clock_command::run(&arguments),
        Command::Rtt(arguments) => rtt::run(&arguments),
        Command::Gauge(arguments) => gauge::run(&arguments),
        Command::Link(arguments) => link_command::run(&arguments),
        Command::Linktest(arguments) => linktest::run(&arguments),
        Command::Tie(arguments) => tie::run(&arguments),
        Command::WithVariables(arguments) => with_variables::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let exit = error.downcast_ref::<Exit>();
            if exit.is_none_or(|exit| !exit.reported) {
                eprintln!("steelyard-agent: {error}");
            }
            exit.map_or(ExitCode::FAILURE, |exit| ExitCode::from(exit.code))
        }
    }
}
