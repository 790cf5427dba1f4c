//! What kinds of disruptions have in common.

use std::error::Error;
use std::io;
use std::time::Duration;

use super::record::{Record, Undo};
use crate::seconds;

/// What every disruption has.
#[derive(clap::Args)]
pub(super) struct Held {
    /// How long it lasts.
    #[arg(long, value_name = "S", value_parser = seconds::grace)]
    pub for_s: Duration,
    /// Id of the lease, by which `heal` and `sweep` find it; default: that of the environment.
    #[arg(long, value_name = "ID")]
    pub lease: Option<String>,
}

/// One kind of disruption.
pub(super) trait Act {
    /// What a stranger has to undo if this process is gone, as far as it is known before.
    fn undo(&self) -> Result<Vec<Undo>, Box<dyn Error>>;
    /// Begins it. What comes to be known meanwhile is recorded before it is done.
    fn begin(&mut self, record: &mut Record) -> Result<(), Box<dyn Error>>;
    /// Ends it. Also after a beginning that failed.
    fn end(&mut self, record: &Record) -> io::Result<()>;
}
