//! Deadlines: the time within which a contact must have done what is under way. Each wait is given what is left of it, so that
//! a server that sends a byte now and then gains nothing.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use crate::ContactError;

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
    pub fn restart(&mut self) {
        self.at = Instant::now() + self.timeout;
    }

    /// The contact.
    pub fn contact(&self) -> &str {
        &self.contact
    }

    /// When the time is over.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// What is left, never nothing. Errors: the time is over.
    pub fn left(&self) -> Result<Duration, ContactError> {
        let left = self.at.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(self.over()) } else { Ok(left) }
    }

    /// That the time is over.
    pub fn over(&self) -> ContactError {
        ContactError::Timeout {
            contact: self.contact.clone(),
            timeout_s: self.timeout.as_secs_f64(),
        }
    }

    /// What an error of the connection means: that the time is over, or that it was closed, or failed.
    pub fn explain(&self, source: io::Error) -> ContactError {
        let contact = self.contact.clone();
        match source.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => self.over(),
            ErrorKind::UnexpectedEof => ContactError::Closed { contact },
            _ => ContactError::Io { contact, source },
        }
    }
}
