//! A file of the kernel that throttles disks, and a text for it. No other file is written, whatever a record says.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Component, PathBuf};

use serde::{Deserialize, Serialize};

const FOLDERS: [&str; 2] = ["/sys/fs/cgroup", "/sys/class/bdi"];
const NAMES: [&str; 8] = [
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
    "io.max",
    "max_bytes",
    "max_ratio",
    "strict_limit",
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KernelFile {
    file: PathBuf,
    text: String,
}

impl KernelFile {
    pub(super) fn new(file: &str, text: &str) -> Self {
        Self {
            file: file.into(),
            text: text.to_owned(),
        }
    }

    /// Errors: another file, or a text that is none of theirs.
    pub(super) fn checked(&self) -> io::Result<()> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b":= ".contains(&byte);
        let name = self.file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if FOLDERS.iter().any(|folder| self.file.starts_with(folder))
            && !self.file.components().any(|part| part == Component::ParentDir)
            && NAMES.contains(&name)
            && self.text.bytes().all(plain)
        {
            return Ok(());
        }
        let what = format!("{:?} in {} throttles no disk", self.text, self.file.display());
        Err(io::Error::new(io::ErrorKind::InvalidInput, what))
    }

    /// Errors: as `checked`, and without the right to.
    pub(super) fn write(&self) -> io::Result<()> {
        self.checked()?;
        self.put().map_err(|error| {
            let what = format!("{:?} in {}: {error}", self.text, self.file.display());
            io::Error::new(error.kind(), what)
        })
    }

    /// As `write`, but a group or a device that is gone has no rates.
    pub(super) fn write_back(&self) -> io::Result<()> {
        self.checked()?;
        let done = self.put();
        let gone = |error: &io::Error| [Some(libc::ENOENT), Some(libc::ENODEV)].contains(&error.raw_os_error());
        if done.as_ref().is_err_and(gone) { Ok(()) } else { done }
    }

    fn put(&self) -> io::Result<()> {
        // Never made: a file that is missing is that of a group or a device that is gone.
        let mut file = OpenOptions::new().write(true).open(&self.file)?;
        file.write_all(self.text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_throttle_disks_are_written() {
        let top = "/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device";
        for (file, text) in [
            (top, "7:3 0"),
            ("/sys/fs/cgroup/a/n1/io.max", "7:3 rbps=max wbps=1000"),
            ("/sys/class/bdi/7:3/strict_limit", "1"),
        ] {
            KernelFile::new(file, text).checked().unwrap();
        }
        for (file, text) in [
            ("/sys/fs/cgroup/blkio/release_agent", "1"),
            ("/etc/io.max", "1"),
            ("/sys/fs/cgroupx/io.max", "1"),
            ("/sys/fs/cgroup/../../../etc/io.max", "1"),
            ("sys/fs/cgroup/io.max", "1"),
            (top, "7:3 0\n"),
            (top, "/x"),
        ] {
            let refused = KernelFile::new(file, text).write().unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{file}");
        }
        let gone = KernelFile::new("/sys/fs/cgroup/steelyard-none/io.max", "7:3 rbps=max");
        assert!(gone.write().is_err());
        gone.write_back().unwrap();
    }
}
