//! What a disk gives to one process that waits for each request: sequential bytes, and operations of 4 KiB at random places.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};

const CHUNK_BYTES: usize = 512 << 10;
const BLOCK_BYTES: usize = 4096;
const MOST_CHUNKS: u64 = 128;
/// A throttle lets requests of its first slice (100 ms) through at once: nothing is counted before that is over.
const LEAD: Duration = Duration::from_millis(120);
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
    let mut store = vec![0xa5_u8; CHUNK_BYTES + BLOCK_BYTES];
    let from = store.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES);
    let chunk = &mut store[from..from + CHUNK_BYTES];
    let mut written = 0_u64;
    let write_per_s = rate(window, |index| {
        write(&file, direct, chunk, index % MOST_CHUNKS * CHUNK_BYTES as u64)?;
        written = written.max(index % MOST_CHUNKS + 1);
        Ok(())
    })?;
    let read_per_s = rate(window, |index| {
        read(&file, direct, chunk, index % written * CHUNK_BYTES as u64)
    })?;
    let blocks = written * CHUNK_BYTES as u64 / BLOCK_BYTES as u64;
    let block = &mut chunk[..BLOCK_BYTES];
    let place = |index: u64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % blocks * BLOCK_BYTES as u64;
    let read_ops_per_s = rate(window, |index| read(&file, direct, block, place(index)))?;
    let write_ops_per_s = rate(window, |index| write(&file, direct, block, place(index)))?;
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

/// Requests per second: counted from the end of one to the end of another, the first after LEAD.
fn rate(window: Duration, mut request: impl FnMut(u64) -> io::Result<()>) -> io::Result<f64> {
    let begun = Instant::now();
    let mut index = 0;
    while index == 0 || begun.elapsed() < LEAD {
        request(index)?;
        index += 1;
    }
    let (from, first) = (Instant::now(), index);
    loop {
        request(index)?;
        index += 1;
        let lasted = from.elapsed();
        if lasted >= window {
            return Ok((index - first) as f64 / lasted.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_after_the_lead() {
        let mut indices = Vec::new();
        let per_s = rate(Duration::from_millis(20), |index| {
            indices.push(index);
            std::thread::sleep(Duration::from_millis(5));
            Ok(())
        })
        .unwrap_or(0.0);
        assert!(per_s > 0.0 && per_s <= 200.0);
        assert!(indices.iter().copied().eq(0..indices.len() as u64));
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
