//! The wall clock of this node, with the offset that tests of wrong clocks give it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds that are added to the wall clock, for tests of nodes whose clocks are wrong.
const OFFSET_VARIABLE: &str = "STEELYARD_CLOCK_OFFSET_S";
/// A year: beyond it, the number is not meant as seconds.
const LARGEST_OFFSET_S: f64 = 366.0 * 86_400.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WallClock {
    offset_s: f64,
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
            None => Ok(Self { offset_s: 0.0 }),
        }
    }

    fn with_offset(text: &str) -> Result<Self, OffsetError> {
        text.trim()
            .parse()
            .ok()
            .filter(|offset_s: &f64| offset_s.abs() <= LARGEST_OFFSET_S)
            .map(|offset_s| Self { offset_s })
            .ok_or_else(|| OffsetError { text: text.to_owned() })
    }

    /// Seconds since the epoch.
    pub(crate) fn now_s(self) -> f64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_secs_f64() + self.offset_s
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
        let right = WallClock { offset_s: 0.0 };
        let ahead_s = fast.now_s() - right.now_s();
        assert!((3.4..=3.6).contains(&ahead_s), "{ahead_s}");
        assert_eq!(WallClock::with_offset(" -2 ").unwrap().offset_s(), -2.0);
        for refused in ["", "soon", "NaN", "inf", "1e12"] {
            let error = WallClock::with_offset(refused).unwrap_err().to_string();
            assert!(error.contains("STEELYARD_CLOCK_OFFSET_S: read"), "{error}");
        }
    }
}
