//! `keep signal` and `keep stop`: both do nothing to a process that is gone, or to another one that has its id now.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::record::Record;
use crate::process::within;
use crate::seconds;

/// Time limit for a killed process to disappear; beyond it, something (a dead disk, a debugger) holds it.
const KILL_LIMIT: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
pub struct SignalArguments {
    /// The record that `keep start` wrote.
    #[arg(long, value_name = "FILE")]
    record: PathBuf,
    /// Number of the signal: 15 for SIGTERM.
    #[arg(long, value_name = "N", value_parser = parse_signal)]
    number: Signal,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// The record that `keep start` wrote.
    #[arg(long, value_name = "FILE")]
    record: PathBuf,
    /// Seconds from SIGTERM to SIGKILL; with 0, SIGKILL at once.
    #[arg(long, value_name = "S", value_parser = seconds::grace)]
    grace_s: Duration,
}

pub(super) fn run_signal(arguments: &SignalArguments) -> Result<(), Box<dyn Error>> {
    if let Some(record) = Record::read(&arguments.record)?.filter(Record::alive) {
        let sent = record.process().signal(arguments.number);
        sent.map_err(|error| not_sent(&record, &error))?;
    }
    Ok(())
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let Some(record) = Record::read(&arguments.record)? else {
        return Ok(());
    };
    end(&record, arguments.grace_s)?;
    // If the supervisor wrote later, the record would come back.
    record.settle();
    remove(&arguments.record)
}

fn end(record: &Record, grace: Duration) -> Result<(), String> {
    if !record.alive() {
        return Ok(());
    }
    let process = record.process();
    if !grace.is_zero() {
        process.signal(Signal::TERM).map_err(|error| not_sent(record, &error))?;
        if within(grace, || !process.alive()) {
            return Ok(());
        }
    }
    process.kill_with_group().map_err(|error| not_sent(record, &error))?;
    if within(KILL_LIMIT, || !process.alive()) {
        return Ok(());
    }
    Err(format!(
        "keep: process {} ({}) still runs {} s after SIGKILL; a disk that does not answer or a debugger may hold it, see \
         /proc/{}/stack",
        record.pid,
        record.argv.join(" "),
        KILL_LIMIT.as_secs(),
        record.pid
    ))
}

fn not_sent(record: &Record, error: &io::Error) -> String {
    format!(
        "keep: cannot send a signal to process {} ({}): {error}; try as the user who started it",
        record.pid,
        record.argv.join(" ")
    )
}

fn remove(path: &Path) -> Result<(), Box<dyn Error>> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("keep: cannot remove the record {}: {error}", path.display()).into())
        }
        _ => Ok(()),
    }
}

fn parse_signal(text: &str) -> Result<Signal, String> {
    text.parse()
        .ok()
        .and_then(Signal::from_named_raw)
        .ok_or_else(|| "allowed: numbers of signals, 1 to 31; see signal(7)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_numbers() {
        assert_eq!(parse_signal("15"), Ok(Signal::TERM));
        assert_eq!(parse_signal("19"), Ok(Signal::STOP));
        for refused in ["0", "-9", "64", "TERM", ""] {
            assert!(parse_signal(refused).is_err(), "{refused}");
        }
    }
}
