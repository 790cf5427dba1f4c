//! `disrupt disk-full`: a file without a name that leaves little space. It is gone with this process.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::act::{Act, Held};
use super::record::{Record, Undo};
use crate::exit::{Exit, REFUSED};

const MEBIBYTE: u64 = 1 << 20;
/// Space taken at once.
const MOST_AT_ONCE: u64 = 256 * MEBIBYTE;
const LEAST_AT_ONCE: u64 = 4096;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub held: Held,
    /// A folder on the disk.
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,
    /// MiB that are left.
    #[arg(long, value_name = "MIB")]
    free_mb: u64,
}

pub(super) struct DiskFull {
    folder: PathBuf,
    free_bytes: u64,
    file: Option<File>,
}

impl DiskFull {
    /// Errors: a disk that others need.
    pub(super) fn of(arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev());
        let of_folder = device(&arguments.folder)
            .map_err(|error| format!("disrupt: no folder {}: {error}", arguments.folder.display()))?;
        // Records are in memory, as /dev/shm is.
        for others in ["/", "/dev/shm"] {
            if device(Path::new(others)).is_ok_and(|found| found == of_folder) {
                let what = format!(
                    "disrupt: {} is on the disk of {others}, which others need",
                    arguments.folder.display()
                );
                return Err(Exit::boxed(REFUSED, what));
            }
        }
        Ok(Self {
            folder: arguments.folder.clone(),
            free_bytes: arguments.free_mb.saturating_mul(MEBIBYTE),
            file: None,
        })
    }
}

impl Act for DiskFull {
    fn undo(&self) -> Result<Vec<Undo>, Box<dyn Error>> {
        Ok(Vec::new())
    }

    fn begin(&mut self, _: &mut Record) -> Result<(), Box<dyn Error>> {
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_TMPFILE)
            .open(&self.folder)
            .map_err(|error| format!("disrupt: no file without a name in {}: {error}", self.folder.display()))?;
        fill(self.file.insert(file), self.free_bytes)
            .map_err(|error| format!("disrupt: cannot fill the disk of {}: {error}", self.folder.display()).into())
    }

    fn end(&mut self, _: &Record) -> io::Result<()> {
        self.file = None;
        Ok(())
    }
}

/// Takes space until no more than `left` is free.
fn fill(file: &File, left: u64) -> io::Result<()> {
    let (mut taken, mut most) = (0, MOST_AT_ONCE);
    loop {
        let at_once = free(file)?.saturating_sub(left).min(most);
        if at_once < LEAST_AT_ONCE {
            return Ok(());
        }
        match fallocate(file, FallocateFlags::empty(), taken, at_once) {
            Ok(()) => taken += at_once,
            // What is free is not all for data.
            Err(Errno::NOSPC) => most = at_once / 2,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Root's processes may use what is reserved for them.
fn free(file: &File) -> io::Result<u64> {
    let system = fstatvfs(file)?;
    let blocks = if geteuid().is_root() {
        system.f_bfree
    } else {
        system.f_bavail
    };
    Ok(blocks * system.f_frsize)
}
