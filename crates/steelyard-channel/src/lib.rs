//! Connections as bytes: encrypted or not (`Channel`), compressed or not (`Pipe`), and as the client of a load drives them
//! (`line`). Load, single statements and the simulated server use the same few calls. Also how a connection is made and
//! waited for (`contact`, `Deadline`, `Backoff`, `events`), how helper threads reach whoever waits (`Mailbox`), and a server that answers at
//! once (`answering`).
//!
//! Why a crate of its own: the client and the simulated server are the two ends of the same thing, and nothing else
//! should know which library encrypts. What is neither encrypted nor compressed costs a branch on top of the system call.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod answering;
mod backoff;
mod channel;
pub mod contact;
mod contact_error;
mod deadline;
pub mod events;
pub mod line;
mod mailbox;
mod node_verifier;
mod pipe;
mod settings;
mod tls_errors;
mod x509;

pub use backoff::Backoff;
pub use channel::Channel;
pub use contact_error::ContactError;
pub use deadline::Deadline;
pub use mailbox::{MailSender, Mailbox};
pub use pipe::Pipe;
pub use settings::{ClientTls, ServerTls, TlsError};
pub use tls_errors::{
    CLOSED_DURING_HANDSHAKE, Explanation, answered_in_tls, explain, looks_like_tls, under_tls, without_tls,
};
