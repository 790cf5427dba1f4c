//! Connections as bytes: encrypted or not (`Channel`), compressed or not (`Pipe`). Load, single statements and the simulated
//! server use the same few calls.
//!
//! Why a crate of its own: the client and the simulated server are the two ends of the same thing, and nothing else
//! should know which library encrypts. What is neither encrypted nor compressed costs a branch on top of the system call.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod channel;
pub mod events;
mod node_verifier;
mod pipe;
mod settings;
mod tls_errors;
mod x509;

pub use channel::Channel;
pub use pipe::Pipe;
pub use settings::{ClientTls, ServerTls, TlsError};
pub use tls_errors::{
    CLOSED_DURING_HANDSHAKE, Explanation, answered_in_tls, explain, looks_like_tls, under_tls, without_tls,
};
