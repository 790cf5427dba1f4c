//! Deadlines: the time within which a contact must have done what is under way. Each wait is given what is left of it, so that
//! a server that sends a byte now and then gains nothing.

use std::time::{Duration, Instant};

use steelyard_cql::CqlError;

use crate::error::ConnectionError;

/// Until when a contact is waited for.
#[derive(Clone, Debug)]
pub struct Deadline {
    contact: String,
    timeout: Duration,
    at: Instant,
}

impl Deadline {
    /// `timeout` from now on.
    pub fn new(contact: &str, timeout: Duration) -> Self {
        Self {
            contact: contact.to_owned(),
            timeout,
            at: Instant::now() + timeout,
        }
    }

    /// The whole time again, from now on.
    pub(crate) fn restart(&mut self) {
        self.at = Instant::now() + self.timeout;
    }

    pub(crate) fn contact(&self) -> &str {
        &self.contact
    }

    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    /// What is left, never nothing. Errors: the time is over.
    pub fn left(&self) -> Result<Duration, ConnectionError> {
        let left = self.at.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(self.over()) } else { Ok(left) }
    }

    /// That what the contact sent is not what the protocol says.
    pub fn broken(&self, source: CqlError) -> ConnectionError {
        ConnectionError::Protocol {
            contact: self.contact.clone(),
            source,
        }
    }

    /// That the time is over.
    pub(crate) fn over(&self) -> ConnectionError {
        ConnectionError::Timeout {
            contact: self.contact.clone(),
            timeout_s: self.timeout.as_secs_f64(),
        }
    }
}
