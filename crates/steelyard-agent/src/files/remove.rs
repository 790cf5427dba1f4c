//! `files remove`: trees, and nothing outside the named folder.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::error::{FilesError, is_missing};
use super::place::resolved;

#[derive(clap::Args)]
pub struct Arguments {
    /// The folder that everything to remove lies strictly below; it stays.
    #[arg(long, value_name = "ROOT")]
    below: PathBuf,
    /// Files, links (not what they lead to) and trees.
    #[arg(required = true)]
    path: Vec<PathBuf>,
}

/// Everything is checked before anything is removed.
pub(super) fn run(arguments: &Arguments) -> Result<(), FilesError> {
    let root = root(&arguments.below)?;
    let places: Vec<PathBuf> = arguments
        .path
        .iter()
        .map(|path| checked(path, &root))
        .collect::<Result<_, _>>()?;
    for place in places {
        remove(&place)?;
    }
    Ok(())
}

fn root(below: &Path) -> Result<PathBuf, FilesError> {
    let (root, _) = resolved(below).map_err(FilesError::of("find the folder", below))?;
    if root == Path::new("/") {
        return Err(FilesError::refused(
            "remove what is below",
            below,
            "that would remove everything; name a specific folder",
        ));
    }
    Ok(root)
}

/// The path without links above its last component, which is strictly below the root.
fn checked(path: &Path, root: &Path) -> Result<PathBuf, FilesError> {
    let refused = |reason: String| Err(FilesError::refused("remove", path, reason));
    let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
        return refused("it does not name a file or folder".to_owned());
    };
    if path.components().any(|component| component == Component::ParentDir) {
        return refused("it contains '..'".to_owned());
    }
    let parent = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    let (parent, _) = resolved(parent).map_err(FilesError::of("find the folder of", path))?;
    let place = parent.join(name);
    if place == root || !place.starts_with(root) {
        return refused(format!("it is not below {}", root.display()));
    }
    Ok(place)
}

/// Links are removed, never followed: the standard library opens each folder from the one above it.
fn remove(place: &Path) -> Result<(), FilesError> {
    let outcome = match fs::symlink_metadata(place) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(place),
        Ok(_) => fs::remove_file(place),
        Err(error) => Err(error),
    };
    match outcome {
        Err(error) if !is_missing(&error) => Err(FilesError::of("remove", place)(error)),
        _ => Ok(()),
    }
}
