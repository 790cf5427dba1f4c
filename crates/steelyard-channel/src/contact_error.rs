//! Why a contact cannot be reached, with hints.

use std::io::{self, ErrorKind};

/// Why a contact cannot be reached, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum ContactError {
    /// Not an address, or none that is known.
    #[error("{contact} is not an address:port ({reason})")]
    Address {
        /// The contact.
        contact: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A name without an address.
    #[error("no address is known for {contact} ({reason})")]
    UnknownName {
        /// The contact.
        contact: String,
        /// What the resolver says.
        reason: String,
    },
    /// No TCP connection.
    #[error("{contact} {}", connect_failure(source))]
    Connect {
        /// The contact.
        contact: String,
        /// Why.
        source: io::Error,
    },
    /// The server closed the connection.
    #[error("{contact} closed the connection")]
    Closed {
        /// The contact.
        contact: String,
    },
    /// None of several contacts answers.
    #[error("no contact answers: {}", causes.join("; "))]
    NoContact {
        /// Each contact with its cause.
        causes: Vec<String>,
    },
    /// No answer in time.
    #[error("{contact} did not answer within {timeout_s} s")]
    Timeout {
        /// The contact.
        contact: String,
        /// Seconds that were waited.
        timeout_s: f64,
    },
    /// The connection failed.
    #[error("{contact}: {source}")]
    Io {
        /// The contact.
        contact: String,
        /// Why.
        source: io::Error,
    },
}

impl ContactError {
    /// What to do about it, where the contact should speak a protocol, at that port by default.
    pub fn hint(&self, protocol: &str, port: u16) -> String {
        match self {
            Self::Address { .. } => "allowed: a name or an address, a colon, a port".to_owned(),
            Self::UnknownName { .. } => "is the name spelt correctly? It is resolved on this machine".to_owned(),
            Self::Connect { source, .. } if source.kind() == ErrorKind::ConnectionRefused => {
                format!("is the cluster running, and is that its port for {protocol} ({port} by default)?")
            }
            Self::Connect { .. } => {
                "are address and port right, and does a firewall let this machine through?".to_owned()
            }
            Self::NoContact { .. } => format!(
                "are these names, addresses and ports (for {protocol} {port} by default) right, is the cluster running, and does a firewall let this machine through?"
            ),
            Self::Closed { .. } | Self::Io { .. } | Self::Timeout { .. } => {
                format!(
                    "is that the port for {protocol} ({port} by default), and is the node healthy? Its log may say why"
                )
            }
        }
    }
}

fn connect_failure(source: &io::Error) -> String {
    match source.kind() {
        ErrorKind::ConnectionRefused => "refused the connection".to_owned(),
        _ => format!("cannot be reached: {source}"),
    }
}
