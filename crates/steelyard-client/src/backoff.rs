//! Exponential backoff between attempts to reach a node.

use std::thread;
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// Waits that double from 50 ms up to 2 s.
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub fn new() -> Self {
        Self(FIRST)
    }

    /// Waits, and doubles the next wait.
    pub fn wait(&mut self) {
        thread::sleep(self.0);
        self.0 = (self.0 * 2).min(LONGEST);
    }

    /// The next wait is the first again.
    pub fn reset(&mut self) {
        self.0 = FIRST;
    }
}
