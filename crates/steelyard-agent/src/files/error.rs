//! What goes wrong with files, as people read it.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use crate::exit::{Exit, MISSING, REFUSED};

#[derive(Debug, thiserror::Error)]
pub(super) enum FilesError {
    #[error("files: cannot {action} {path}: {source}")]
    Action {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("files: {path} does not exist")]
    Missing { path: PathBuf },
    #[error("files: refused to {action} {path}: {reason}")]
    Refused {
        action: &'static str,
        path: PathBuf,
        reason: String,
    },
    #[error(
        "files: {path} was not written: standard input had {read} bytes, not the {expected} of --bytes; did the connection break?"
    )]
    Cut { path: PathBuf, read: u64, expected: u64 },
    #[error("files: cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

impl FilesError {
    /// For `map_err`: which action failed on which path.
    pub(super) fn of(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Action {
            action,
            path: path.to_path_buf(),
            source,
        }
    }

    pub(super) fn refused(action: &'static str, path: &Path, reason: impl Into<String>) -> Self {
        Self::Refused {
            action,
            path: path.to_path_buf(),
            reason: reason.into(),
        }
    }

    pub(super) fn is_closed_output(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The error with its exit code: 3 for what is missing, 2 for what is refused, else 1.
pub(super) fn with_code(error: FilesError) -> Box<dyn Error> {
    match &error {
        FilesError::Missing { .. } => Exit::boxed(MISSING, error.to_string()),
        FilesError::Refused { .. } => Exit::boxed(REFUSED, error.to_string()),
        _ => error.into(),
    }
}

/// Whether nothing lies at a path, also because something above it is a file.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
