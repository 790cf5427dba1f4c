//! Refusals: why a request is not carried out.

use steelyard_cql::code;

/// Why a request is refused: the protocol's code, and words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: i32,
    pub message: String,
}

/// A refusal with the code for requests that make no sense.
pub fn invalid(message: impl Into<String>) -> Refusal {
    Refusal {
        code: code::INVALID,
        message: message.into(),
    }
}
