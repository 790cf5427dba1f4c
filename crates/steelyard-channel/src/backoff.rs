//! Exponential backoff between attempts to reach a node.

use std::thread;
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// Waits that double from 50 ms up to 2 s.
pub struct Backoff(Duration);

impl Backoff {
    /// The first wait is 50 ms.
    #[allow(clippy::new_without_default)] // It is a beginning, not an empty value.
    pub fn new() -> Self {
        Self(FIRST)
    }

    /// Waits, and doubles the next wait.
    pub fn wait(&mut self) {
        thread::sleep(self.next());
    }

    /// The wait that is next, for those that cannot sleep. The one after is twice as long.
    #[allow(clippy::should_implement_trait)] // It never ends.
    pub fn next(&mut self) -> Duration {
        let next = self.0;
        self.0 = (next * 2).min(LONGEST);
        next
    }

    /// The next wait is the first again.
    pub fn reset(&mut self) {
        self.0 = FIRST;
    }
}
