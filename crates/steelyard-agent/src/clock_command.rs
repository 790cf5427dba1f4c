//! `clock`: the wall clock of this node, once for every line of standard input.
//!
//! Whoever asks takes the time before and after: half of the round trip bounds the error of the offset between two clocks.

use std::error::Error;
use std::io::{self, BufRead, Write};

use serde_json::json;

use crate::wall_clock::WallClock;

#[derive(clap::Args)]
pub struct Arguments {}

/// Ends with standard input, or when nobody reads the answers any more.
pub fn run(_: &Arguments) -> Result<(), Box<dyn Error>> {
    let clock = WallClock::from_environment()?;
    match answer(clock, &mut io::stdin().lock(), &mut io::stdout().lock()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => Ok(outcome.map_err(|error| format!("clock: {error}"))?),
    }
}

fn answer(clock: WallClock, questions: &mut impl BufRead, answers: &mut impl Write) -> io::Result<()> {
    while questions.skip_until(b'\n')? > 0 {
        writeln!(answers, "{}", json!({"t_s": clock.now_s()}))?;
        answers.flush()?;
    }
    Ok(())
}
