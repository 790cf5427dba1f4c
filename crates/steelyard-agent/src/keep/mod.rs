//! `keep`: a process on this node that outlives the command which started it, under a supervisor that writes down how it ends.
//!
//! A record (a JSON file) says who the process is: id, start time, boot. All that comes later, by whatever connection, finds
//! it by that file and never takes another process for it.

mod ask;
mod record;
mod start;
mod stop;

use std::error::Error;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Start a command that is kept, and print its record.
    Start(start::Arguments),
    /// Print what is known of kept processes: a JSON line per record.
    Ask(ask::Arguments),
    /// Send a signal to a kept process, if it still runs.
    Signal(stop::SignalArguments),
    /// End a kept process, by SIGTERM and then SIGKILL, and remove its record.
    Stop(stop::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    match &arguments.action {
        Action::Start(arguments) => start::run(arguments),
        Action::Ask(arguments) => ask::run(arguments),
        Action::Signal(arguments) => stop::run_signal(arguments),
        Action::Stop(arguments) => stop::run(arguments),
    }
}
