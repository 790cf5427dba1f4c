//! `files list`, `clone`, `folders`: whole trees.

use std::fs::{self, File, FileTimes, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde_json::json;

use super::error::{FilesError, is_missing};
use crate::atomic_file::create_parents;

/// Deeper trees are link loops or damaged.
pub(super) const DEEPEST: usize = 128;

pub(super) fn list(folder: &Path) -> Result<(), FilesError> {
    let mut files = Vec::new();
    collect(folder, Path::new(""), &mut files, DEEPEST)?;
    files.sort_unstable();
    let mut out = BufWriter::new(io::stdout().lock());
    for (name, bytes) in files {
        writeln!(out, "{}", json!({"name": name, "bytes": bytes}))?;
    }
    out.flush()?;
    Ok(())
}

/// Regular files below a folder with relative name and length; links are not followed. What disappears meanwhile is left out.
fn collect(root: &Path, below: &Path, files: &mut Vec<(String, u64)>, depth: usize) -> Result<(), FilesError> {
    let folder = root.join(below);
    let failed = FilesError::of("list", &folder);
    if depth == 0 {
        return Err(FilesError::refused("list", &folder, "the tree is too deep"));
    }
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if is_missing(&error) => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    for entry in entries {
        let entry = entry.map_err(&failed)?;
        let name = below.join(entry.file_name());
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => collect(root, &name, files, depth - 1)?,
            Ok(metadata) if metadata.is_file() => files.push((name.to_string_lossy().into_owned(), metadata.len())),
            Ok(_) => {}
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

pub(super) fn create_folders(paths: &[PathBuf]) -> Result<(), FilesError> {
    paths
        .iter()
        .try_for_each(|path| fs::create_dir_all(path).map_err(FilesError::of("create the folder", path)))
}

pub(super) fn clone(source: &Path, target: &Path) -> Result<(), FilesError> {
    let failed = FilesError::of("clone", source);
    // A link that is named itself stands for what it leads to; those within a tree stay links.
    let real = fs::canonicalize(source).map_err(|error| {
        if is_missing(&error) {
            FilesError::Missing {
                path: source.to_path_buf(),
            }
        } else {
            failed(error)
        }
    })?;
    create_parents(target).map_err(FilesError::of("create the folders above", target))?;
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    let place = fs::canonicalize(parent.unwrap_or(Path::new("."))).map_err(&failed)?;
    if place.starts_with(&real) {
        let reason = format!("it is within {}", source.display());
        return Err(FilesError::refused("clone to", target, reason));
    }
    clone_entry(&real, target, DEEPEST)
}

fn clone_entry(source: &Path, target: &Path, depth: usize) -> Result<(), FilesError> {
    let failed = FilesError::of("clone", source);
    let metadata = fs::symlink_metadata(source).map_err(&failed)?;
    if metadata.is_dir() {
        clone_folder(source, target, &metadata, depth)
    } else if metadata.is_symlink() {
        let leads_to = fs::read_link(source).map_err(&failed)?;
        clear(target)
            .and_then(|()| std::os::unix::fs::symlink(leads_to, target))
            .map_err(FilesError::of("create the link", target))
    } else if metadata.is_file() {
        clear(target)
            .and_then(|()| link_or_copy(source, target, &metadata))
            .map_err(FilesError::of("create", target))
    } else {
        Err(FilesError::refused("clone", source, "it is not a file, folder or link"))
    }
}

fn clone_folder(source: &Path, target: &Path, metadata: &Metadata, depth: usize) -> Result<(), FilesError> {
    let failed = FilesError::of("clone", source);
    if depth == 0 {
        return Err(FilesError::refused("clone", source, "the tree is too deep"));
    }
    let is_new = match fs::create_dir(target) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && target.is_dir() => false,
        Err(error) => return Err(FilesError::of("create the folder", target)(error)),
    };
    for entry in fs::read_dir(source).map_err(&failed)? {
        let name = entry.map_err(&failed)?.file_name();
        clone_entry(&source.join(&name), &target.join(&name), depth - 1)?;
    }
    if is_new {
        // Last: it may forbid to write into it.
        let permissions = fs::set_permissions(target, metadata.permissions());
        permissions.map_err(FilesError::of("set the permissions of", target))?;
    }
    Ok(())
}

/// Makes room for a file. One that is there is never written to: it may be a link to a file of somebody else.
fn clear(target: &Path) -> io::Result<()> {
    match fs::remove_file(target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn link_or_copy(source: &Path, target: &Path, metadata: &Metadata) -> io::Result<()> {
    match fs::hard_link(source, target) {
        Err(error) if forbids_links(&error) => {
            fs::copy(source, target)?;
            // As a link would have it; a file that must not be written cannot have it, and need not.
            let times = FileTimes::new().set_modified(metadata.modified()?);
            let _ = File::options()
                .write(true)
                .open(target)
                .and_then(|file| file.set_times(times));
            Ok(())
        }
        outcome => outcome,
    }
}

/// Another file system, one without links, one whose rules forbid this link, or too many links to one file.
fn forbids_links(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        code,
        Some(Errno::XDEV | Errno::PERM | Errno::ACCESS | Errno::MLINK | Errno::OPNOTSUPP | Errno::NOSYS)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refusals_of_links_lead_to_copies() {
        for (code, copies) in [
            (libc::EXDEV, true),
            (libc::EPERM, true),
            (libc::EMLINK, true),
            (libc::ENOSPC, false),
            (libc::ENOENT, false),
        ] {
            assert_eq!(forbids_links(&io::Error::from_raw_os_error(code)), copies, "{code}");
        }
    }
}
