//! Errors of connections, and why a load could not begin, with hints.

use std::io;

use steelyard_channel::TlsError;
use steelyard_cql::CqlError;
use steelyard_workload::OrderError;

/// Variables that hold the name and password, where a cluster wants them; they are in no order, so in no store.
pub const USER_VARIABLE: &str = "STEELYARD_CQL_USER";
pub const PASSWORD_VARIABLE: &str = "STEELYARD_CQL_PASSWORD";

/// Why a contact could not be used or asked.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    #[error("{contact} is no address:port ({reason})")]
    Address { contact: String, reason: String },
    #[error("{contact} {}: {source}", connect_verb(source))]
    Connect { contact: String, source: std::io::Error },
    #[error("{contact} closed the connection")]
    Closed { contact: String },
    #[error("{contact} did not answer within {timeout_s} s")]
    Timeout { contact: String, timeout_s: f64 },
    #[error("{contact}: {source}")]
    Io { contact: String, source: std::io::Error },
    #[error("{contact} does not speak the native protocol version 4: {source}")]
    Protocol { contact: String, source: CqlError },
    #[error("{contact} answered {what} where {wanted} was due")]
    Unexpected {
        contact: String,
        what: String,
        wanted: &'static str,
    },
    #[error("{contact} wants a user and a password ({authenticator}); set {USER_VARIABLE} and {PASSWORD_VARIABLE}")]
    NoCredentials { contact: String, authenticator: String },
    #[error("{contact} refused: {message} (error {code:#06x})")]
    Server {
        contact: String,
        code: i32,
        message: String,
    },
    #[error("{contact} does not compress with {asked}; it offers: {offered}")]
    NoCompression {
        contact: String,
        asked: &'static str,
        offered: String,
    },
    #[error("{contact} {problem}")]
    Tls {
        contact: String,
        problem: String,
        hint: &'static str,
    },
    #[error(transparent)]
    Settings(#[from] TlsError),
}

impl ConnectionError {
    pub(crate) fn unexpected(contact: String, what: String, wanted: &'static str) -> Self {
        Self::Unexpected { contact, what, wanted }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Address { .. } => "allowed: a name or an address, a colon, a port",
            Self::Closed { .. } => "is the cluster started? Does that port want TLS (tls)?",
            Self::NoCredentials { .. } => "name and password are read from the environment, never from files",
            Self::Server { code, .. } if *code == steelyard_cql::code::BAD_CREDENTIALS => {
                "STEELYARD_CQL_USER and STEELYARD_CQL_PASSWORD hold what was sent"
            }
            Self::Server { .. } => "do keyspace, table and columns exist, and may this user use them?",
            Self::NoCompression { .. } => "ask for another compression, or for none",
            Self::Tls { hint, .. } => hint,
            Self::Settings(_) => "change tls",
            _ => "is the cluster started?",
        }
    }
}

fn connect_verb(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::ConnectionRefused => "refused",
        _ => "cannot be reached",
    }
}

/// Why the load could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Order(#[from] OrderError),
    #[error("this machine refuses: {0}")]
    Machine(#[from] io::Error),
}
