//! Readers of /proc, cgroups, disks and interfaces, cheap enough to run beside what is being measured.
//!
//! Files stay open and are read anew with `pread`; text is parsed in place by the pure functions of [`parse`]. Counters that only
//! grow are reported as change per second. A source that goes away (a process that ends, a cgroup that is removed) yields
//! fewer values: never an error, never a negative rate.

#![deny(missing_docs)]

mod counter;
mod device;
mod hardware;
mod machine;
mod metrics;
mod network;
mod node;
pub mod parse;
mod proc_file;
mod processes;

pub use machine::MachineSampler;
pub use metrics::{METRICS, Metric};
pub use network::{NetworkSampler, Scope};
pub use node::{NodeSampler, NodeSource};

use std::path::PathBuf;

/// Why an instrument could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// A file that cannot be opened.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A folder that is no cgroup.
    #[error("{path} is not a cgroup: it has no file cgroup.procs")]
    NoCgroup {
        /// The folder.
        path: PathBuf,
    },
}

/// Values of one reading, by metric name. Reused from reading to reading.
#[derive(Debug, Default)]
pub struct Readings {
    values: Vec<(&'static str, f64)>,
}

impl Readings {
    /// Note a value; nothing if there is none.
    pub fn put(&mut self, metric: &'static str, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.values.push((metric, value));
        }
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// Metrics and their values, in the order in which they were read.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.values.iter().copied()
    }

    /// The value of a metric, if this reading has it.
    pub fn get(&self, metric: &str) -> Option<f64> {
        self.values
            .iter()
            .find(|(name, _)| *name == metric)
            .map(|(_, value)| *value)
    }
}

/// An instrument. The first reading only sets the baseline of counters.
pub trait Sampler {
    /// Read now; `elapsed_s` is the time since the reading before, by a clock that does not jump.
    fn read(&mut self, elapsed_s: f64, into: &mut Readings);
}
