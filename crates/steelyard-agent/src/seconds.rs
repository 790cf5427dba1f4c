//! Durations in seconds as options give them.

use std::time::Duration;

const LONGEST_S: f64 = 3600.0;

/// Parses a grace of an option, such as `--grace-s 2.5`.
pub(crate) fn grace(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| (0.0..=LONGEST_S).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("allowed: seconds from 0 to {LONGEST_S}"))
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
}
