//! `linktest`: measures the path to another node: round trips and losses while it is idle, then TCP's goodput.
//!
//! One node serves (echoes datagrams, swallows a stream), the other measures. Nothing else is needed on either.

mod measure;
mod protocol;
mod serve;

use std::error::Error;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Answer those who measure, until standard input ends.
    Serve(serve::Arguments),
    /// Measure the path to a node that serves.
    Measure(measure::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    match &arguments.action {
        Action::Serve(arguments) => serve::run(arguments),
        Action::Measure(arguments) => measure::run(arguments),
    }
}
