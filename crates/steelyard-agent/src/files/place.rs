//! Where a path really lies, and `files space`: the file system that it lies on.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::error::{FilesError, is_missing};

const MOUNTS: &str = "/proc/self/mountinfo";

/// A path without links; the part of it that does not exist is appended as it is. The second is the part that exists.
pub(super) fn resolved(path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let absolute = std::path::absolute(path)?;
    for ancestor in absolute.ancestors() {
        match fs::canonicalize(ancestor) {
            Ok(real) => {
                let rest = absolute.strip_prefix(ancestor).unwrap_or(Path::new(""));
                let whole = if rest.as_os_str().is_empty() {
                    real.clone()
                } else {
                    real.join(rest)
                };
                return Ok((whole, real));
            }
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

pub(super) fn space(path: &Path) -> Result<(), FilesError> {
    let failed = FilesError::of("find the file system of", path);
    let (_, place) = resolved(path).map_err(&failed)?;
    let space = rustix::fs::statvfs(&place).map_err(|error| failed(error.into()))?;
    // Without the kernel's list of mounts the numbers are right all the same.
    let mounts = fs::read(MOUNTS).unwrap_or_default();
    let line = json!({
        "free_bytes": space.f_bavail.saturating_mul(space.f_frsize),
        "total_bytes": space.f_blocks.saturating_mul(space.f_frsize),
        "filesystem": file_system(&mounts, &place).unwrap_or_default(),
    });
    writeln!(io::stdout(), "{line}")?;
    Ok(())
}

/// Type of the file system that is mounted nearest above a path; see proc_pid_mountinfo(5).
fn file_system(mounts: &[u8], path: &Path) -> Option<String> {
    let lines = mounts.split(|byte| *byte == b'\n');
    let above = lines.filter_map(|line| {
        let mut words = line.split(|byte| *byte == b' ');
        let point = PathBuf::from(unescaped(words.nth(4)?));
        let kind = words.skip_while(|word| *word != b"-").nth(1)?;
        path.starts_with(&point)
            .then(|| (point.components().count(), String::from_utf8_lossy(kind).into_owned()))
    });
    // Of mounts at the same place, the last covers the others, as it does in `max_by_key`.
    above.max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind)
}

/// Blanks and line ends in names are octal: `\040`.
fn unescaped(word: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, tail)) = rest.split_first() {
        let code = (*first == b'\\').then(|| tail.get(..3)).flatten().and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"1 0 8:1 / / rw,noatime shared:1 - ext4 /dev/sda1 rw\n\
        2 1 0:5 / /srv rw - tmpfs tmpfs rw\n\
        3 1 7:0 / /srv/a\\040b rw master:3 propagate_from:2 - xfs /dev/loop0 rw\n\
        4 1 7:1 / /srv/a\\040b rw - btrfs /dev/loop1 rw\n";

    #[test]
    fn the_nearest_and_last_mount_counts() {
        for (path, kind) in [
            ("/home", "ext4"),
            ("/srv/a", "tmpfs"),
            ("/srvx", "ext4"),
            ("/srv/a b/c", "btrfs"),
        ] {
            assert_eq!(file_system(MOUNTS, Path::new(path)).as_deref(), Some(kind), "{path}");
        }
        assert_eq!(file_system(b"", Path::new("/")), None);
    }

    #[test]
    fn a_path_that_does_not_exist_lies_where_its_parent_does() {
        let (whole, real) = resolved(Path::new("/proc/self/nowhere/x")).unwrap();
        assert_eq!(real, PathBuf::from(format!("/proc/{}", std::process::id())));
        assert_eq!(whole, real.join("nowhere/x"));
        assert_eq!(resolved(Path::new("/proc")).unwrap().0, Path::new("/proc"));
    }
}
