//! Exit codes of the agent.

/// Exit code where a server cannot be reached.
pub(crate) const UNREACHABLE: u8 = 3;

/// An error that ends the program with an exit code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Exit {
    pub code: u8,
    pub message: String,
    /// Whether standard output holds the message already.
    pub reported: bool,
}
