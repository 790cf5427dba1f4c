//! Outcomes of operations, and which of them are answers. All code that counts answers or errors uses `Outcome::is_error`.

/// How an operation ended. The order is that of `Outcome::ALL`, so that tallies can be arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// Answered.
    Ok,
    /// Answered, but the row that was read is not there.
    NotFound,
    /// No answer within the order's time-out.
    Timeout,
    /// Too few replicas alive, as the server says.
    Unavailable,
    /// The server gave up waiting for replicas.
    ReadTimeout,
    /// As `ReadTimeout`, of a write.
    WriteTimeout,
    /// The server takes no more requests.
    Overloaded,
    /// The connection was lost while the operation was in flight, or there was none to send it on.
    Connection,
    /// Any other error of the server.
    Server,
    /// Answered, but the row does not hold what was written into it.
    Invalid,
    /// A light-weight transaction whose condition did not hold.
    NotApplied,
}

impl Outcome {
    /// Every outcome; its position is its number.
    pub const ALL: [Self; 11] = [
        Self::Ok,
        Self::NotFound,
        Self::Timeout,
        Self::Unavailable,
        Self::ReadTimeout,
        Self::WriteTimeout,
        Self::Overloaded,
        Self::Connection,
        Self::Server,
        Self::Invalid,
        Self::NotApplied,
    ];

    /// Name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotFound => "not-found",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::ReadTimeout => "read-timeout",
            Self::WriteTimeout => "write-timeout",
            Self::Overloaded => "overloaded",
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Invalid => "invalid",
            Self::NotApplied => "not-applied",
        }
    }

    /// Whether it is an error: all but answers, with or without a row.
    pub fn is_error(self) -> bool {
        !matches!(self, Self::Ok | Self::NotFound | Self::NotApplied)
    }
}
