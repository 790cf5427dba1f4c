//! The record of a disruption: who holds it, and what is to be undone. In memory that all processes share and that ends with the
//! boot, as what it describes does: it is on no disk that could be full, and not below the node's folder.
//!
//! It holds no command line: undo is a closed list of words with checked values. Only files that this user alone can write count.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Signal, geteuid};
use serde::{Deserialize, Serialize};

use super::ahead::Ahead;
use super::filter;
use super::kernel_file::KernelFile;
use crate::atomic_file::{self, PRIVATE};
use crate::process::{Process, boot_id, within};

const MEMORY: &str = "/dev/shm";
const PRIVATE_FOLDER: u32 = 0o700;
const OF_OTHERS: u32 = 0o077;
const MOST_BYTES: u64 = 1 << 20;
/// For a process that was killed to end.
const END: Duration = Duration::from_secs(2);

/// What is done to undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Undo {
    /// SIGCONT to exactly this process.
    Continue { process: Process },
    /// Removal of the holder's packet filter from exactly this network.
    Rejoin { network: u64 },
    /// A text in a file of the kernel that throttles disks.
    Write { write: KernelFile },
    /// The wall clock is so much ahead of the time since the boot.
    SetClock { ahead: Ahead },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    lease: String,
    boot_id: String,
    /// The process whose end ends what needs no undo.
    pub holder: Process,
    pub undo: Vec<Undo>,
    #[serde(skip)]
    path: PathBuf,
}

impl Record {
    /// A record of this process. Nothing is written yet. Errors: an id that is no file's name.
    pub(super) fn new(lease: &str, undo: Vec<Undo>) -> io::Result<Self> {
        let holder = Process::of(std::process::id()).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            lease: checked(lease)?.to_owned(),
            boot_id: boot_id(),
            holder,
            undo,
            path: folder().join(format!("{lease}.{}.json", holder.pid)),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Name of the holder's packet filter, which follows from the holder alone.
    pub(super) fn table(&self) -> String {
        format!("steelyard_{}_{}", self.holder.pid, self.holder.started_ticks)
    }

    /// On return the kernel has it, and the folder its name.
    pub(super) fn write(&self) -> io::Result<()> {
        let folder = folder();
        match DirBuilder::new().mode(PRIVATE_FOLDER).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        ours(&fs::symlink_metadata(&folder)?, &folder)?;
        let line = serde_json::to_string(self)?;
        atomic_file::replace(&self.path, Some(PRIVATE), |file| {
            file.write_all(line.as_bytes())?;
            file.sync_all()
        })?;
        File::open(folder)?.sync_all()
    }

    /// None if there is no such file. Errors: a file that others can write, or that is none of these.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        // Not to wait for the writer of a pipe that somebody put there.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        ours(&file.metadata()?, path)?;
        let mut content = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut content)?;
        let record: Self = serde_json::from_slice(&content)?;
        Ok(Some(Self {
            path: path.to_owned(),
            ..record
        }))
    }

    /// Ends the holder, undoes, and removes the record. Of another boot nothing is left. Idempotent.
    pub(super) fn heal(&self) -> io::Result<()> {
        if self.boot_id == boot_id() {
            self.holder.signal(Signal::KILL)?;
            // Only then does it record, and stop, no more.
            within(END, || !self.holder.alive());
            match Self::read(&self.path) {
                // It was undone meanwhile.
                Ok(None) => return Ok(()),
                Ok(Some(newest)) => newest.undone()?,
                Err(_) => self.undone()?,
            }
        }
        self.remove()
    }

    /// Undoes all of it, even if a part fails. Errors: the first.
    pub(super) fn undone(&self) -> io::Result<()> {
        let outcomes: Vec<io::Result<()>> = self
            .undo
            .iter()
            .map(|undo| match undo {
                Undo::Continue { process } => process.signal(Signal::CONT),
                Undo::Rejoin { network } => filter::remove(*network, &self.table()),
                Undo::Write { write } => write.write_back(),
                Undo::SetClock { ahead } => ahead.set(),
            })
            .collect();
        outcomes.into_iter().collect()
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// The records of a lease on this node; of an id that names no file there are none, and none in a folder that is not this
/// user's, which another one may have put there.
pub(super) fn of_lease(lease: &str) -> io::Result<Vec<PathBuf>> {
    begin_with(&format!("{lease}."))
}

/// The records on this node of this boot that can be read.
pub(super) fn of_this_boot() -> io::Result<Vec<Record>> {
    let read = |path: PathBuf| Record::read(&path).ok().flatten();
    let records = begin_with("")?.into_iter().filter_map(read);
    Ok(records.filter(|record| record.boot_id == boot_id()).collect())
}

fn begin_with(prefix: &str) -> io::Result<Vec<PathBuf>> {
    let folder = folder();
    if fs::symlink_metadata(&folder).is_ok_and(|found| ours(&found, &folder).is_err()) {
        return Ok(Vec::new());
    }
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let is_record = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(prefix) && name.ends_with(".json"))
    };
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_record)
        .collect())
}

/// Where records of this user are.
pub(super) fn folder() -> PathBuf {
    Path::new(MEMORY).join(format!("steelyard-disruptions-{}", geteuid().as_raw()))
}

fn ours(found: &fs::Metadata, path: &Path) -> io::Result<()> {
    if found.uid() == geteuid().as_raw() && found.mode() & OF_OTHERS == 0 && !found.is_symlink() {
        return Ok(());
    }
    let what = format!("{} must belong to this user alone; remove it", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

fn checked(lease: &str) -> io::Result<&str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if !lease.is_empty() && lease.bytes().all(plain) {
        return Ok(lease);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{lease:?} is no lease's id"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_record_is_read_as_written_and_only_from_its_owner() {
        let process = Process::of(std::process::id()).unwrap();
        let write = KernelFile::new("/sys/class/bdi/7:3/max_ratio", "100");
        let undo = vec![
            Undo::Continue { process },
            Undo::Rejoin { network: 4 },
            Undo::Write { write },
            serde_json::from_str(r#"{"word":"set-clock","ahead":{"nanoseconds":1700000000123456789}}"#).unwrap(),
        ];
        let record = Record::new("test-record", undo).unwrap();
        record.write().unwrap();
        assert_eq!(Record::read(record.path()).unwrap().unwrap(), record);
        assert_eq!(of_lease("test-record").unwrap(), [record.path()]);
        assert_eq!(of_lease("test-recor").unwrap(), Vec::<PathBuf>::new());
        assert!(of_this_boot().unwrap().contains(&record));
        assert_eq!(fs::metadata(record.path()).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(record.path(), fs::Permissions::from_mode(0o620)).unwrap();
        assert!(Record::read(record.path()).is_err());
        record.remove().unwrap();
        record.remove().unwrap();
        assert_eq!(Record::read(record.path()).unwrap(), None);
        for refused in ["", "../x", "a/b", "a b"] {
            assert!(Record::new(refused, Vec::new()).is_err(), "{refused}");
        }
    }

    #[test]
    fn no_word_but_those_of_the_list() {
        for refused in [
            r#"{"word":"run","process":{"pid":2,"started_ticks":1}}"#,
            r#"{"word":"continue","process":{"pid":2,"started_ticks":1},"argv":["x"]}"#,
            r#"{"word":"continue","process":{"pid":2}}"#,
            r#"{"word":"rejoin","network":4,"table":"filter"}"#,
            r#"{"word":"rejoin","network":"eth0"}"#,
            r#"{"word":"write","write":{"file":"/sys/class/bdi/7:3/max_ratio"}}"#,
            r#"{"word":"set-clock"}"#,
            r#"{"word":"set-clock","ahead":{"nanoseconds":1e99}}"#,
            r#"{"word":"write","write":{"file":"/sys/class/bdi/7:3/max_ratio","text":"1","mode":"600"}}"#,
        ] {
            assert!(serde_json::from_str::<Undo>(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn records_of_another_boot_or_process_signal_nothing() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        let reused = Process {
            started_ticks: process.started_ticks - 1,
            ..process
        };
        let of = |holder: Process, boot_id: String| Record {
            holder,
            boot_id,
            ..Record::new("test-other", Vec::new()).unwrap()
        };
        of(reused, boot_id()).heal().unwrap();
        of(process, "another".to_owned()).heal().unwrap();
        assert!(process.alive());
        of(process, boot_id()).heal().unwrap();
        child.wait().unwrap();
    }
}
