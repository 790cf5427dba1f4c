//! Processes of this machine as /proc describes them: by id and start time, so that a reused id is never taken for one.

use std::fmt;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

/// The variable that every process of a lease inherits.
pub(crate) const MARK: &str = "STEELYARD_LEASE";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const POLL: Duration = Duration::from_millis(10);

/// A process that no other one can be taken for, as long as this machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Process {
    pub pid: u32,
    /// Clock ticks from boot to its start.
    pub started_ticks: u64,
}

/// What /proc/PID/stat says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// Nothing of it runs any more. A killed process whose first thread is a zombie still has its ports until its
    /// other threads have ended.
    pub zombie: bool,
    /// 0 if the parent is in another process-id namespace.
    pub parent: u32,
    pub started_ticks: u64,
}

impl Status {
    /// None if there is no such process.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name may hold anything, so fields are counted from its closing parenthesis; see proc_pid_stat(5).
    fn parse(stat: &[u8]) -> Option<Self> {
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        let text = std::str::from_utf8(&stat[end + 1..]).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let threads: u64 = fields.nth(15)?.parse().ok()?;
        let started_ticks = fields.nth(1)?.parse().ok()?;
        Some(Self {
            zombie: matches!(state, "Z" | "X" | "x") && threads <= 1,
            parent,
            started_ticks,
        })
    }
}

impl fmt::Display for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.pid, self.started_ticks)
    }
}

impl Process {
    /// The process that has this id now.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Status::of(pid).map(|status| Self {
            pid,
            started_ticks: status.started_ticks,
        })
    }

    /// Whether exactly this process exists and is no zombie.
    pub(crate) fn alive(self) -> bool {
        Status::of(self.pid).is_some_and(|status| status.started_ticks == self.started_ticks && !status.zombie)
    }

    /// Sends a signal, if this process is still alive.
    pub(crate) fn signal(self, signal: Signal) -> io::Result<()> {
        match self.raw_id() {
            Some(id) if self.alive() => gone_is_fine(kill_process(id, signal)),
            _ => Ok(()),
        }
    }

    /// Kills the process, and with it its process group if it leads one.
    pub(crate) fn kill_with_group(self) -> io::Result<()> {
        match self.raw_id() {
            Some(id) if self.alive() => match kill_process_group(id, Signal::KILL) {
                // No group has its id: it leads none.
                Err(rustix::io::Errno::SRCH) => gone_is_fine(kill_process(id, Signal::KILL)),
                outcome => Ok(outcome?),
            },
            _ => Ok(()),
        }
    }

    /// None for what is no process of ours: as a group, 1 would mean every process.
    fn raw_id(self) -> Option<Pid> {
        let id = i32::try_from(self.pid).ok().filter(|id| *id > 1)?;
        Pid::from_raw(id)
    }
}

fn gone_is_fine(outcome: rustix::io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        other => Ok(other?),
    }
}

/// Waits until a condition holds; false if it does not within the limit.
pub(crate) fn within(limit: Duration, condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

/// Identifies the time since this machine was booted; empty if the kernel does not say.
pub(crate) fn boot_id() -> String {
    fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned()
}

/// Ids of all processes, as /proc lists them.
pub(crate) fn ids() -> io::Result<Vec<u32>> {
    let mut ids: Vec<u32> = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

/// A process and those that it descends from.
pub(crate) fn with_ancestors(pid: u32) -> Vec<u32> {
    let mut line = vec![pid];
    let mut next = Status::of(pid).map(|status| status.parent);
    while let Some(parent) = next.filter(|parent| *parent != 0 && !line.contains(parent)) {
        line.push(parent);
        next = Status::of(parent).map(|status| status.parent);
    }
    line
}

/// The command line in force; None if the process is gone, or has none, as in the moment in which it is executed.
pub(crate) fn command_line(pid: u32) -> Option<Vec<String>> {
    let words = words_of(pid, "cmdline")?;
    (!words.is_empty()).then(|| {
        words
            .iter()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    })
}

/// Whether a process was started with a variable of this value; false if its environment cannot be read.
pub(crate) fn has_variable(pid: u32, name: &str, value: &str) -> bool {
    let wanted = format!("{name}={value}").into_bytes();
    words_of(pid, "environ").is_some_and(|variables| variables.contains(&wanted))
}

/// A file of /proc/PID whose words end with a zero byte each.
fn words_of(pid: u32, file: &str) -> Option<Vec<Vec<u8>>> {
    let content = fs::read(format!("/proc/{pid}/{file}")).ok()?;
    let content = content.strip_suffix(b"\0").unwrap_or(&content);
    if content.is_empty() {
        return Some(Vec::new());
    }
    Some(content.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_fields() {
        for (threads, zombie) in [(1, true), (2, false)] {
            let mut stat = b"42 (a) S 9) (x) Z 7".to_vec();
            for field in 5..=24 {
                let number = if field == 20 { threads } else { field * 100 };
                stat.extend_from_slice(format!(" {number}").as_bytes());
            }
            let wanted = Status {
                zombie,
                parent: 7,
                started_ticks: 2200,
            };
            assert_eq!(Status::parse(&stat).unwrap(), wanted);
        }
        assert_eq!(Status::parse(b"42 (a) S"), None);
        assert_eq!(Status::parse(b""), None);
    }

    #[test]
    fn a_reused_id_is_another_process() {
        let own = Process::of(std::process::id()).unwrap();
        assert!(own.alive());
        let earlier = Process {
            started_ticks: own.started_ticks - 1,
            ..own
        };
        assert!(!earlier.alive());
        // Not this process, so nothing is sent.
        earlier.signal(Signal::KILL).unwrap();
        earlier.kill_with_group().unwrap();
        assert_eq!(Process::of(u32::MAX), None);
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        assert!(process.alive());
        process.signal(Signal::KILL).unwrap();
        assert!(within(Duration::from_secs(5), || !process.alive()));
        assert!(Status::of(child.id()).unwrap().zombie, "nobody has waited for it");
        child.wait().unwrap();
        assert_eq!(Status::of(child.id()), None);
    }

    #[test]
    fn command_line_environment_and_ancestors() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env("STEELYARD_TEST_MARK", "x=1")
            .spawn()
            .unwrap();
        // For a moment after it is executed, a program has neither.
        let executed = within(Duration::from_secs(5), || command_line(child.id()).is_some());
        let argv = command_line(child.id());
        let marked = has_variable(child.id(), "STEELYARD_TEST_MARK", "x=1");
        let other = has_variable(child.id(), "STEELYARD_TEST_MARK", "x");
        let line = with_ancestors(child.id());
        let listed = ids().unwrap().contains(&child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(argv.unwrap(), ["sleep", "60"]);
        assert!(executed && marked && !other && listed);
        assert_eq!(line[..2], [child.id(), std::process::id()]);
        assert_eq!(command_line(child.id()), None);
        assert!(boot_id().len() > 30);
    }
}
