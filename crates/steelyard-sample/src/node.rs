//! Sampler of one node: what its cgroups (v1 or v2), or else its processes, use.

use std::path::{Path, PathBuf};

use crate::counter::Counter;
use crate::device::Device;
use crate::proc_file::ProcFile;
use crate::processes::{Growth, Processes, Wanted};
use crate::{Readings, SampleError, Sampler, parse};

const NS_PER_S: f64 = 1e9;
const US_PER_S: f64 = 1e6;

/// What belongs to the node.
#[derive(Clone, Debug, Default)]
pub struct NodeSource {
    /// cgroup folders: one with v2, one a controller with v1.
    pub cgroups: Vec<PathBuf>,
    /// Its processes, where there are no cgroups; those that descend from them are found.
    pub process_ids: Vec<u32>,
    /// A folder on a file system of the node's own, whose block device nothing else uses; `None`: the node shares a disk.
    pub disk: Option<PathBuf>,
}

/// CPU time of the cgroup.
#[derive(Debug)]
enum Cpu {
    /// The total is exact; the split is in ticks.
    V1 {
        usage: ProcFile,
        stat: ProcFile,
        total: Counter,
        user: Counter,
        system: Counter,
        share: f64,
    },
    V2 {
        stat: ProcFile,
        user: Counter,
        system: Counter,
    },
}

/// Memory that is charged to the cgroup.
#[derive(Debug)]
struct Memory {
    current: ProcFile,
    stat: ProcFile,
    /// Key of the anonymous memory in `stat`.
    anonymous: &'static str,
    hits: ProcFile,
    /// Key of the hits; None if the file is one number.
    hits_key: Option<&'static str>,
    counter: Counter,
}

/// Reads a node's cgroups and processes.
#[derive(Debug)]
pub struct NodeSampler {
    cpu: Option<Cpu>,
    quota: Option<ProcFile>,
    periods: Counter,
    throttled: Counter,
    memory: Option<Memory>,
    members: Option<ProcFile>,
    process_ids: Vec<u32>,
    processes: Processes,
    disk: Option<Device>,
    ticks_per_s: f64,
    page_bytes: f64,
}

impl NodeSampler {
    /// Raises `NoCgroup` for a folder that is none, `Unreadable` for a disk whose device has no counters.
    pub fn open(source: &NodeSource) -> Result<Self, SampleError> {
        for folder in &source.cgroups {
            if !folder.join("cgroup.procs").exists() {
                return Err(SampleError::NoCgroup { path: folder.clone() });
            }
        }
        let folders = &source.cgroups;
        let cpu = folders.iter().find_map(|folder| Cpu::open(folder));
        let memory = folders.iter().find_map(|folder| Memory::open(folder));
        let quota = folders.iter().find_map(|folder| {
            let mut file = ProcFile::open(folder.join("cpu.stat")).ok()?;
            // A v2 group without the cpu controller has the file, but not these lines.
            parse::keyed(file.read()?, "nr_periods").map(|_| file)
        });
        let wanted = Wanted {
            times: cpu.is_none(),
            memory: memory.is_none(),
            descendants: folders.is_empty(),
        };
        #[allow(clippy::cast_precision_loss)] // 100 and 4096 or so
        Ok(Self {
            cpu,
            quota,
            periods: Counter::default(),
            throttled: Counter::default(),
            memory,
            members: folders
                .iter()
                .find_map(|folder| ProcFile::open(folder.join("cgroup.procs")).ok()),
            process_ids: source.process_ids.clone(),
            processes: Processes::new(wanted),
            disk: source.disk.as_deref().map(Device::of).transpose()?,
            ticks_per_s: rustix::param::clock_ticks_per_second() as f64,
            page_bytes: rustix::param::page_size() as f64,
        })
    }

    fn read_throttling(&mut self, into: &mut Readings) {
        let Some(quota) = &mut self.quota else { return };
        let text = quota.read();
        let periods = self
            .periods
            .growth(text.and_then(|text| parse::keyed(text, "nr_periods")));
        let throttled = self
            .throttled
            .growth(text.and_then(|text| parse::keyed(text, "nr_throttled")));
        if let (Some(periods), Some(throttled)) = (periods, throttled) {
            // A group without a quota, or at rest, has no periods: it was not throttled.
            into.put(
                "node_throttled_fraction",
                Some(if periods > 0.0 { throttled / periods } else { 0.0 }),
            );
        }
    }

    fn read_processes(&mut self, elapsed_s: f64, into: &mut Readings) {
        if let Some(members) = &mut self.members {
            self.process_ids.clear();
            if let Some(text) = members.read() {
                self.process_ids.extend(parse::ids(text));
            }
        }
        let growth = self.processes.read(&self.process_ids);
        let rate = |amount: Option<f64>| amount.filter(|_| elapsed_s > 0.0).map(|amount| amount / elapsed_s);
        if self.cpu.is_none() {
            into.put(
                "node_cpu_user_cores",
                rate(growth.user_ticks).map(|ticks| ticks / self.ticks_per_s),
            );
            into.put(
                "node_cpu_system_cores",
                rate(growth.system_ticks).map(|ticks| ticks / self.ticks_per_s),
            );
        }
        if self.memory.is_none() && growth.alive > 0 {
            self.put_resident(&growth, into);
        }
        if self.disk.is_none() {
            into.put("node_disk_read_bytes_per_s", rate(growth.read_bytes));
            into.put("node_disk_write_bytes_per_s", rate(growth.written_bytes));
        }
        into.put("node_read_calls_per_s", rate(growth.read_calls));
        into.put("node_write_calls_per_s", rate(growth.write_calls));
        into.put("node_processes", Some(f64::from(growth.alive)));
    }

    #[allow(clippy::cast_precision_loss)] // pages of memory are below 2^53
    fn put_resident(&self, growth: &Growth, into: &mut Readings) {
        into.put(
            "node_memory_bytes",
            Some(growth.resident_pages as f64 * self.page_bytes),
        );
        into.put(
            "node_memory_rss_bytes",
            Some(growth.anonymous_pages as f64 * self.page_bytes),
        );
    }
}

impl Sampler for NodeSampler {
    fn read(&mut self, elapsed_s: f64, into: &mut Readings) {
        if let Some((user, system)) = self.cpu.as_mut().and_then(|cpu| cpu.read(elapsed_s)) {
            into.put("node_cpu_user_cores", Some(user));
            into.put("node_cpu_system_cores", Some(system));
        }
        self.read_throttling(into);
        if let Some(memory) = &mut self.memory {
            memory.read(into);
        }
        self.read_processes(elapsed_s, into);
        if let Some(disk) = &mut self.disk {
            disk.read(elapsed_s, into);
        }
    }
}

impl Cpu {
    fn open(folder: &Path) -> Option<Self> {
        if let Ok(usage) = ProcFile::open(folder.join("cpuacct.usage")) {
            let stat = ProcFile::open(folder.join("cpuacct.stat")).ok()?;
            let (total, user, system) = <(Counter, Counter, Counter)>::default();
            return Some(Self::V1 {
                usage,
                stat,
                total,
                user,
                system,
                share: 1.0,
            });
        }
        let mut stat = ProcFile::open(folder.join("cpu.stat")).ok()?;
        parse::keyed(stat.read()?, "user_usec")?;
        Some(Self::V2 {
            stat,
            user: Counter::default(),
            system: Counter::default(),
        })
    }

    /// Cores in use by user code and by the kernel for it.
    fn read(&mut self, elapsed_s: f64) -> Option<(f64, f64)> {
        match self {
            Self::V1 {
                usage,
                stat,
                total,
                user,
                system,
                share,
            } => {
                let used = total.rate(usage.read().and_then(parse::number), elapsed_s);
                let text = stat.read();
                let user = user.growth(text.and_then(|text| parse::keyed(text, "user")));
                let system = system.growth(text.and_then(|text| parse::keyed(text, "system")));
                if let (Some(user), Some(system)) = (user, system) {
                    // Less than a tick says nothing about the split: keep the last.
                    if user + system > 0.0 {
                        *share = user / (user + system);
                    }
                }
                let cores = used? / NS_PER_S;
                Some((cores * *share, cores * (1.0 - *share)))
            }
            Self::V2 { stat, user, system } => {
                let text = stat.read();
                let user = user.rate(text.and_then(|text| parse::keyed(text, "user_usec")), elapsed_s);
                let system = system.rate(text.and_then(|text| parse::keyed(text, "system_usec")), elapsed_s);
                Some((user? / US_PER_S, system? / US_PER_S))
            }
        }
    }
}

impl Memory {
    fn open(folder: &Path) -> Option<Self> {
        let counter = Counter::default();
        if let Ok(current) = ProcFile::open(folder.join("memory.usage_in_bytes")) {
            let stat = ProcFile::open(folder.join("memory.stat")).ok()?;
            let hits = ProcFile::open(folder.join("memory.failcnt")).ok()?;
            return Some(Self {
                current,
                stat,
                anonymous: "total_rss",
                hits,
                hits_key: None,
                counter,
            });
        }
        let current = ProcFile::open(folder.join("memory.current")).ok()?;
        let stat = ProcFile::open(folder.join("memory.stat")).ok()?;
        let hits = ProcFile::open(folder.join("memory.events")).ok()?;
        Some(Self {
            current,
            stat,
            anonymous: "anon",
            hits,
            hits_key: Some("max"),
            counter,
        })
    }

    #[allow(clippy::cast_precision_loss)] // bytes of memory are below 2^53
    fn read(&mut self, into: &mut Readings) {
        let current = self.current.read().and_then(parse::number);
        let anonymous = self.stat.read().and_then(|text| parse::keyed(text, self.anonymous));
        let hits = self.hits.read().and_then(|text| match self.hits_key {
            Some(key) => parse::keyed(text, key),
            None => parse::number(text),
        });
        into.put("node_memory_bytes", current.map(|bytes| bytes as f64));
        into.put("node_memory_rss_bytes", anonymous.map(|bytes| bytes as f64));
        into.put("node_memory_limit_hits", self.counter.growth(hits));
    }
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
