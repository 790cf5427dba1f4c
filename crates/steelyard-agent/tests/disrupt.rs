//! `disrupt`: whoever is killed, nothing stays.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::scratch::{Scratch, agent, first_line, lines, run, runs, stat, text, wait_for};

/// A process to be stopped, with a child. Both end with the test.
struct Server {
    child: Child,
    lease: String,
}

impl Server {
    fn new(name: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        first_line(&mut child);
        let lease = format!("test-{}-{name}", std::process::id());
        Self { child, lease }
    }

    fn pids(&self) -> Vec<u64> {
        let own = u64::from(self.child.id());
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap();
        let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
        std::iter::once(own).chain(children).collect()
    }

    fn states(&self) -> Vec<String> {
        self.pids()
            .into_iter()
            .map(|pid| stat(pid).unwrap().remove(0))
            .collect()
    }

    fn stopped(&self) -> bool {
        self.states().iter().all(|state| state == "T")
    }

    /// Waits until it goes on.
    fn goes_on(&self) -> bool {
        wait_for("the end of the pause", || {
            self.states().iter().all(|state| state == "S")
        });
        true
    }

    fn named(&self) -> (String, String) {
        let named = lines(&run(&["disrupt", "identify", "--pid", &self.child.id().to_string()])).remove(0);
        let of = |value: &Json| value.as_str().unwrap().to_owned();
        (of(&named["processes"][0]), of(&named["boot_id"]))
    }

    fn pause(&self, for_s: &str) -> Holder {
        let (process, boot_id) = self.named();
        let words = ["pause", "--process", &process, "--boot-id", &boot_id];
        let holder = Holder::new(&self.lease, for_s, &words);
        // A process that is running stops at its next return from the kernel.
        wait_for("the pause", || self.stopped());
        holder
    }

    /// Within the time in which a watchdog looks, and without a trace.
    fn assert_healed(&self, within: Duration) {
        let begun = Instant::now();
        self.goes_on();
        assert!(begun.elapsed() < within, "{:?}", begun.elapsed());
        wait_for("the end of the record", || records(&self.lease).is_empty());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for pid in self.pids().into_iter().skip(1) {
            signal(pid, "KILL");
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running disruption, which has begun.
struct Holder {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Holder {
    fn new(lease: &str, for_s: &str, words: &[&str]) -> Self {
        let mut command = agent();
        command
            .arg("disrupt")
            .args(words)
            .args(["--for-s", for_s, "--lease", lease]);
        Self::of(command)
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut holder = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        assert_eq!(holder.line()["disruption"], json!("began"));
        holder
    }

    fn line(&mut self) -> Json {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or(Json::Null)
    }

    fn pid(&self) -> u64 {
        u64::from(self.child.id())
    }

    fn ends_by(&mut self, why: &str) {
        let line = self.line();
        assert_eq!((&line["disruption"], &line["by"]), (&json!("ended"), &json!(why)));
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(pid: u64, name: &str) {
    let _ = Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .status();
}

fn records(lease: &str) -> Vec<String> {
    let user = text(&Command::new("id").arg("-u").output().unwrap().stdout)
        .trim()
        .to_owned();
    let names = fs::read_dir(format!("/dev/shm/steelyard-disruptions-{user}")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&format!("{lease}."))).collect()
}

#[test]
fn a_pause_ends_with_its_time_its_input_and_by_a_signal() {
    let server = Server::new("ends");
    let begun = Instant::now();
    server.pause("0.5").ends_by("time");
    assert!(begun.elapsed() >= Duration::from_millis(500));
    assert!(server.goes_on() && records(&server.lease).is_empty());
    let mut holder = server.pause("60");
    assert_eq!(records(&server.lease).len(), 1);
    holder.input = None;
    holder.ends_by("input");
    assert!(server.goes_on());
    let mut holder = server.pause("60");
    signal(holder.pid(), "TERM");
    holder.ends_by("signal");
    assert!(server.goes_on() && records(&server.lease).is_empty());
}

#[test]
fn a_watchdog_ends_what_a_killed_holder_leaves() {
    let server = Server::new("holder");
    let holder = server.pause("60");
    signal(holder.pid(), "KILL");
    server.assert_healed(Duration::from_secs(5));
}

#[test]
fn a_watchdog_ends_what_a_holder_does_not_let_go() {
    let server = Server::new("stuck");
    let mut holder = server.pause("1");
    signal(holder.pid(), "STOP");
    server.assert_healed(Duration::from_secs(6));
    assert!(!holder.child.wait().unwrap().success());
}

#[test]
fn nothing_stays_if_the_conductor_is_killed_alone_or_with_the_holder() {
    for both in [false, true] {
        let server = Server::new("conductor");
        let (process, boot_id) = server.named();
        // The conductor holds the other end of standard input.
        let script = format!(
            "exec 3>&1; sleep 60 | {} disrupt pause --for-s 60 --lease {} --process {process} --boot-id {boot_id} >&3 & \
             echo $! >&3; wait",
            env!("CARGO_BIN_EXE_steelyard-agent"),
            server.lease
        );
        let mut conductor = Command::new("setsid")
            .args(["sh", "-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for("the pause", || server.stopped());
        let group = conductor.id().to_string();
        let names = if both { "" } else { "sleep" };
        let victims = Command::new("pgrep").args(["-g", &group, names]).output().unwrap();
        for pid in text(&victims.stdout).split_whitespace() {
            signal(pid.parse().unwrap(), "KILL");
        }
        server.assert_healed(Duration::from_secs(5));
        let _ = conductor.kill();
        let _ = conductor.wait();
    }
}

#[test]
fn a_reused_id_is_never_signalled() {
    let server = Server::new("reused");
    let (process, boot_id) = server.named();
    let (pid, ticks) = process.split_once(':').unwrap();
    let earlier = format!("{pid}:{}", ticks.parse::<u64>().unwrap() - 1);
    for (process, boot_id) in [(earlier.as_str(), boot_id.as_str()), (process.as_str(), "another")] {
        let words = [
            "disrupt",
            "pause",
            "--for-s",
            "1",
            "--lease",
            "x",
            "--process",
            process,
            "--boot-id",
            boot_id,
        ];
        let output = run(&words);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains("named before a restart"), "{output:?}");
        assert!(server.goes_on());
    }
}

#[test]
fn a_sweep_ends_the_disruptions_of_its_lease() {
    let server = Server::new("sweep");
    let other = Server::new("sweep-2");
    let (mut holder, mut others) = (server.pause("60"), other.pause("60"));
    assert!(run(&["sweep", "--lease", &server.lease]).status.success());
    assert!(server.goes_on() && records(&server.lease).is_empty() && other.stopped());
    assert!(!holder.child.wait().unwrap().success());
    assert!(run(&["disrupt", "heal", "--lease", &other.lease]).status.success());
    assert!(other.goes_on() && !others.child.wait().unwrap().success());
}

#[test]
fn stress_uses_what_it_says_until_it_ends() {
    let lease = format!("test-{}-stress", std::process::id());
    let mut cpu = Holder::new(&lease, "60", &["stress-cpu", "--threads", "2"]);
    let ticks = |pid: u64| stat(pid).unwrap()[11].parse::<u64>().unwrap();
    wait_for("processor time", || ticks(cpu.pid()) >= 10);
    cpu.input = None;
    cpu.ends_by("input");
    let memory = Holder::new(&lease, "60", &["stress-memory", "--mb", "64"]);
    let pages = fs::read_to_string(format!("/proc/{}/statm", memory.pid())).unwrap();
    let resident: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(resident * 4096 >= 64 << 20, "{pages}");
    drop(memory);
    wait_for("the end of the record", || records(&lease).is_empty());
    let most = run(&[
        "disrupt",
        "stress-memory",
        "--for-s",
        "1",
        "--lease",
        &lease,
        "--mb",
        "1000000000",
    ]);
    assert_eq!(most.status.code(), Some(2), "{most:?}");
}

#[test]
fn a_full_disk_is_none_that_others_need_and_is_free_again() {
    let lease = format!("test-{}-disk", std::process::id());
    let full = |folder: &str| ["disk-full", "--free-mb", "3", "--folder", folder].map(str::to_owned);
    for shared in ["/", "/dev/shm"] {
        let words = full(shared);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let refused = agent()
            .arg("disrupt")
            .args(words)
            .args(["--for-s", "1", "--lease", &lease])
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    let scratch = Scratch::new();
    let folder = scratch.path("");
    // A mount that only these processes see, and that goes with them; it takes root.
    let script = format!(
        "mount -t tmpfs -o size=32m none {folder} && df -m --output=avail {folder} | tail -1 && exec {} disrupt {} \
         --for-s 60 --lease {lease}",
        env!("CARGO_BIN_EXE_steelyard-agent"),
        full(&folder).join(" ")
    );
    let mut child = Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    if line.is_empty() {
        child.wait().unwrap();
        return;
    }
    assert_eq!(line.trim(), "32");
    line.clear();
    output.read_line(&mut line).unwrap();
    assert!(line.contains("began"), "{line}");
    let free = || {
        let inside = [
            "-t",
            &child.id().to_string(),
            "-m",
            "df",
            "-m",
            "--output=avail",
            &folder,
        ]
        .map(str::to_owned);
        let seen = Command::new("nsenter").args(inside).output().unwrap();
        text(&seen.stdout).lines().last().unwrap_or_default().trim().to_owned()
    };
    assert_eq!(free(), "3");
    assert!(runs(u64::from(child.id())));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(records(&lease).is_empty());
}

#[test]
fn only_files_that_throttle_disks_are_written() {
    let lease = format!("test-{}-slow", std::process::id());
    let scratch = Scratch::new();
    let (other, max_bytes) = (scratch.path("max_bytes"), "/sys/class/bdi/none/max_bytes");
    fs::write(&other, "before").unwrap();
    for (set, back) in [(other.as_str(), max_bytes), (max_bytes, other.as_str())] {
        let words = [
            "--set", set, "1", "--back", back, "1", "--for-s", "1", "--lease", &lease,
        ];
        let refused = agent().args(["disrupt", "disk-slow"]).args(words).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(text(&refused.stderr).contains("throttles no disk"), "{refused:?}");
    }
    assert_eq!(fs::read_to_string(other).unwrap(), "before");
}

/// A network that ends with the test; None without the right to make one, or to filter packets in it.
struct Network {
    inside: Child,
}

impl Network {
    fn new() -> Option<Self> {
        let mut inside = Command::new("unshare")
            .args(["-n", "sh", "-c", "echo; exec sleep 60"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let line = first_line(&mut inside);
        let network = Self { inside };
        let filters = Command::new("nft").arg("-v").output().is_ok();
        (!line.is_empty() && filters).then_some(network)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-n", "-t", &self.inside.id().to_string(), "--", program]);
        command
    }

    fn cut(&self, lease: &str, for_s: &str) -> Holder {
        let mut command = self.command(env!("CARGO_BIN_EXE_steelyard-agent"));
        command.args(["disrupt", "partition", "--peer", "10.0.0.2", "--peer", "fd00::2"]);
        command.args(["--for-s", for_s, "--lease", lease]);
        Holder::of(command)
    }

    fn tables(&self) -> String {
        text(&self.command("nft").args(["list", "tables"]).output().unwrap().stdout).to_owned()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.inside.kill();
        let _ = self.inside.wait();
    }
}

#[test]
fn a_partition_ends_whoever_is_killed_and_from_another_network() {
    let lease = format!("test-{}-cut", std::process::id());
    let Some(network) = Network::new() else { return };
    network.cut(&lease, "0.3").ends_by("time");
    assert_eq!(network.tables(), "");
    let mut holder = network.cut(&lease, "60");
    assert!(network.tables().contains("steelyard_"), "{}", network.tables());
    holder.input = None;
    holder.ends_by("input");
    assert_eq!(network.tables(), "");
    let holder = network.cut(&lease, "60");
    signal(holder.pid(), "KILL");
    wait_for("the end of the filter", || network.tables().is_empty());
    let mut stuck = network.cut(&lease, "1");
    signal(stuck.pid(), "STOP");
    wait_for("the end of the filter", || network.tables().is_empty());
    assert!(!stuck.child.wait().unwrap().success());
    let mut healed = network.cut(&lease, "60");
    assert!(run(&["sweep", "--lease", &lease]).status.success());
    assert!(network.tables().is_empty() && records(&lease).is_empty());
    assert!(!healed.child.wait().unwrap().success());
}
