//! Whole intervals of the clock, on which readings are taken for as long as somebody reads standard output.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits `wait_s` seconds; false as soon as standard output has no reader.
pub(crate) fn listened_to(wait_s: f64) -> bool {
    let output = io::stdout();
    let due = Instant::now() + Duration::from_secs_f64(wait_s);
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        let Ok(limit) = Timespec::try_from(left) else {
            return false;
        };
        // No event is asked for: only the end of the reader, which is always reported, ends the wait early.
        let mut watched = [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::empty())];
        match poll(&mut watched, Some(&limit)) {
            Ok(0) => return true,
            Ok(_) => return false,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Seconds from `now_s` to the next whole multiple of `interval_s`.
pub(crate) fn until_next(now_s: f64, interval_s: f64) -> f64 {
    let wait_s = interval_s - now_s.rem_euclid(interval_s);
    // A wake-up a hair too early must not give a second reading at once.
    if wait_s < 0.01 * interval_s {
        wait_s + interval_s
    } else {
        wait_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_whole_intervals() {
        for (now_s, interval_s, wait_s) in [
            (100.25, 1.0, 0.75),
            (100.0, 1.0, 1.0),
            (100.995, 1.0, 1.005),
            (7.0, 5.0, 3.0),
            (0.3, 0.5, 0.2),
        ] {
            let got = until_next(now_s, interval_s);
            assert!((got - wait_s).abs() < 1e-9, "{now_s} {interval_s}: {got}");
        }
    }
}
