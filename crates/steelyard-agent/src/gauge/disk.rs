//! What a disk gives to a few threads, each of which waits for its requests: sequential bytes, and operations of 4 KiB at random
//! places. Several, so that a limit is met although a single request waits for a processor.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};

const CHUNK_BYTES: usize = 512 << 10;
const BLOCK_BYTES: usize = 4096;
const MOST_CHUNKS: u64 = 128;
/// A throttle lets requests of its first slice (100 ms) through at once: nothing is counted before that is over.
const LEAD: Duration = Duration::from_millis(120);
/// How long after the window a throttle's next slice is waited for.
const LOOK: Duration = Duration::from_millis(150);
/// A pause between two requests that ends where a slice of a throttle begins.
const PAUSE: Duration = Duration::from_millis(8);
/// Requests in flight.
const SEQUENTIAL: usize = 2;
const RANDOM: usize = 8;
const BYTES_PER_MB: f64 = 1e6;

pub struct Disk {
    pub read_mb_per_s: f64,
    pub write_mb_per_s: f64,
    pub read_ops_per_s: f64,
    pub write_ops_per_s: f64,
    /// Whether the page cache was passed by; if not, writes were synced, and reads told to forget what is cached.
    pub direct: bool,
}

/// Measures each of the four for `window`, in a file of 64 MiB at most that has no name.
pub fn measure(folder: &Path, window: Duration) -> io::Result<Disk> {
    let (file, direct) = scratch(folder)?;
    let written = AtomicU64::new(0);
    let write_per_s = rate(window, SEQUENTIAL, CHUNK_BYTES, |index, chunk| {
        write(&file, direct, chunk, index % MOST_CHUNKS * CHUNK_BYTES as u64)?;
        written.fetch_max(index % MOST_CHUNKS + 1, Ordering::Relaxed);
        Ok(())
    })?;
    let chunks = written.into_inner();
    let read_per_s = rate(window, SEQUENTIAL, CHUNK_BYTES, |index, chunk| {
        read(&file, direct, chunk, index % chunks * CHUNK_BYTES as u64)
    })?;
    let blocks = chunks * (CHUNK_BYTES / BLOCK_BYTES) as u64;
    let place = |index: u64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % blocks * BLOCK_BYTES as u64;
    let read_ops_per_s = rate(window, RANDOM, BLOCK_BYTES, |index, block| {
        read(&file, direct, block, place(index))
    })?;
    let write_ops_per_s = rate(window, RANDOM, BLOCK_BYTES, |index, block| {
        write(&file, direct, block, place(index))
    })?;
    Ok(Disk {
        read_mb_per_s: read_per_s * CHUNK_BYTES as f64 / BYTES_PER_MB,
        write_mb_per_s: write_per_s * CHUNK_BYTES as f64 / BYTES_PER_MB,
        read_ops_per_s,
        write_ops_per_s,
        direct,
    })
}

/// A file that is gone with this process, and whether it is read and written directly.
fn scratch(folder: &Path) -> io::Result<(File, bool)> {
    let path = folder.join(format!(".steelyard-gauge-{}", std::process::id()));
    let open = |flags: i32| {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(flags)
            .open(&path)
    };
    let opened = match open(libc::O_DIRECT) {
        Ok(file) => Ok((file, true)),
        // File systems in memory take no direct access.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => open(0).map(|file| (file, false)),
        Err(error) => Err(error),
    };
    let removed = fs::remove_file(&path);
    let pair = opened?;
    removed?;
    Ok(pair)
}

fn write(file: &File, direct: bool, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)?;
    if direct { Ok(()) } else { file.sync_data() }
}

fn read(file: &File, direct: bool, bytes: &mut [u8], at: u64) -> io::Result<()> {
    if !direct {
        fadvise(file, at, None, Advice::DontNeed)?;
    }
    file.read_exact_at(bytes, at)
}

/// Requests per second of some threads with a buffer each. A failed request ends all of them.
fn rate(
    window: Duration,
    in_flight: usize,
    bytes: usize,
    request: impl Fn(u64, &mut [u8]) -> io::Result<()> + Sync,
) -> io::Result<f64> {
    let begun = Instant::now();
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (ends, failure) = (Mutex::new(Vec::new()), Mutex::new(None));
    thread::scope(|scope| {
        for _ in 0..in_flight {
            scope.spawn(|| {
                let mut store = vec![0xa5_u8; bytes + BLOCK_BYTES];
                let from = store.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES);
                let buffer = &mut store[from..from + bytes];
                while !stop.load(Ordering::Relaxed) {
                    if let Err(error) = request(next.fetch_add(1, Ordering::Relaxed), buffer) {
                        stop.store(true, Ordering::Relaxed);
                        if let Ok(mut failure) = failure.lock() {
                            *failure = Some(error);
                        }
                        return;
                    }
                    let Ok(mut ends) = ends.lock() else { return };
                    ends.push(Instant::now());
                    let counted = ends.iter().rev().take(2).all(|end| *end >= begun + LEAD) && ends.len() > 1;
                    if counted && begun.elapsed() >= LEAD + window + LOOK {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    if let Ok(Some(error)) = failure.into_inner() {
        return Err(error);
    }
    let mut ends = ends.into_inner().unwrap_or_default();
    ends.sort_unstable();
    Ok(per_second(&ends, begun + LEAD, window))
}

/// Counts from the beginning of one slice of a throttle to that of another at least a window later, so that no slice is cut; without
/// pauses, from the first to the last.
fn per_second(ends: &[Instant], from: Instant, window: Duration) -> f64 {
    let first = ends.partition_point(|end| *end < from);
    let begins = |place: &usize| *place > 0 && ends[*place].duration_since(ends[*place - 1]) >= PAUSE;
    let begin = (first..ends.len()).find(begins).unwrap_or(first);
    let end = (begin + 1..ends.len())
        .find(|place| ends[*place].duration_since(ends[begin]) >= window && begins(place))
        .unwrap_or(ends.len().saturating_sub(1));
    if end <= begin {
        // A pause came so late that nothing follows it.
        let (Some(first_end), Some(last_end)) = (ends.get(first), ends.last()) else {
            return 0.0;
        };
        return (ends.len() - 1 - first) as f64 / last_end.duration_since(*first_end).as_secs_f64().max(1e-9);
    }
    (end - begin) as f64 / ends[end].duration_since(ends[begin]).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(begun: Instant, ms: &[u64]) -> Vec<Instant> {
        ms.iter().map(|ms| begun + Duration::from_millis(*ms)).collect()
    }

    #[test]
    fn no_slice_is_cut() {
        let begun = Instant::now();
        // Five requests at the beginning of each 100 ms: 50/s, whenever counting begins.
        let ends = at(
            begun,
            &[
                0, 1, 2, 3, 4, 100, 101, 102, 103, 104, 200, 201, 202, 203, 204, 300, 301, 302,
            ],
        );
        for from in [2, 90, 101] {
            let per_s = per_second(&ends, begun + Duration::from_millis(from), Duration::from_millis(100));
            assert!((per_s - 50.0).abs() < 0.01, "{from}: {per_s}");
        }
    }

    #[test]
    fn slow_and_steady_requests_are_counted_too() {
        let begun = Instant::now();
        let window = Duration::from_millis(250);
        assert!((per_second(&at(begun, &[0, 500, 1000, 1500]), begun, window) - 2.0).abs() < 0.01);
        let steady: Vec<u64> = (0..=400).collect();
        assert!((per_second(&at(begun, &steady), begun, window) - 1000.0).abs() < 1.0);
        assert!(per_second(&[], begun, window).abs() < f64::EPSILON);
    }

    #[test]
    fn nothing_is_left_in_the_folder() {
        let folder = std::env::temp_dir().join(format!("steelyard-gauge-test-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap_or(());
        let disk = measure(&folder, Duration::from_millis(5));
        let left = fs::read_dir(&folder).map(Iterator::count).unwrap_or(1);
        let _ = fs::remove_dir_all(&folder);
        assert_eq!(left, 0);
        assert!(disk.is_ok_and(|disk| disk.read_ops_per_s > 0.0 && disk.write_mb_per_s > 0.0));
    }
}
