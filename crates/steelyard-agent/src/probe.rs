//! `probe`: a line of readings every interval, on whole intervals of the clock, until standard output is closed.

use std::error::Error;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use steelyard_sample::{
    METRICS, MachineSampler, NetworkSampler, NodeSampler, NodeSource, Readings, SampleError, Sampler, Scope,
};
use steelyard_wire::{FORMAT, Failure, Hello, Record, Sample};

use crate::wall_clock::{OffsetError, WallClock};

const OWN_NETWORK: &str = "/proc/self/ns/net";
/// A first interval shorter than this share of a whole one is joined to the next: its rates would be noise.
const LEAST_SHARE: f64 = 0.2;

#[derive(clap::Args)]
pub struct Arguments {
    /// Seconds between samples.
    #[arg(long, default_value_t = 1.0, value_name = "S", value_parser = parse_interval)]
    interval_s: f64,
    /// A cgroup folder of the node (v1: one per controller); may be repeated.
    #[arg(long, value_name = "FOLDER")]
    cgroup: Vec<PathBuf>,
    /// A process of the node, if there are no cgroups; may be repeated.
    #[arg(long, value_name = "ID")]
    pid: Vec<u32>,
    /// Inode of the network namespace that several nodes share. In it, traffic is the machine's, not the node's.
    #[arg(long, value_name = "INODE")]
    shared_netns: Option<u64>,
    /// End after this many samples.
    #[arg(long, value_name = "N")]
    lines: Option<u64>,
    /// Print every metric and its unit, then end.
    #[arg(long)]
    list: bool,
}

/// Ends when standard output closes, on SIGTERM (which needs no handler: every line is whole when written), or after `--lines`.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let outcome = if arguments.list { list() } else { sample(arguments) };
    match outcome {
        Err(ProbeError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

#[derive(Debug, thiserror::Error)]
enum ProbeError {
    #[error("probe: {0}")]
    Sample(#[from] SampleError),
    #[error("probe: cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("probe: cannot put a record into JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Clock(#[from] OffsetError),
}

fn list() -> Result<(), ProbeError> {
    let mut output = io::stdout().lock();
    for metric in METRICS {
        writeln!(output, "{} {}", metric.name, metric.unit)?;
    }
    Ok(())
}

fn sample(arguments: &Arguments) -> Result<(), ProbeError> {
    let clock = WallClock::from_environment()?;
    say(&Record::Hello(Hello {
        format: FORMAT,
        agent: env!("CARGO_PKG_VERSION").into(),
        optimised: !cfg!(debug_assertions),
        t_s: clock.now_s(),
    }))?;
    let mut samplers = match open(arguments) {
        Ok(samplers) => samplers,
        Err(error) => {
            let hint = "is the node still lent?".into();
            say(&Record::Error(Failure {
                message: error.to_string(),
                hint,
            }))?;
            return Err(error.into());
        }
    };
    let mut readings = Readings::default();
    let mut before = Instant::now();
    for sampler in &mut samplers {
        sampler.read(0.0, &mut readings);
    }
    let mut wait_s = until_next(clock.now_s(), arguments.interval_s);
    if wait_s < LEAST_SHARE * arguments.interval_s {
        wait_s += arguments.interval_s;
    }
    let mut lines = 0;
    while arguments.lines.is_none_or(|limit| lines < limit) && listened_to(wait_s) {
        let now = Instant::now();
        let elapsed_s = (now - before).as_secs_f64();
        before = now;
        let t_s = clock.now_s();
        readings.clear();
        for sampler in &mut samplers {
            sampler.read(elapsed_s, &mut readings);
        }
        let values = readings.iter().map(|(name, value)| (name.to_owned(), value)).collect();
        say(&Record::Sample(Sample { t_s, values }))?;
        lines += 1;
        wait_s = until_next(clock.now_s(), arguments.interval_s);
    }
    Ok(())
}

fn open(arguments: &Arguments) -> Result<Vec<Box<dyn Sampler>>, SampleError> {
    let mut samplers: Vec<Box<dyn Sampler>> = vec![
        Box::new(MachineSampler::open()?),
        Box::new(NetworkSampler::open(scope(arguments.shared_netns))?),
    ];
    if !arguments.cgroup.is_empty() || !arguments.pid.is_empty() {
        let source = NodeSource {
            cgroups: arguments.cgroup.clone(),
            process_ids: arguments.pid.clone(),
        };
        samplers.push(Box::new(NodeSampler::open(&source)?));
    }
    Ok(samplers)
}

fn scope(shared_netns: Option<u64>) -> Scope {
    let own = std::fs::metadata(OWN_NETWORK).map(|metadata| metadata.ino()).ok();
    if shared_netns.is_some() && own == shared_netns {
        Scope::Machine
    } else {
        Scope::Node
    }
}

/// Waits `wait_s` seconds; false as soon as standard output has no reader.
fn listened_to(wait_s: f64) -> bool {
    let output = io::stdout();
    let due = Instant::now() + Duration::from_secs_f64(wait_s);
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        let Ok(limit) = Timespec::try_from(left) else {
            return false;
        };
        // No event is asked for: only the end of the reader, which is always reported, ends the wait early.
        let mut watched = [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::empty())];
        match poll(&mut watched, Some(&limit)) {
            Ok(0) => return true,
            Ok(_) => return false,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Seconds from `now_s` to the next whole multiple of `interval_s`.
fn until_next(now_s: f64, interval_s: f64) -> f64 {
    let wait_s = interval_s - now_s.rem_euclid(interval_s);
    // A wake-up a hair too early must not give a second reading at once.
    if wait_s < 0.01 * interval_s {
        wait_s + interval_s
    } else {
        wait_s
    }
}

/// One line, in one write.
fn say(record: &Record) -> Result<(), ProbeError> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&line)?;
    output.flush()?;
    Ok(())
}

fn parse_interval(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.01..=3600.0).contains(&value) => Ok(value),
        _ => Err(format!("{text:?} is not a number of seconds from 0.01 to 3600")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_whole_intervals() {
        for (now_s, interval_s, wait_s) in [
            (100.25, 1.0, 0.75),
            (100.0, 1.0, 1.0),
            (100.995, 1.0, 1.005),
            (7.0, 5.0, 3.0),
            (0.3, 0.5, 0.2),
        ] {
            let got = until_next(now_s, interval_s);
            assert!((got - wait_s).abs() < 1e-9, "{now_s} {interval_s}: {got}");
        }
    }

    #[test]
    fn the_shared_namespace_is_the_machines() {
        let own = std::fs::metadata(OWN_NETWORK).unwrap().ino();
        assert_eq!(scope(Some(own)), Scope::Machine);
        assert_eq!(scope(Some(own + 1)), Scope::Node);
        assert_eq!(scope(None), Scope::Node);
    }
}
