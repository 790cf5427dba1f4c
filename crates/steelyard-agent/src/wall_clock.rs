//! The wall clock of this node, as a process finds it when it starts; with the offset that tests of wrong clocks give it.
//!
//! It is read once, and the monotonic clock from then on: nobody's setting of the clock, such as `disrupt clock`, moves the times of
//! what is measured meanwhile.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Seconds that are added to the wall clock, for tests of nodes whose clocks are wrong.
const OFFSET_VARIABLE: &str = "STEELYARD_CLOCK_OFFSET_S";
/// A year: beyond it, the number is not meant as seconds.
const LARGEST_OFFSET_S: f64 = 366.0 * 86_400.0;
const READINGS: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WallClock {
    offset_s: f64,
    read: Instant,
    /// Seconds since the epoch then.
    read_s: f64,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "{name}: read {text:?}; allowed: seconds from -{limit} to {limit}. Unset it outside tests",
    name = OFFSET_VARIABLE,
    limit = LARGEST_OFFSET_S
)]
pub(crate) struct OffsetError {
    text: String,
}

impl WallClock {
    /// The clock of this process; its environment may give it an offset.
    pub(crate) fn from_environment() -> Result<Self, OffsetError> {
        match std::env::var_os(OFFSET_VARIABLE) {
            Some(text) => Self::with_offset(&text.to_string_lossy()),
            None => Ok(Self::ahead(0.0)),
        }
    }

    fn with_offset(text: &str) -> Result<Self, OffsetError> {
        text.trim()
            .parse()
            .ok()
            .filter(|offset_s: &f64| offset_s.abs() <= LARGEST_OFFSET_S)
            .map(Self::ahead)
            .ok_or_else(|| OffsetError { text: text.to_owned() })
    }

    /// By the reading that took least, as this program may have to wait in the middle of one.
    fn ahead(offset_s: f64) -> Self {
        let reading = || {
            let before = Instant::now();
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            (before.elapsed(), before, since)
        };
        let (mut took, mut read, mut since) = reading();
        for _ in 1..READINGS {
            (took, read, since) = reading().min((took, read, since));
        }
        Self {
            offset_s,
            read: read + took / 2,
            read_s: since.as_secs_f64(),
        }
    }

    /// Seconds since the epoch.
    pub(crate) fn now_s(self) -> f64 {
        self.read_s + self.read.elapsed().as_secs_f64() + self.offset_s
    }

    pub(crate) fn offset_s(self) -> f64 {
        self.offset_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_added_and_anything_else_is_refused() {
        let fast = WallClock::with_offset("3.5").unwrap();
        let right = WallClock::ahead(0.0);
        let ahead_s = fast.now_s() - right.now_s();
        assert!((3.4..=3.6).contains(&ahead_s), "{ahead_s}");
        assert_eq!(WallClock::with_offset(" -2 ").unwrap().offset_s(), -2.0);
        for refused in ["", "soon", "NaN", "inf", "1e12"] {
            let error = WallClock::with_offset(refused).unwrap_err().to_string();
            assert!(error.contains("STEELYARD_CLOCK_OFFSET_S: read"), "{error}");
        }
    }
}
