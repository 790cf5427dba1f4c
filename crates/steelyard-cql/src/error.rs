//! What can be wrong with bytes, and the numbers by which a server says what is wrong with a request.

use thiserror::Error;

/// Bytes that are not what the protocol says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CqlError {
    #[error("a frame's body ended {missing} bytes early while reading {what}")]
    Short { what: &'static str, missing: usize },
    #[error("{what} is not UTF-8")]
    NotUtf8 { what: &'static str },
    #[error("unknown {what}: {number:#x}")]
    Unknown { what: &'static str, number: i64 },
    #[error("a frame announces a body of {bytes} bytes; at most {limit} are accepted")]
    TooLong { bytes: u64, limit: u64 },
    #[error("a compressed frame, though no compression was agreed")]
    Compressed,
    #[error("a compressed body that is not what {compression} makes")]
    Corrupt { compression: &'static str },
    #[error("a value of type {kind} cannot have {bytes} bytes")]
    Value { kind: &'static str, bytes: usize },
    #[error("types are nested more than {limit} deep")]
    TooDeep { limit: usize },
}

/// Error codes of the protocol (section 9 of the specification).
pub mod code {
    pub const SERVER: i32 = 0x0000;
    pub const PROTOCOL: i32 = 0x000A;
    pub const BAD_CREDENTIALS: i32 = 0x0100;
    pub const UNAVAILABLE: i32 = 0x1000;
    pub const OVERLOADED: i32 = 0x1001;
    pub const IS_BOOTSTRAPPING: i32 = 0x1002;
    pub const TRUNCATE: i32 = 0x1003;
    pub const WRITE_TIMEOUT: i32 = 0x1100;
    pub const READ_TIMEOUT: i32 = 0x1200;
    pub const READ_FAILURE: i32 = 0x1300;
    pub const FUNCTION_FAILURE: i32 = 0x1400;
    pub const WRITE_FAILURE: i32 = 0x1500;
    pub const SYNTAX: i32 = 0x2000;
    pub const UNAUTHORIZED: i32 = 0x2100;
    pub const INVALID: i32 = 0x2200;
    pub const CONFIG: i32 = 0x2300;
    pub const ALREADY_EXISTS: i32 = 0x2400;
    pub const UNPREPARED: i32 = 0x2500;
}
