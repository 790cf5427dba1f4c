//! `link`: a medium between nodes, in user space.

use std::error::Error;

use crate::exit::{Exit, REFUSED};
use crate::{link_live, link_simulation};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    live: link_live::Arguments,
    /// Simulate an 802.11 medium without packets, and print what came of it.
    #[arg(long, conflicts_with = "config")]
    simulate: bool,
    #[command(flatten)]
    simulation: link_simulation::Arguments,
}

pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    match &arguments.live.config {
        Some(config) => link_live::run(config, &arguments.live),
        None if arguments.simulate => link_simulation::run(&arguments.simulation),
        None => Err(Exit::boxed(REFUSED, "link: needs --config FILE or --simulate")),
    }
}
