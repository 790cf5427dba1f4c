//! What is kept of an operation while its request is built and its answer comes.

use crate::json::Glance;

/// What an operation's answer has been so far.
#[derive(Debug, Default)]
pub(crate) struct Course {
    pub status: u16,
    /// The status in words, of an answer that is no success.
    pub said: Vec<u8>,
    /// The body, where it is looked at as a whole.
    pub body: Vec<u8>,
    /// Bytes of the body.
    pub bytes: u64,
    /// Whether it is compared with what was written.
    pub compares: bool,
    /// The first byte that is not what it should be.
    pub differs_at: Option<u64>,
    pub glance: Glance,
    pub rows: u32,
}

/// Buffers for a request.
#[derive(Default)]
pub(crate) struct Scratch {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub body: Vec<u8>,
}
