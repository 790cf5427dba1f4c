//! Errors of decoding, and the error codes of the protocol.

use thiserror::Error;

/// Bytes that are not what the protocol says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CqlError {
    /// Fewer bytes than were announced.
    #[error("a frame's body ended {missing} bytes early while reading {what}")]
    Short {
        /// What was read.
        what: &'static str,
        /// Bytes that are missing.
        missing: usize,
    },
    /// Text that is not UTF-8.
    #[error("{what} is not UTF-8")]
    NotUtf8 {
        /// What was read.
        what: &'static str,
    },
    /// A number without a meaning.
    #[error("unknown {what}: {number:#x}")]
    Unknown {
        /// What was read.
        what: &'static str,
        /// The number.
        number: i64,
    },
    /// A body above the limit.
    #[error("a frame announces a body of {bytes} bytes; at most {limit} are accepted")]
    TooLong {
        /// Length that was announced.
        bytes: u64,
        /// Longest body that is read.
        limit: u64,
    },
    /// A compressed frame where no compression was agreed.
    #[error("a compressed frame, though no compression was agreed")]
    Compressed,
    /// A body that cannot be decompressed.
    #[error("a compressed body that is not what {compression} makes")]
    Corrupt {
        /// The compression that was agreed.
        compression: &'static str,
    },
    /// Bytes that are no value of the type.
    #[error("a value of type {kind} cannot have {bytes} bytes")]
    Value {
        /// The type.
        kind: &'static str,
        /// How many bytes there were.
        bytes: usize,
    },
    /// A count that is negative, or above what the bytes behind it can hold.
    #[error("{count} {what} are announced, but the remaining bytes hold at most {most}")]
    Count {
        /// What is counted.
        what: &'static str,
        /// The count.
        count: i64,
        /// The most that can be there.
        most: usize,
    },
    /// More of something than is ever read.
    #[error("more than {limit} {what}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The most that is read.
        limit: usize,
    },
    /// Types nested too deep.
    #[error("types are nested more than {limit} deep")]
    TooDeep {
        /// Deepest nesting that is read.
        limit: usize,
    },
}

/// Error codes of the protocol (section 9 of the specification).
pub mod code {
    /// Anything else that went wrong in the server.
    pub const SERVER: i32 = 0x0000;
    /// A message that breaks the protocol.
    pub const PROTOCOL: i32 = 0x000A;
    /// Wrong user or password.
    pub const BAD_CREDENTIALS: i32 = 0x0100;
    /// Too few replicas are alive.
    pub const UNAVAILABLE: i32 = 0x1000;
    /// The coordinator takes no more requests.
    pub const OVERLOADED: i32 = 0x1001;
    /// The coordinator is still joining the cluster.
    pub const IS_BOOTSTRAPPING: i32 = 0x1002;
    /// A `TRUNCATE` failed.
    pub const TRUNCATE: i32 = 0x1003;
    /// Too few replicas acknowledged a write in time.
    pub const WRITE_TIMEOUT: i32 = 0x1100;
    /// Too few replicas answered a read in time.
    pub const READ_TIMEOUT: i32 = 0x1200;
    /// A replica failed to read.
    pub const READ_FAILURE: i32 = 0x1300;
    /// A user-defined function failed.
    pub const FUNCTION_FAILURE: i32 = 0x1400;
    /// A replica failed to write.
    pub const WRITE_FAILURE: i32 = 0x1500;
    /// The statement is no CQL.
    pub const SYNTAX: i32 = 0x2000;
    /// This user may not do that.
    pub const UNAUTHORIZED: i32 = 0x2100;
    /// The statement is not possible, for instance on a table that does not exist.
    pub const INVALID: i32 = 0x2200;
    /// The statement conflicts with the server's configuration.
    pub const CONFIG: i32 = 0x2300;
    /// A keyspace or table of that name exists.
    pub const ALREADY_EXISTS: i32 = 0x2400;
    /// The prepared statement is not known; it must be prepared again.
    pub const UNPREPARED: i32 = 0x2500;
}
