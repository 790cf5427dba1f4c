//! The error for an order that cannot be carried out.

use std::borrow::Cow;
use std::fmt::Display;

/// The order asks for something that is not possible: which field, what was read, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: read {read}; allowed: {allowed}")]
pub struct OrderError {
    /// Path of the field in the order.
    pub field: Cow<'static, str>,
    /// What the order says there.
    pub read: String,
    /// What it may say.
    pub allowed: Cow<'static, str>,
}

impl OrderError {
    /// The error for one field.
    pub fn new(field: impl Into<Cow<'static, str>>, read: impl Display, allowed: impl Into<Cow<'static, str>>) -> Self {
        Self {
            field: field.into(),
            read: read.to_string(),
            allowed: allowed.into(),
        }
    }

    /// The same error, of a field within `path`.
    pub fn within(mut self, path: impl Display) -> Self {
        self.field = format!("{path}.{}", self.field).into();
        self
    }
}
