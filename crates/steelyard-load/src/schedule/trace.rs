//! Trace replay: due times from the timestamps in a file.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use steelyard_workload::OrderError;

/// Most time stamps of a trace: they are held in memory, 8 bytes each.
pub const MAX_STAMPS: usize = 20_000_000;

/// Reads a trace: nanoseconds since its first time stamp, `speed` times as fast as it was.
///
/// A line holds one number of seconds; empty lines and lines that begin with # are passed over. Errors: a file that cannot be
/// read, a line that is no number or lies before the one above it, no or too many time stamps, a speed that is not above 0.
pub fn read(path: &Path, speed: f64) -> Result<Arc<[u64]>, OrderError> {
    let name = path.display();
    let open = |error| OrderError::new("schedule.file", format!("{name}: {error}"), "a file that can be read");
    stamps(
        BufReader::new(File::open(path).map_err(open)?),
        &name.to_string(),
        speed,
    )
}

fn stamps(lines: impl BufRead, name: &str, speed: f64) -> Result<Arc<[u64]>, OrderError> {
    if !(speed > 0.0 && speed.is_finite()) {
        return Err(OrderError::new("schedule.speed", speed, "a finite number above 0"));
    }
    let wrong = |read: String, allowed| OrderError::new("schedule.file", format!("{name}: {read}"), allowed);
    let mut stamps = Vec::new();
    let mut first_and_last = None;
    for (line, number) in lines.lines().zip(1..) {
        let line = line.map_err(|error| wrong(error.to_string(), "a text file"))?;
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let seconds: f64 = text
            .parse()
            .ok()
            .filter(|seconds: &f64| seconds.is_finite())
            .ok_or_else(|| wrong(format!("line {number}: {text:?}"), "seconds, one number per line"))?;
        let (first, last) = first_and_last.unwrap_or((seconds, seconds));
        if seconds < last {
            let read = format!("line {number}: {text} after {last}");
            return Err(wrong(read, "time stamps in ascending order"));
        }
        if stamps.len() == MAX_STAMPS {
            return Err(wrong(format!("line {number}"), "at most 20 million time stamps"));
        }
        first_and_last = Some((first, seconds));
        stamps.push(((seconds - first) / speed * 1e9).round() as u64);
    }
    if stamps.is_empty() {
        return Err(wrong("no time stamp".to_owned(), "seconds, one number per line"));
    }
    Ok(stamps.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_count_from_the_first_and_at_the_speed_asked() {
        let text = "# seconds\n1700000000.5\n1700000000.5\n\n  1700000002.0 \n";
        assert_eq!(*stamps(text.as_bytes(), "t", 1.0).unwrap(), [0, 0, 1_500_000_000]);
        assert_eq!(*stamps(text.as_bytes(), "t", 3.0).unwrap(), [0, 0, 500_000_000]);
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        for (text, said) in [
            ("1\n2\n1.5\n", "line 3: 1.5 after 2"),
            ("1\nnow\n", "line 2: \"now\""),
            ("1\nnan\n", "line 2: \"nan\""),
            ("# nothing\n", "no time stamp"),
        ] {
            let error = stamps(text.as_bytes(), "t", 1.0).unwrap_err();
            assert_eq!(error.field, "schedule.file");
            assert!(error.to_string().contains(said), "{error}");
        }
        assert_eq!(stamps("1".as_bytes(), "t", 0.0).unwrap_err().field, "schedule.speed");
        let error = read(Path::new("/nonexistent/trace"), 1.0).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/trace"), "{error}");
    }
}
