//! `link`: a medium between nodes, in user space.

use std::error::Error;

use crate::exit::{Exit, REFUSED};
use crate::link_live;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    live: link_live::Arguments,
}

pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    if let Some(config) = &arguments.live.config {
        return link_live::run(config, &arguments.live);
    }
    Err(Exit::boxed(REFUSED, "link: say what to do: --config FILE"))
}
