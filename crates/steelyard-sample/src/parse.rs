//! Parsers of the kernel's text files, all pure. They skip what they do not know and return None for what is not there.
//!
//! Formats: proc(5), and in the kernel's documentation `admin-guide/iostats`, `admin-guide/cgroup-v1`, `admin-guide/cgroup-v2`.

/// A sector of /proc/diskstats, whatever the disk's own sectors are.
pub const SECTOR_BYTES: u64 = 512;
/// Counters of a device up to the sectors written; newer kernels have more behind them.
const COUNTERS: usize = 7;

/// Time of all cores since boot, in clock ticks (first line of /proc/stat).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// User and nice; guests are in it.
    pub user: u64,
    /// Kernel and interrupts.
    pub system: u64,
    /// Of `system`: interrupts and soft interrupts, which belong to no process.
    pub interrupts: u64,
    /// Idle, and not waiting for a disk.
    pub idle: u64,
    /// Idle while a disk was waited for.
    pub iowait: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

impl CpuTimes {
    /// All of it, interrupts counted once.
    pub fn total(&self) -> u64 {
        self.user + self.system + self.idle + self.iowait + self.steal
    }
}

/// The times of all cores together; `None`: the text is no /proc/stat.
pub fn cpu_times(stat: &str) -> Option<CpuTimes> {
    let mut fields = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_ascii_whitespace()
        .map_while(|f| f.parse().ok());
    let [user, nice, system, idle]: [u64; 4] = [fields.next()?, fields.next()?, fields.next()?, fields.next()?];
    let mut later = || fields.next().unwrap_or(0);
    let (iowait, interrupts, soft_interrupts, steal) = (later(), later(), later(), later());
    Some(CpuTimes {
        user: user + nice,
        system: system + interrupts + soft_interrupts,
        interrupts: interrupts + soft_interrupts,
        idle,
        iowait,
        steal,
    })
}

/// The number behind `key` in `key value` lines, as in cgroups' *.stat; also `key: value kB`, where kB is not applied.
pub fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?;
        if name.strip_suffix(':').unwrap_or(name) == key {
            words.next()?.parse().ok()
        } else {
            None
        }
    })
}

/// MemAvailable of /proc/meminfo in bytes.
pub fn memory_available(meminfo: &str) -> Option<u64> {
    keyed(meminfo, "MemAvailable").map(|kib| kib * 1024)
}

/// The first number of /proc/loadavg.
pub fn load_average(loadavg: &str) -> Option<f64> {
    loadavg.split_ascii_whitespace().next()?.parse().ok()
}

/// A file that holds one number.
pub fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Process ids, as in cgroup.procs and in lists of children.
pub fn ids(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok())
}

/// Totals since boot over the disks that `counts` accepts (/proc/diskstats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskTotals {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// Totals of one block device (/sys/dev/block/MAJOR:MINOR/stat); `None`: the text is none.
pub fn device_totals(stat: &str) -> Option<DiskTotals> {
    let fields: Vec<u64> = stat
        .split_ascii_whitespace()
        .take(COUNTERS)
        .map_while(|word| word.parse().ok())
        .collect();
    of_counters(&fields)
}

/// The first counters of a device: reads, merged, sectors, ms; the same of writes.
fn of_counters(fields: &[u64]) -> Option<DiskTotals> {
    let &[reads, _, sectors_read, _, writes, _, sectors_written] = fields else {
        return None;
    };
    Some(DiskTotals {
        reads,
        read_bytes: sectors_read * SECTOR_BYTES,
        writes,
        written_bytes: sectors_written * SECTOR_BYTES,
    })
}

/// Sums over the disks whose names `counts` accepts; `None`: there is none.
pub fn disk_totals(diskstats: &str, counts: impl Fn(&str) -> bool) -> Option<DiskTotals> {
    let mut totals: Option<DiskTotals> = None;
    for line in diskstats.lines() {
        let mut words = line.split_ascii_whitespace().skip(2);
        let Some(name) = words.next() else { continue };
        if !counts(name) {
            continue;
        }
        let fields: Vec<u64> = words.take(COUNTERS).map_while(|word| word.parse().ok()).collect();
        if let Some(disk) = of_counters(&fields) {
            let sum = totals.get_or_insert_default();
            sum.reads += disk.reads;
            sum.read_bytes += disk.read_bytes;
            sum.writes += disk.writes;
            sum.written_bytes += disk.written_bytes;
        }
    }
    totals
}

/// Bytes received and transmitted since an interface came up, by interface (/proc/net/dev).
pub fn interfaces(dev: &str) -> impl Iterator<Item = (&str, u64, u64)> + '_ {
    dev.lines().filter_map(|line| {
        let (name, counters) = line.split_once(':')?;
        let mut words = counters.split_ascii_whitespace();
        let received = words.next()?.parse().ok()?;
        let transmitted = words.nth(7)?.parse().ok()?;
        Some((name.trim(), received, transmitted))
    })
}

/// Times of a process in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessTimes {
    /// User time of its own.
    pub user: u64,
    /// System time of its own.
    pub system: u64,
    /// User time of the children that it has waited for, and of those that they had.
    pub waited_user: u64,
    /// System time of the same.
    pub waited_system: u64,
}

/// The times in /proc/PID/stat; `None`: the text is none.
pub fn process_times(stat: &str) -> Option<ProcessTimes> {
    // State is field 3 of proc(5), utime 14, stime 15, cutime 16, cstime 17.
    let mut times = after_name(stat)?.skip(11).map_while(|word| word.parse().ok());
    Some(ProcessTimes {
        user: times.next()?,
        system: times.next()?,
        waited_user: times.next()?,
        waited_system: times.next()?,
    })
}

/// The parent of a process (/proc/PID/stat).
pub fn parent(stat: &str) -> Option<u32> {
    after_name(stat)?.nth(1)?.parse().ok()
}

/// The fields from the third on: the name before them may hold spaces and parentheses.
fn after_name(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat.rsplit_once(')')?.1.split_ascii_whitespace())
}

/// The id that was last given to a process or thread (/proc/loadavg); `None`: the kernel does not say.
pub fn newest_id(loadavg: &str) -> Option<u32> {
    loadavg
        .split_ascii_whitespace()
        .nth(4)?
        .parse()
        .ok()
        .filter(|id| *id > 0)
}

/// Resident pages of a process, and those of them that are anonymous (/proc/PID/statm).
pub fn process_pages(statm: &str) -> Option<(u64, u64)> {
    let mut words = statm.split_ascii_whitespace().skip(1);
    let resident: u64 = words.next()?.parse().ok()?;
    let shared: u64 = words.next()?.parse().ok()?;
    Some((resident, resident.saturating_sub(shared)))
}

/// What a process read and wrote since it began (/proc/PID/io).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessIo {
    /// Read-like and write-like system calls, on files, pipes and sockets alike.
    pub read_calls: u64,
    /// See `read_calls`.
    pub write_calls: u64,
    /// Fetched from storage.
    pub read_bytes: u64,
    /// Caused to be sent to storage, counted when the page becomes dirty.
    pub written_bytes: u64,
}

/// The counters of a process; `None`: the text is no /proc/PID/io.
pub fn process_io(io: &str) -> Option<ProcessIo> {
    Some(ProcessIo {
        read_calls: keyed(io, "syscr")?,
        write_calls: keyed(io, "syscw")?,
        read_bytes: keyed(io, "read_bytes")?,
        written_bytes: keyed(io, "write_bytes")?,
    })
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
