//! `probe`: a line of readings every interval, on whole intervals of the clock, until standard output is closed.

use std::error::Error;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Instant;

use steelyard_sample::{
    METRICS, MachineSampler, NetworkSampler, NodeSampler, NodeSource, Readings, SampleError, Sampler, Scope,
};
use steelyard_wire::{FORMAT, Failure, Hello, Record, Sample};

use crate::seconds::interval;
use crate::ticks::{listened_to, until_next};
use crate::wall_clock::{OffsetError, WallClock};

const OWN_NETWORK: &str = "/proc/self/ns/net";
/// A first interval shorter than this share of a whole one is joined to the next: its rates would be noise.
const LEAST_SHARE: f64 = 0.2;

#[derive(clap::Args)]
pub struct Arguments {
    /// Seconds between samples.
    #[arg(long, default_value_t = 1.0, value_name = "S", value_parser = interval)]
    interval_s: f64,
    /// A cgroup folder of the node (v1: one per controller); may be repeated.
    #[arg(long, value_name = "FOLDER")]
    cgroup: Vec<PathBuf>,
    /// A process of the node, which has those that descend from it, if there are no cgroups; may be repeated.
    #[arg(long, value_name = "ID")]
    pid: Vec<u32>,
    /// A folder on a file system of the node's own: its disk's bytes and operations are those of that block device.
    #[arg(long, value_name = "FOLDER")]
    disk: Option<PathBuf>,
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
    #[error("probe: cannot write a record as JSON: {0}")]
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
    if !arguments.cgroup.is_empty() || !arguments.pid.is_empty() || arguments.disk.is_some() {
        let source = NodeSource {
            cgroups: arguments.cgroup.clone(),
            process_ids: arguments.pid.clone(),
            disk: arguments.disk.clone(),
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

/// One line, in one write.
fn say(record: &Record) -> Result<(), ProbeError> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&line)?;
    output.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_namespace_is_the_machines() {
        let own = std::fs::metadata(OWN_NETWORK).unwrap().ino();
        assert_eq!(scope(Some(own)), Scope::Machine);
        assert_eq!(scope(Some(own + 1)), Scope::Node);
        assert_eq!(scope(None), Scope::Node);
    }
}
