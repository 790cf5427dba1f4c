//! Files of /proc and cgroups: small texts of the kernel that stay open and are read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// No file that we read is longer; a longer one is cut here.
const LIMIT_BYTES: usize = 1 << 20;
const FIRST_BYTES: usize = 4096;

/// Stays open: the kernel generates the text again at each read from offset 0. For a process's files this also pins the process:
/// another one that gets the same id later is not mistaken for it.
#[derive(Debug)]
pub struct ProcFile {
    file: File,
    buffer: Vec<u8>,
}

impl ProcFile {
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            buffer: vec![0; FIRST_BYTES],
        })
    }

    /// The whole text now. None if the source is gone (ESRCH, ENODEV) or is not text.
    pub fn read(&mut self) -> Option<&str> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                if length >= LIMIT_BYTES {
                    break;
                }
                self.buffer.resize(length * 2, 0);
            }
            match self.file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        std::str::from_utf8(&self.buffer[..length]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_again_and_grows() {
        let path = std::env::temp_dir().join(format!("steelyard-proc-file-{}", std::process::id()));
        std::fs::write(&path, "first").unwrap();
        let mut file = ProcFile::open(&path).unwrap();
        assert_eq!(file.read(), Some("first"));
        let long = "x".repeat(3 * FIRST_BYTES);
        std::fs::write(&path, &long).unwrap();
        assert_eq!(file.read(), Some(long.as_str()));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_process_that_ended_reads_as_none() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut stat = ProcFile::open(format!("/proc/{}/stat", child.id())).unwrap();
        assert!(stat.read().is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(stat.read(), None);
    }
}
