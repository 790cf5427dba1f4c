//! Log lines of a node whose membership changes, in the form of Cassandra's logs here, so that one reader serves both.

use std::io::Write;
use std::panic::Location;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY_S: u64 = 86_400;

/// Writes lines to standard output.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    /// Added to the wall clock, for tests of wrong clocks.
    pub clock_offset_s: f64,
}

impl Log {
    #[track_caller]
    pub fn info(self, message: &str) {
        self.line("INFO ", message);
    }

    #[track_caller]
    pub fn error(self, message: &str) {
        self.line("ERROR", message);
    }

    #[track_caller]
    fn line(self, level: &str, message: &str) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_s = (since.as_secs_f64() + self.clock_offset_s).max(0.0);
        let (date, place) = (date(Duration::from_secs_f64(now_s)), Location::caller());
        let file = Path::new(place.file()).file_name().unwrap_or_default();
        let (file, line) = (file.to_string_lossy(), place.line());
        let mut out = std::io::stdout().lock();
        // The line may go unread.
        let _ = writeln!(out, "{level} [main] {date} {file}:{line} - {message}").and_then(|()| out.flush());
    }
}

/// `2026-11-27 13:49:26,123`, UTC: logback's `ISO8601`.
fn date(since_epoch: Duration) -> String {
    let (days, second) = (since_epoch.as_secs() / DAY_S, since_epoch.as_secs() % DAY_S);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let milliseconds = since_epoch.subsec_millis();
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02},{milliseconds:03}")
}

/// Year, month and day of a day since 1970-01-01: H. Hinnant, *chrono-compatible low-level date algorithms*.
fn civil(days: u64) -> (u64, u64, u64) {
    // Days since 0000-03-01: years begin in March, so that the leap day is the last.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_based = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_based + 2) / 5 + 1;
    let month = if march_based < 10 {
        march_based + 3
    } else {
        march_based - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // `date -u -d @...` says so.
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_868_799, "2000-02-29 23:59:59"),
            (951_868_800, "2000-03-01 00:00:00"),
            (1_790_000_000, "2026-09-21 14:13:20"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(date(Duration::from_millis(seconds * 1000 + 7)), format!("{text},007"));
        }
    }
}
