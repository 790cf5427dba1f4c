//! Sampler of the whole machine: cores, memory, load average, disks.

use std::collections::HashSet;
use std::path::Path;

use crate::counter::Counter;
use crate::hardware::with_hardware;
use crate::proc_file::ProcFile;
use crate::{Readings, SampleError, Sampler, parse};

/// Reads /proc/stat, /proc/meminfo, /proc/loadavg, /proc/diskstats.
#[derive(Debug)]
pub struct MachineSampler {
    stat: ProcFile,
    meminfo: ProcFile,
    loadavg: ProcFile,
    diskstats: Option<ProcFile>,
    /// Whole disks: partitions, loops, device-mapper and RAM disks would count bytes twice.
    disks: HashSet<String>,
    cpu_before: Option<parse::CpuTimes>,
    reads: Counter,
    read_bytes: Counter,
    writes: Counter,
    written_bytes: Counter,
}

impl MachineSampler {
    /// Opens the files. Errors: one of them cannot be read (/proc/diskstats may be missing).
    pub fn open() -> Result<Self, SampleError> {
        Ok(Self {
            stat: open("/proc/stat")?,
            meminfo: open("/proc/meminfo")?,
            loadavg: open("/proc/loadavg")?,
            diskstats: ProcFile::open("/proc/diskstats").ok(),
            disks: with_hardware(Path::new("/sys/block")),
            cpu_before: None,
            reads: Counter::default(),
            read_bytes: Counter::default(),
            writes: Counter::default(),
            written_bytes: Counter::default(),
        })
    }

    fn read_cpu(&mut self, into: &mut Readings) {
        let now = self.stat.read().and_then(parse::cpu_times);
        let before = std::mem::replace(&mut self.cpu_before, now);
        let (Some(now), Some(before)) = (now, before) else {
            return;
        };
        let shares = [
            ("machine_cpu_user_fraction", now.user, before.user),
            ("machine_cpu_system_fraction", now.system, before.system),
            ("machine_cpu_iowait_fraction", now.iowait, before.iowait),
            ("machine_cpu_steal_fraction", now.steal, before.steal),
            ("machine_cpu_idle_fraction", now.idle, before.idle),
        ];
        // The kernel's idle and iowait can step back by a tick; the shares are of what grew, so that they sum to 1.
        let total: u64 = shares.iter().map(|(_, now, before)| now.saturating_sub(*before)).sum();
        if total == 0 {
            return;
        }
        // A part of the system's share, so not in the sum.
        let interrupts = ("machine_cpu_interrupt_fraction", now.interrupts, before.interrupts);
        for (name, now, before) in shares.into_iter().chain([interrupts]) {
            #[allow(clippy::cast_precision_loss)] // ticks of one interval
            into.put(name, Some(now.saturating_sub(before) as f64 / total as f64));
        }
    }

    fn read_disks(&mut self, elapsed_s: f64, into: &mut Readings) {
        let Some(text) = self.diskstats.as_mut().and_then(ProcFile::read) else {
            return;
        };
        let totals = parse::disk_totals(text, |name| self.disks.contains(name));
        let rows = [
            (
                "machine_disk_read_bytes_per_s",
                &mut self.read_bytes,
                totals.map(|t| t.read_bytes),
            ),
            (
                "machine_disk_write_bytes_per_s",
                &mut self.written_bytes,
                totals.map(|t| t.written_bytes),
            ),
            (
                "machine_disk_read_operations_per_s",
                &mut self.reads,
                totals.map(|t| t.reads),
            ),
            (
                "machine_disk_write_operations_per_s",
                &mut self.writes,
                totals.map(|t| t.writes),
            ),
        ];
        for (name, counter, now) in rows {
            into.put(name, counter.rate(now, elapsed_s));
        }
    }
}

impl Sampler for MachineSampler {
    fn read(&mut self, elapsed_s: f64, into: &mut Readings) {
        self.read_cpu(into);
        #[allow(clippy::cast_precision_loss)] // bytes of memory are below 2^53
        let available = self
            .meminfo
            .read()
            .and_then(parse::memory_available)
            .map(|bytes| bytes as f64);
        into.put("machine_memory_available_bytes", available);
        into.put(
            "machine_load_average_1min",
            self.loadavg.read().and_then(parse::load_average),
        );
        self.read_disks(elapsed_s, into);
    }
}

fn open(path: &str) -> Result<ProcFile, SampleError> {
    ProcFile::open(path).map_err(|source| SampleError::Unreadable {
        path: path.into(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_cores_sum_to_one() {
        let mut sampler = MachineSampler::open().unwrap();
        let mut readings = Readings::default();
        sampler.read(0.0, &mut readings);
        assert_eq!(
            readings.get("machine_cpu_user_fraction"),
            None,
            "the first reading is the baseline"
        );
        assert!(
            readings
                .get("machine_memory_available_bytes")
                .is_some_and(|bytes| bytes > 1e6)
        );
        std::thread::sleep(std::time::Duration::from_millis(60));
        readings.clear();
        sampler.read(0.06, &mut readings);
        let names = ["user", "system", "iowait", "steal", "idle"];
        let sum: f64 = names
            .iter()
            .filter_map(|name| readings.get(&format!("machine_cpu_{name}_fraction")))
            .sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }
}
