//! `keep ask`: whether kept processes run, and how those that do not ended.

use std::borrow::Cow;
use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::record::{Ended, Record};
use crate::process;

#[derive(clap::Args)]
pub struct Arguments {
    /// A record that `keep start` wrote; may be repeated.
    #[arg(long, required = true, value_name = "FILE")]
    record: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Answer<'a> {
    record: Cow<'a, str>,
    alive: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    missing: bool,
    #[serde(flatten)]
    known: Option<Known>,
}

#[derive(Serialize)]
struct Known {
    pid: u32,
    started_ticks: u64,
    /// The command line in force while it runs, else the one that was asked for.
    argv: Vec<String>,
    ended: Option<Ended>,
    ended_s: Option<f64>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    for path in &arguments.record {
        let answer = match Record::read(path)? {
            Some(record) => known(path, record),
            None => Answer {
                record: path.to_string_lossy(),
                alive: false,
                missing: true,
                known: None,
            },
        };
        writeln!(out, "{}", serde_json::to_string(&answer)?)?;
    }
    Ok(())
}

fn known(path: &Path, record: Record) -> Answer<'_> {
    let alive = record.alive();
    let in_force = if alive { process::command_line(record.pid) } else { None };
    Answer {
        record: path.to_string_lossy(),
        alive,
        missing: false,
        known: Some(Known {
            pid: record.pid,
            started_ticks: record.started_ticks,
            argv: in_force.unwrap_or(record.argv),
            ended: record.ended,
            ended_s: record.ended_s,
        }),
    }
}
