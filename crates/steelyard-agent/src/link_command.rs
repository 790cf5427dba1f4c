//! `link`: a medium between nodes, in user space.

use std::error::Error;

use crate::exit::{Exit, REFUSED};
use crate::link_simulation;

#[derive(clap::Args)]
pub struct Arguments {
    /// Simulate an 802.11 medium without packets, and print what came of it.
    #[arg(long)]
    simulate: bool,
    #[command(flatten)]
    simulation: link_simulation::Arguments,
}

pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    if arguments.simulate {
        return link_simulation::run(&arguments.simulation);
    }
    Err(Exit::boxed(REFUSED, "link: say what to do: --simulate"))
}
