//! `disrupt clock`: this node's clock is set by some seconds. What it was ahead of the time since the boot is known before, and
//! brings it back.

use std::error::Error;
use std::io;

use super::act::{Act, Held};
use super::ahead::Ahead;
use super::record::{Record, Undo, of_this_boot};
use crate::exit::{Exit, REFUSED};
use crate::seconds;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub held: Held,
    /// Seconds by which the clock is set forward; less than 0: back.
    #[arg(long, value_name = "S", value_parser = seconds::offset, allow_negative_numbers = true)]
    offset_s: f64,
}

pub(super) struct Clock {
    right: Ahead,
    offset_s: f64,
}

impl Clock {
    /// Errors: no right to set the clock, or one that another disruption has set, so that the right time is not known.
    pub(super) fn of(arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        let is_set = |record: &Record| record.undo.iter().any(|undo| matches!(undo, Undo::SetClock { .. }));
        if of_this_boot()?.iter().any(is_set) {
            let what = "disrupt: another disruption has set the clock of this machine".to_owned();
            return Err(Exit::boxed(REFUSED, what));
        }
        let right = Ahead::now();
        right
            .set()
            .map_err(|error| Exit::boxed(REFUSED, format!("disrupt: the clock cannot be set here: {error}")))?;
        Ok(Self {
            right,
            offset_s: arguments.offset_s,
        })
    }
}

impl Act for Clock {
    fn undo(&self) -> Result<Vec<Undo>, Box<dyn Error>> {
        Ok(vec![Undo::SetClock { ahead: self.right }])
    }

    fn begin(&mut self, _: &mut Record) -> Result<(), Box<dyn Error>> {
        let begun = self.right.by(self.offset_s).set();
        begun.map_err(|error| format!("disrupt: cannot set the clock: {error}").into())
    }

    fn end(&mut self, record: &Record) -> io::Result<()> {
        record.undone()
    }
}
