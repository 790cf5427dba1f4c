//! The error for an order that cannot be carried out.

use std::borrow::Cow;
use std::fmt::Display;

/// The order asks for something impossible: which field, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct OrderError {
    /// Path of the field in the order.
    pub field: Cow<'static, str>,
    /// What is wrong with it: what was read and what is allowed, or a sentence.
    pub problem: Cow<'static, str>,
}

impl OrderError {
    /// The error for a field with another value than those allowed.
    pub fn new(field: impl Into<Cow<'static, str>>, read: impl Display, allowed: impl Display) -> Self {
        Self::because(field, format!("read {read}; allowed: {allowed}"))
    }

    /// The error for a field, with a sentence that says why.
    pub fn because(field: impl Into<Cow<'static, str>>, problem: impl Into<Cow<'static, str>>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }

    /// The same error for a field within `path`.
    pub fn within(mut self, path: impl Display) -> Self {
        self.field = format!("{path}.{}", self.field).into();
        self
    }
}
