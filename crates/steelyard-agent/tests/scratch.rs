//! What tests of several subcommands need: a folder that goes with its test, and the agent as a command.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

const LIMIT: Duration = Duration::from_secs(20);

pub fn agent() -> Command {
    Command::new(env!("CARGO_BIN_EXE_steelyard-agent"))
}

/// Runs the agent to its end.
pub fn run(arguments: &[&str]) -> Output {
    agent().args(arguments).output().unwrap()
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The lines of an output as JSON.
pub fn lines(output: &Output) -> Vec<Json> {
    text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Waits until a condition holds.
pub fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The first line that a child prints, whose output was piped; what follows is lost.
pub fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    line
}

/// State and fields of /proc/PID/stat from the state on; None if there is no such process, or only a zombie.
pub fn stat(pid: u64) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<String> = stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect();
    (fields[0] != "Z").then_some(fields)
}

pub fn runs(pid: u64) -> bool {
    stat(pid).is_some()
}

/// A folder that is removed at the end of its test.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    pub fn below(folder: &Path) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("steelyard-agent-test-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(fs::canonicalize(path).unwrap())
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file, with its folders.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        self.path(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.join(name).symlink_metadata().is_ok()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// That a process has no capabilities and gains none; `status` are the lines of /proc/PID/status on them.
pub fn assert_unprivileged(status: &str) {
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    let setpcap = fs::read_to_string("/proc/self/status").unwrap().lines().any(|line| {
        let effective = line
            .strip_prefix("CapEff:\t")
            .and_then(|bits| u64::from_str_radix(bits, 16).ok());
        effective.is_some_and(|bits| bits & (1 << 8) != 0)
    });
    let sets: Vec<&str> = status.lines().filter(|line| line.starts_with("Cap")).collect();
    assert!(sets.len() >= 4, "{status}");
    for line in sets {
        // Without CAP_SETPCAP nobody changes the bounding set.
        assert!(
            line.ends_with("\t0000000000000000") || (line.starts_with("CapBnd") && !setpcap),
            "{line}"
        );
    }
}
