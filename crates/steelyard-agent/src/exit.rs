//! Exit codes of the agent, and the error that carries one.

use std::error::Error;

/// Exit code for what is refused before anything is done, as for a command line that is wrong.
pub(crate) const REFUSED: u8 = 2;
/// Exit code where a server cannot be reached.
pub(crate) const UNREACHABLE: u8 = 3;
/// Exit code where a file to read is not there.
pub(crate) const MISSING: u8 = 3;
/// Exit code of shells for a command that cannot be executed.
pub(crate) const NOT_EXECUTED: u8 = 127;
/// Shells add the number of the signal that killed a command to this.
pub(crate) const KILLED_BY: i32 = 128;

/// An error that ends the program with an exit code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Exit {
    pub code: u8,
    pub message: String,
    /// Whether standard output holds the message already.
    pub reported: bool,
}

impl Exit {
    /// An error that `main` prints on standard error.
    pub(crate) fn boxed(code: u8, message: impl Into<String>) -> Box<dyn Error> {
        Box::new(Self {
            code,
            message: message.into(),
            reported: false,
        })
    }
}
