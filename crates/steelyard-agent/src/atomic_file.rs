//! Files that are replaced as a whole: a reader sees the former content or the new one, never a part.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Permission bits of what only its owner may read, and of every file that is asked for with bits until its content is complete.
pub(crate) const PRIVATE: u32 = 0o600;
const DEFAULT: u32 = 0o666;

/// Replaces `path` by what `fill` writes. Folders above it are created; if `fill` fails, the former file stays. `mode` are
/// the file's permission bits (default: those of a new file).
pub(crate) fn replace(
    path: &Path,
    mode: Option<u32>,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let part = part_of(path)?;
    create_parents(path)?;
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(if mode.is_some() { PRIVATE } else { DEFAULT })
        .open(&part)?;
    let outcome = fill(&mut file)
        .and_then(|()| mode.map_or(Ok(()), |mode| file.set_permissions(Permissions::from_mode(mode))))
        .and_then(|()| fs::rename(&part, path));
    if outcome.is_err() {
        // The first error counts; what is left over is seen by name.
        let _ = fs::remove_file(&part);
    }
    outcome
}

/// Creates the folders above a file.
pub(crate) fn create_parents(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Where the new content is written: in the same folder, so that it can be renamed.
fn part_of(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let part = format!(".{}.{}.part", name.to_string_lossy(), std::process::id());
    Ok(path.with_file_name(part))
}
