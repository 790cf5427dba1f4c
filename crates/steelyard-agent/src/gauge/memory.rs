//! How much memory a node may touch: a child process touches more and more until the kernel kills it.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use steelyard_sample::parse::keyed;

const PAGE_BYTES: usize = 4096;
const MEBIBYTE: usize = 1 << 20;
/// Memory that the machine keeps whatever was asked for: without a limit, others would be killed.
const MACHINE_KEEPS_MB: u64 = 512;

pub struct Memory {
    pub touched_mb: u64,
    /// `killed`: at the limit; `all`: as much was asked for; `machine`: the machine has no more to spare.
    pub ended: &'static str,
    /// Swap of the machine, without which no node swaps.
    pub machine_swap_mb: u64,
}

/// Touches up to `most_mb`. Errors: no child can be started.
pub fn measure(most_mb: u64) -> io::Result<Memory> {
    let machine_swap_mb = machine_mb("SwapTotal").unwrap_or(0);
    let most = most_mb.min(spare_mb());
    let mut child = Command::new(std::env::current_exe()?)
        .args(["gauge", "--touch-mb", &most.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut touched = Vec::new();
    if let Some(mut out) = child.stdout.take() {
        out.read_to_end(&mut touched)?;
    }
    let ended = match child.wait()?.signal() {
        Some(_) => "killed",
        None if most < most_mb => "machine",
        None => "all",
    };
    Ok(Memory {
        touched_mb: touched.len() as u64,
        ended,
        machine_swap_mb,
    })
}

/// Touches memory and prints a byte for each MiB; the kernel should kill this process before any other.
pub fn touch(most_mb: u64) {
    // Without the right to do so, the largest process is killed, which is this one too.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    let mut held: Vec<Vec<u8>> = Vec::new();
    let mut out = io::stdout().lock();
    for number in 0..most_mb {
        let mut block = vec![0_u8; MEBIBYTE];
        for place in (0..MEBIBYTE).step_by(PAGE_BYTES) {
            block[place] = (number % 255 + 1) as u8;
        }
        held.push(block);
        if out.write_all(b".").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
    std::hint::black_box(&held);
}

/// Memory that may be touched without any limit.
pub(crate) fn spare_mb() -> u64 {
    machine_mb("MemAvailable").unwrap_or(0).saturating_sub(MACHINE_KEEPS_MB)
}

/// A line of /proc/meminfo in MiB.
fn machine_mb(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    keyed(&text, name).map(|kib| kib >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_it_has() {
        assert!(machine_mb("MemAvailable").is_some_and(|mb| mb > 0));
    }
}
