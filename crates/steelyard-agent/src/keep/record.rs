//! The record of a kept process: who it is, and how it ended. A JSON file, replaced as a whole.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, PRIVATE};
use crate::process::{Process, Status, boot_id, within};

/// Time limit for the supervisor to write how the process ended.
const SUPERVISOR_LIMIT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub pid: u32,
    /// Clock ticks from boot to the start of the process.
    pub started_ticks: u64,
    pub boot_id: String,
    /// The command line that was asked for.
    pub argv: Vec<String>,
    /// Process id of the supervisor; 0 if there is none.
    pub supervisor: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Seconds since the epoch by this node's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_s: Option<f64>,
}

/// How a process ended: `{"code": 1}` or `{"signal": 9}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ended {
    Code(i32),
    Signal(i32),
}

#[derive(Debug, thiserror::Error)]
#[error(
    "keep: cannot read the record {path}: {source}; records are written by `keep start` alone: look at the file, and remove it \
     if nothing runs"
)]
pub(super) struct RecordError {
    path: PathBuf,
    source: io::Error,
}

impl Record {
    /// None if there is no such file.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        let content = match fs::read(path) {
            Ok(content) => serde_json::from_slice(&content).map_err(io::Error::from),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => Err(error),
        };
        content.map(Some).map_err(|source| RecordError {
            path: path.to_path_buf(),
            source,
        })
    }

    /// Folders above the file are created. Only its owner may read it: a command line can hold secrets.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let mut line = self.to_line()?;
        line.push('\n');
        atomic_file::replace(path, Some(PRIVATE), |file| file.write_all(line.as_bytes()))
    }

    pub(super) fn to_line(&self) -> io::Result<String> {
        Ok(serde_json::to_string(self)?)
    }

    pub(super) fn process(&self) -> Process {
        Process {
            pid: self.pid,
            started_ticks: self.started_ticks,
        }
    }

    /// Whether exactly the recorded process runs: same id and start time, since the same boot, no zombie.
    pub(super) fn alive(&self) -> bool {
        self.is_of_this_boot() && self.process().alive()
    }

    /// Whether the supervisor still runs, which has yet to write how the process ended. It began before the process that it
    /// started, and any later process with its id after it.
    pub(super) fn supervised(&self) -> bool {
        self.is_of_this_boot()
            && Status::of(self.supervisor)
                .is_some_and(|status| !status.zombie && status.started_ticks <= self.started_ticks)
    }

    /// Waits, for a limited time, until the supervisor of a process that has ended writes no more.
    pub(super) fn settle(&self) {
        // One that hangs holds nobody up; it finds another record then, or none, and writes nothing.
        let _ = within(SUPERVISOR_LIMIT, || !self.supervised());
    }

    fn is_of_this_boot(&self) -> bool {
        self.boot_id == boot_id()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Record {
        let process = Process::of(std::process::id()).unwrap();
        Record {
            pid: process.pid,
            started_ticks: process.started_ticks,
            boot_id: boot_id(),
            argv: vec!["sleep".to_owned(), "60".to_owned()],
            supervisor: process.pid,
            ended: None,
            ended_s: None,
        }
    }

    #[test]
    fn a_record_is_of_one_process_of_one_boot() {
        let record = own();
        assert!(record.alive() && record.supervised());
        for other in [
            Record {
                started_ticks: record.started_ticks - 1,
                ..own()
            },
            Record {
                boot_id: "another".to_owned(),
                ..own()
            },
        ] {
            assert!(!other.alive() && !other.supervised(), "{other:?}");
        }
        let unsupervised = Record { supervisor: 0, ..own() };
        assert!(unsupervised.alive() && !unsupervised.supervised());
    }

    #[test]
    fn how_it_ended_is_a_code_or_a_signal() {
        let mut record = own();
        assert!(!record.to_line().unwrap().contains("ended"));
        record.ended = Some(Ended::Signal(9));
        record.ended_s = Some(12.5);
        let line = record.to_line().unwrap();
        assert!(line.ends_with(r#""ended":{"signal":9},"ended_s":12.5}"#), "{line}");
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
    }
}
