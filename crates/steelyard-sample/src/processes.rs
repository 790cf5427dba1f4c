//! Processes of a node, each with counters of its own, so that the end of one does not disturb the others' rates.
//!
//! The kernel adds what a process used to its parent's counters when the parent waits for it (cutime and cstime in
//! /proc/PID/stat; /proc/PID/io has no counters apart). So a child that was never seen counts as its parent's growth.
//! Of one that was seen, what was counted while it lived is owed by its parent, and taken off the parent's growth as
//! soon as the kernel has added it. Parents are read before their children (ids grow), so that no reading holds both
//! a child and what its parent got of it, and growth is computed once all are read. A parent that ignores the end of its
//! children gets nothing added: then its processor time is right all the same, and of its bytes and calls too few are
//! counted, never too many.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::counter::Inherited;
use crate::parse;
use crate::proc_file::ProcFile;

const USER: usize = 0;
const SYSTEM: usize = 1;
const READ_BYTES: usize = 2;
const WRITTEN_BYTES: usize = 3;
const READ_CALLS: usize = 4;
const WRITE_CALLS: usize = 5;
const COUNTERS: usize = 6;

/// A process and its kept-open files.
#[derive(Debug)]
struct Process {
    stat: ProcFile,
    statm: ProcFile,
    /// Unreadable for processes of other users, unless we are root.
    io: Option<ProcFile>,
    parent: u32,
    /// Pages as last read: resident, and anonymous ones of them.
    pages: (u64, u64),
    /// What the counters read: of the process itself, and what the kernel added of its children.
    now: [Option<(u64, u64)>; COUNTERS],
    counters: [Inherited; COUNTERS],
}

/// Sums over the processes that live: growth since the reading before, and amounts now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Growth {
    pub alive: u32,
    pub user_ticks: Option<f64>,
    pub system_ticks: Option<f64>,
    pub resident_pages: u64,
    pub anonymous_pages: u64,
    pub read_bytes: Option<f64>,
    pub written_bytes: Option<f64>,
    pub read_calls: Option<f64>,
    pub write_calls: Option<f64>,
}

/// What is read for cgroups is not read again here.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub times: bool,
    pub memory: bool,
    /// Also of the children of the given processes, and of theirs.
    pub descendants: bool,
}

#[derive(Debug)]
pub struct Processes {
    known: BTreeMap<u32, Process>,
    wanted: Wanted,
    /// Its last word is the id that was given last, to a process or thread.
    loadavg: Option<ProcFile>,
    /// That id when descendants were looked for; `None`: they must be.
    newest: Option<u32>,
    /// Whether the kernel lists the children of each thread.
    lists: bool,
    /// Whether there was a reading: a descendant that is found later was born since.
    begun: bool,
}

impl Processes {
    pub fn new(wanted: Wanted) -> Self {
        Self {
            known: BTreeMap::new(),
            wanted,
            loadavg: ProcFile::open("/proc/loadavg").ok(),
            newest: None,
            lists: Path::new("/proc/thread-self/children").exists(),
            begun: false,
        }
    }

    /// Read the processes of `ids`. One that is new has no growth yet; one that has ended is forgotten.
    pub fn read(&mut self, ids: &[u32]) -> Growth {
        for id in ids {
            if !self.known.contains_key(id) {
                let Some(process) = Process::open(*id) else { continue };
                self.known.insert(*id, process);
            }
        }
        if self.wanted.descendants {
            self.find_descendants();
        }
        self.begun = true;
        let mut gone = Vec::new();
        for (id, process) in &mut self.known {
            let ours = self.wanted.descendants || ids.contains(id);
            if !(ours && process.read(self.wanted)) {
                gone.push(*id);
            }
        }
        // Children first: what is owed for them is then part of what is owed for their parent.
        for id in gone.iter().rev() {
            self.forget(*id);
        }
        let mut growth = Growth::default();
        for process in self.known.values_mut() {
            process.grow(self.wanted, &mut growth);
        }
        // Where all have ended and only were not waited for yet, nothing is said.
        if growth.alive == 0 { Growth::default() } else { growth }
    }

    /// Adds children of known processes, and theirs. Nothing is looked for if no process or thread was made since.
    fn find_descendants(&mut self) {
        let text = self.loadavg.as_mut().and_then(ProcFile::read);
        let newest = text.and_then(parse::newest_id);
        if newest.is_some() && newest == self.newest {
            return;
        }
        self.newest = newest;
        let everyone = (!self.lists).then(everyone);
        let mut parents: Vec<u32> = self.known.keys().copied().collect();
        while let Some(parent) = parents.pop() {
            let children = match &everyone {
                Some(all) => all.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id).collect(),
                None => children(parent),
            };
            for id in children {
                if self.known.contains_key(&id) {
                    continue;
                }
                // One that has ended meanwhile is in its parent's counters.
                let Some(mut process) = Process::open(id) else { continue };
                if self.begun {
                    process.counters = [Inherited::from_zero(); COUNTERS];
                }
                self.known.insert(id, process);
                parents.push(id);
            }
        }
    }

    fn forget(&mut self, id: u32) {
        let Some(process) = self.known.remove(&id) else { return };
        if let Some(parent) = self.known.get_mut(&process.parent) {
            for (counter, of_child) in parent.counters.iter_mut().zip(&process.counters) {
                counter.owe(of_child);
            }
        }
        // A list that is read while one of its processes ends may lack another.
        self.newest = None;
    }
}

impl Process {
    fn open(id: u32) -> Option<Self> {
        let mut stat = ProcFile::open(format!("/proc/{id}/stat")).ok()?;
        Some(Self {
            parent: stat.read().and_then(parse::parent)?,
            stat,
            statm: ProcFile::open(format!("/proc/{id}/statm")).ok()?,
            io: ProcFile::open(format!("/proc/{id}/io")).ok(),
            pages: (0, 0),
            now: [None; COUNTERS],
            counters: <[Inherited; COUNTERS]>::default(),
        })
    }

    /// False if the process has ended and was waited for. One that was not waited for keeps its files and its times,
    /// with nothing resident.
    fn read(&mut self, wanted: Wanted) -> bool {
        let Some(pages) = self.statm.read().and_then(parse::process_pages) else {
            return false;
        };
        self.pages = pages;
        if wanted.times {
            let times = self.stat.read().and_then(parse::process_times);
            self.now[USER] = times.map(|times| (times.user, times.waited_user));
            self.now[SYSTEM] = times.map(|times| (times.system, times.waited_system));
        }
        let io = self.io.as_mut().and_then(ProcFile::read).and_then(parse::process_io);
        self.now[READ_BYTES] = io.map(|io| (0, io.read_bytes));
        self.now[WRITTEN_BYTES] = io.map(|io| (0, io.written_bytes));
        self.now[READ_CALLS] = io.map(|io| (0, io.read_calls));
        self.now[WRITE_CALLS] = io.map(|io| (0, io.write_calls));
        true
    }

    /// Adds what was read to the sums.
    fn grow(&mut self, wanted: Wanted, sums: &mut Growth) {
        let (resident, anonymous) = self.pages;
        sums.alive += u32::from(resident > 0);
        if wanted.memory {
            sums.resident_pages += resident;
            sums.anonymous_pages += anonymous;
        }
        let mut growth = [None; COUNTERS];
        for (growth, (counter, now)) in growth.iter_mut().zip(self.counters.iter_mut().zip(self.now)) {
            *growth = counter.growth(now);
        }
        add(&mut sums.user_ticks, growth[USER]);
        add(&mut sums.system_ticks, growth[SYSTEM]);
        add(&mut sums.read_bytes, growth[READ_BYTES]);
        add(&mut sums.written_bytes, growth[WRITTEN_BYTES]);
        add(&mut sums.read_calls, growth[READ_CALLS]);
        add(&mut sums.write_calls, growth[WRITE_CALLS]);
    }
}

fn add(sum: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value);
    }
}

/// Children of a process, by the lists of its threads; none if it has ended.
fn children(id: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| parse::ids(&list).collect::<Vec<_>>()).collect()
}

/// Every process and its parent, for kernels without these lists.
fn everyone() -> Vec<(u32, u32)> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        Some((id, parse::parent(&stat)?))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const ALL: Wanted = Wanted {
        times: true,
        memory: true,
        descendants: true,
    };

    const ALONE: Wanted = Wanted {
        descendants: false,
        ..ALL
    };

    #[test]
    fn a_process_that_ends_leaves_the_others() {
        let mut processes = Processes::new(ALONE);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let ids = [std::process::id(), child.id(), u32::MAX];
        let first = processes.read(&ids);
        assert_eq!(first.alive, 2);
        assert_eq!(first.user_ticks, None, "no growth at first sight");
        assert_eq!(processes.read(&ids).alive, 2);
        child.kill().unwrap();
        child.wait().unwrap();
        let last = processes.read(&ids);
        assert_eq!(last.alive, 1);
        assert!(last.user_ticks.is_some_and(|ticks| ticks >= 0.0));
        assert!(
            last.read_calls.is_some_and(|calls| calls > 0.0),
            "reading /proc is a call"
        );
        assert!(last.resident_pages >= last.anonymous_pages && last.anonymous_pages > 0);
    }

    /// A shell that runs another one, which computes, at the first line of its input, and ends at the second.
    const PARENT: &str = "read a; sh -c 'i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; :'; read b";

    fn used_ticks(id: u32) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        let times = parse::process_times(&stat).unwrap();
        times.user + times.system + times.waited_user + times.waited_system
    }

    fn starts_a_child(mut processes: Processes) {
        let mut parent = std::process::Command::new("sh")
            .args(["-c", PARENT])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let id = parent.id();
        assert_eq!(processes.read(&[id]).alive, 1);
        let before = used_ticks(id);
        let mut input = parent.stdin.take().unwrap();
        input.write_all(b"\n").unwrap();
        let mut ticks = 0.0;
        let mut most = 0;
        // Until the child was waited for: then its time is in its parent's.
        while used_ticks(id) < before + 5 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let growth = processes.read(&[id]);
            ticks += growth.user_ticks.unwrap() + growth.system_ticks.unwrap();
            most = most.max(growth.alive);
        }
        let growth = processes.read(&[id]);
        ticks += growth.user_ticks.unwrap() + growth.system_ticks.unwrap();
        assert_eq!((most, growth.alive), (2, 1));
        #[allow(clippy::cast_precision_loss)] // ticks of a second
        let used = (used_ticks(id) - before) as f64;
        assert!((ticks - used).abs() < 0.5, "{ticks} counted, {used} used");
        input.write_all(b"\n").unwrap();
        parent.wait().unwrap();
        assert_eq!(processes.read(&[id]), Growth::default());
    }

    #[test]
    fn a_child_that_comes_and_goes_is_counted_once() {
        starts_a_child(Processes::new(ALL));
    }

    #[test]
    fn children_are_found_without_lists_of_them() {
        let mut processes = Processes::new(ALL);
        processes.lists = false;
        starts_a_child(processes);
    }

    #[test]
    fn other_processes_have_no_children_where_only_they_are_wanted() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut processes = Processes::new(ALONE);
        assert_eq!(processes.read(&[std::process::id()]).alive, 1);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
