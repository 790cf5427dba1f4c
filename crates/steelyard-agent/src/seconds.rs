//! Seconds as options give them: one reader of them, and the bounds that several options share.

use std::ops::RangeInclusive;
use std::time::Duration;

const LONGEST_S: f64 = 3600.0;
const SHORTEST_INTERVAL_S: f64 = 0.01;
const LARGEST_OFFSET_S: f64 = 86_400.0;

/// Parses seconds of an option within bounds. Errors: the bounds, for people.
pub(crate) fn within(text: &str, allowed: RangeInclusive<f64>) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|seconds| allowed.contains(seconds))
        .ok_or_else(|| format!("allowed: seconds from {} to {}", allowed.start(), allowed.end()))
}

/// Parses a length of an option, up to `longest`.
pub(crate) fn length(text: &str, longest: Duration) -> Result<Duration, String> {
    within(text, 0.0..=longest.as_secs_f64()).map(Duration::from_secs_f64)
}

/// Parses a grace of an option, such as `--grace-s 2.5`.
pub(crate) fn grace(text: &str) -> Result<Duration, String> {
    length(text, Duration::from_secs_f64(LONGEST_S))
}

/// Parses an interval of an option, such as `--every 1`.
pub(crate) fn interval(text: &str) -> Result<f64, String> {
    within(text, SHORTEST_INTERVAL_S..=LONGEST_S)
}

/// Parses by how much a clock is set, such as `--offset-s -60`.
pub(crate) fn offset(text: &str) -> Result<f64, String> {
    within(text, -LARGEST_OFFSET_S..=LARGEST_OFFSET_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grace_is_seconds_up_to_an_hour() {
        assert_eq!(grace("0"), Ok(Duration::ZERO));
        assert_eq!(grace("2.5"), Ok(Duration::from_millis(2500)));
        for refused in ["-1", "3601", "inf", "NaN", "soon", ""] {
            assert!(
                grace(refused).is_err_and(|message| message.contains("0 to 3600")),
                "{refused}"
            );
        }
    }

    #[test]
    fn an_interval_is_seconds_up_to_an_hour() {
        assert_eq!(interval("0.5"), Ok(0.5));
        for refused in ["0", "3601", "NaN", "soon"] {
            assert_eq!(
                interval(refused),
                Err("allowed: seconds from 0.01 to 3600".to_owned()),
                "{refused}"
            );
        }
    }

    #[test]
    fn an_offset_is_seconds_up_to_a_day_to_either_side() {
        assert_eq!(offset("-0.5"), Ok(-0.5));
        for refused in ["86401", "-86401", "NaN", "soon"] {
            assert_eq!(
                offset(refused),
                Err("allowed: seconds from -86400 to 86400".to_owned()),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_length_has_the_bound_that_is_given() {
        let longest = Duration::from_secs(600);
        assert_eq!(length("600", longest), Ok(longest));
        assert_eq!(length("601", longest), Err("allowed: seconds from 0 to 600".to_owned()));
    }
}
