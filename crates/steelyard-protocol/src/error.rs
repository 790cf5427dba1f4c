//! Why a load could not begin, with hints.

use std::io;

use steelyard_channel::{ContactError, Explanation, TlsError};
use steelyard_load::client::CannotBegin;
use steelyard_workload::OrderError;

/// A protocol, as errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language {
    /// In a sentence: `Redis' protocol`.
    pub name: &'static str,
    /// In short: `RESP`.
    pub short: &'static str,
    /// The port by default.
    pub port: u16,
}

/// Why bytes are not a protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// Why a load could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A contact cannot be reached, or no longer.
    #[error(transparent)]
    Contact(#[from] ContactError),
    /// Bytes that are not the protocol's.
    #[error("{contact} does not speak {}: {source}", language.name)]
    Protocol {
        /// The contact.
        contact: String,
        /// The protocol.
        language: &'static Language,
        /// What is wrong with the bytes.
        source: Malformed,
    },
    /// The server refuses, or is another than the load needs.
    #[error("{message}")]
    Refused {
        /// What is wrong, with the contact.
        message: String,
        /// What to do about it.
        hint: &'static str,
        /// Whether that is as good as not being reached.
        is_away: bool,
    },
    /// An order that is not possible.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// This machine's kernel refuses.
    #[error("this machine refuses: {0}")]
    Machine(#[from] io::Error),
}

impl ConnectError {
    /// That TLS failed.
    pub fn tls(contact: &str, explanation: Explanation) -> Self {
        Self::Refused {
            message: format!("{contact} {}", explanation.problem),
            hint: explanation.hint,
            is_away: true,
        }
    }

    /// Whether the contact cannot be reached, so that another may be enough.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Contact(_))
    }

    /// As a load over that protocol reports it.
    pub fn cannot_begin(&self, language: &Language) -> CannotBegin {
        let Language { short, port, .. } = language;
        let hint = match self {
            Self::Contact(error) => error.hint(short, *port),
            Self::Protocol { .. } => {
                format!(
                    "is that the node's port for {short} ({port} by default), and is it encrypted only if tls is set?"
                )
            }
            Self::Refused { hint, .. } => (*hint).to_owned(),
            Self::Order(_) => "change the order".to_owned(),
            Self::Machine(_) => "change the order, or this machine's limits".to_owned(),
        };
        let is_away = match self {
            Self::Contact(_) | Self::Protocol { .. } => true,
            Self::Refused { is_away, .. } => *is_away,
            Self::Order(_) | Self::Machine(_) => false,
        };
        CannotBegin {
            message: self.to_string(),
            hint,
            is_away,
        }
    }
}

impl From<TlsError> for ConnectError {
    fn from(error: TlsError) -> Self {
        let problem = format!("read {}; {}", error.read, error.problem);
        OrderError::because(error.field, problem).into()
    }
}
