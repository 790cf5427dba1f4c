//! Errors of connections, and why a load could not begin, with hints.

use std::io;

use steelyard_channel::ContactError;
use steelyard_channel::{CLOSED_DURING_HANDSHAKE, Explanation, TlsError};
use steelyard_cql::CqlError;
use steelyard_load::client::CannotBegin;
use steelyard_workload::OrderError;

/// Variables that hold the name and password, where a cluster wants them; they are in no order, so in no store.
pub const USER_VARIABLE: &str = "STEELYARD_CQL_USER";
/// See `USER_VARIABLE`.
pub const PASSWORD_VARIABLE: &str = "STEELYARD_CQL_PASSWORD";

/// Why a contact could not be used or asked.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// It cannot be reached, or no longer.
    #[error(transparent)]
    Contact(#[from] ContactError),
    /// Bytes that are not the native protocol's.
    #[error("{contact} does not speak the native protocol version 4: {source}")]
    Protocol {
        /// The contact.
        contact: String,
        /// What is wrong with them.
        source: CqlError,
    },
    /// An answer that does not belong to the request.
    #[error("{contact} answered {what}, but {wanted} was expected")]
    Unexpected {
        /// The contact.
        contact: String,
        /// What was answered.
        what: String,
        /// What the request calls for.
        wanted: &'static str,
    },
    /// Credentials are wanted and there are none.
    #[error("{contact} requires a user and a password ({authenticator})")]
    NoCredentials {
        /// The contact.
        contact: String,
        /// Class of the server's authenticator.
        authenticator: String,
    },
    /// The server refuses.
    #[error("{contact} refused: {message} (error {code:#06x})")]
    Server {
        /// The contact.
        contact: String,
        /// Number of the error, see `steelyard_cql::code`.
        code: i32,
        /// The server's text.
        message: String,
    },
    /// The server lacks the compression that was asked for.
    #[error("{contact} does not compress with {asked}; it offers: {offered}")]
    NoCompression {
        /// The contact.
        contact: String,
        /// The compression that was asked for.
        asked: &'static str,
        /// The compressions that it has.
        offered: String,
    },
    /// TLS failed.
    #[error("{contact} {problem}")]
    Tls {
        /// The contact.
        contact: String,
        /// What went wrong; completes a sentence that begins with the contact.
        problem: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// A setting of TLS that cannot be used.
    #[error(transparent)]
    Settings(#[from] TlsError),
}

impl ConnectionError {
    pub(crate) fn unexpected(contact: String, what: String, wanted: &'static str) -> Self {
        Self::Unexpected { contact, what, wanted }
    }

    pub(crate) fn tls(contact: &str, explanation: Explanation) -> Self {
        Self::Tls {
            contact: contact.to_owned(),
            problem: explanation.problem,
            hint: explanation.hint,
        }
    }

    /// Whether the server ended the connection without a word that says why.
    pub(crate) fn is_hung_up(&self) -> bool {
        matches!(
            self,
            Self::Contact(ContactError::Closed { .. } | ContactError::Io { .. })
                | Self::Tls {
                    hint: CLOSED_DURING_HANDSHAKE,
                    ..
                }
        )
    }

    /// Whether the contact seems to be away, rather than to refuse: another may answer.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Self::Contact(_))
    }

    /// That what the contact sent is not what the protocol says.
    pub fn broken(contact: &str, source: CqlError) -> Self {
        Self::Protocol {
            contact: contact.to_owned(),
            source,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        let hint = match self {
            Self::Contact(error) => return error.hint("CQL", 9042),
            Self::Protocol { .. } => "is that the node's port for CQL (9042 by default)?",
            Self::Unexpected { .. } => "does that server speak the native protocol of Cassandra?",
            Self::NoCredentials { .. } => "set STEELYARD_CQL_USER and STEELYARD_CQL_PASSWORD in the environment",
            Self::Server { code, .. } if *code == steelyard_cql::code::BAD_CREDENTIALS => {
                "STEELYARD_CQL_USER and STEELYARD_CQL_PASSWORD hold what was sent"
            }
            Self::Server { code, .. } if *code == steelyard_cql::code::UNAUTHORIZED => {
                "GRANT the missing permission to this user, or name another user"
            }
            Self::Server { .. } => "do keyspace, table and columns exist, and may this user use them?",
            Self::NoCompression { .. } => "ask for another compression, or for none",
            Self::Tls { hint, .. } => hint,
            Self::Settings(_) => "change tls, or the file that it names",
        };
        hint.to_owned()
    }
}

/// Why the load could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A contact that could not be used.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// An order that is not possible.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// This machine's kernel refuses.
    #[error("this machine refuses: {0}")]
    Machine(#[from] io::Error),
}

impl From<ConnectError> for CannotBegin {
    fn from(error: ConnectError) -> Self {
        let (hint, is_away) = match &error {
            ConnectError::Connection(error) => {
                let refuses = matches!(error, ConnectionError::Server { .. } | ConnectionError::Settings(_));
                (error.hint(), !refuses)
            }
            _ => ("change the order".to_owned(), false),
        };
        Self {
            message: error.to_string(),
            hint,
            is_away,
        }
    }
}
