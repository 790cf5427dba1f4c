//! Processes of a node, each with counters of its own, so that the end of one does not disturb the others' rates.

use std::collections::BTreeMap;

use crate::counter::Counter;
use crate::parse;
use crate::proc_file::ProcFile;

/// A process and its kept-open files.
#[derive(Debug)]
struct Process {
    stat: ProcFile,
    statm: ProcFile,
    /// Unreadable for processes of other users, unless we are root.
    io: Option<ProcFile>,
    user: Counter,
    system: Counter,
    read_bytes: Counter,
    written_bytes: Counter,
    read_calls: Counter,
    write_calls: Counter,
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
}

#[derive(Debug)]
pub struct Processes {
    known: BTreeMap<u32, Process>,
    wanted: Wanted,
}

impl Processes {
    pub fn new(wanted: Wanted) -> Self {
        Self {
            known: BTreeMap::new(),
            wanted,
        }
    }

    /// Read the processes of `ids`. One that is new has no growth yet; one that has ended is forgotten.
    pub fn read(&mut self, ids: &[u32]) -> Growth {
        self.known.retain(|id, _| ids.contains(id));
        let mut growth = Growth::default();
        for id in ids {
            if !self.known.contains_key(id) {
                let Some(process) = Process::open(*id) else { continue };
                self.known.insert(*id, process);
            }
            let alive = self
                .known
                .get_mut(id)
                .is_some_and(|process| process.read(self.wanted, &mut growth));
            if !alive {
                self.known.remove(id);
            }
        }
        growth
    }
}

impl Process {
    fn open(id: u32) -> Option<Self> {
        Some(Self {
            stat: ProcFile::open(format!("/proc/{id}/stat")).ok()?,
            statm: ProcFile::open(format!("/proc/{id}/statm")).ok()?,
            io: ProcFile::open(format!("/proc/{id}/io")).ok(),
            user: Counter::default(),
            system: Counter::default(),
            read_bytes: Counter::default(),
            written_bytes: Counter::default(),
            read_calls: Counter::default(),
            write_calls: Counter::default(),
        })
    }

    /// Adds to the sums; false if the process has ended.
    fn read(&mut self, wanted: Wanted, sums: &mut Growth) -> bool {
        let pages = self.statm.read().and_then(parse::process_pages);
        // A process that has ended but was not waited for keeps its files, with nothing resident.
        let Some((resident, anonymous)) = pages.filter(|(resident, _)| *resident > 0) else {
            return false;
        };
        sums.alive += 1;
        if wanted.memory {
            sums.resident_pages += resident;
            sums.anonymous_pages += anonymous;
        }
        if wanted.times {
            let times = self.stat.read().and_then(parse::process_times);
            add(&mut sums.user_ticks, self.user.growth(times.map(|(user, _)| user)));
            add(
                &mut sums.system_ticks,
                self.system.growth(times.map(|(_, system)| system)),
            );
        }
        let io = self.io.as_mut().and_then(ProcFile::read).and_then(parse::process_io);
        add(&mut sums.read_bytes, self.read_bytes.growth(io.map(|io| io.read_bytes)));
        add(
            &mut sums.written_bytes,
            self.written_bytes.growth(io.map(|io| io.written_bytes)),
        );
        add(&mut sums.read_calls, self.read_calls.growth(io.map(|io| io.read_calls)));
        add(
            &mut sums.write_calls,
            self.write_calls.growth(io.map(|io| io.write_calls)),
        );
        true
    }
}

fn add(sum: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Wanted = Wanted {
        times: true,
        memory: true,
    };

    #[test]
    fn a_process_that_ends_leaves_the_others() {
        let mut processes = Processes::new(ALL);
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
}
