//! `keep` as the conductor uses it: by commands that share nothing but the record.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};

use crate::scratch::{Scratch, agent, assert_unprivileged, lines, run, runs, stat, text, wait_for};

/// Records and outputs of one test; whatever it starts ends with it.
struct Keeper(Scratch);

impl Keeper {
    fn new() -> Self {
        Self(Scratch::new())
    }

    fn record(&self) -> String {
        self.0.path("state/server.json")
    }

    /// What a command's outputs are appended to: `out` and `err`.
    fn start(&self, argv: &[&str]) -> Output {
        agent()
            .args(["keep", "start", "--record", &self.record()])
            .args([
                "--stdout",
                &self.0.path("logs/out"),
                "--stderr",
                &self.0.path("logs/err"),
            ])
            .arg("--")
            .args(argv)
            .env("SCRATCH", &self.0.0)
            .output()
            .unwrap()
    }

    /// The record of a command that was started.
    fn started(&self, argv: &[&str]) -> Json {
        let output = self.start(argv);
        assert!(output.status.success(), "{output:?}");
        lines(&output).remove(0)
    }

    fn ask(&self) -> Json {
        let output = run(&["keep", "ask", "--record", &self.record()]);
        assert!(output.status.success(), "{output:?}");
        lines(&output).remove(0)
    }

    fn ended(&self) -> Json {
        wait_for("the end is written", || !self.ask()["ended"].is_null());
        self.ask()
    }

    fn stop(&self, grace_s: &str) -> Output {
        run(&["keep", "stop", "--record", &self.record(), "--grace-s", grace_s])
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop("0");
    }
}

fn pid(record: &Json, name: &str) -> u64 {
    record[name].as_u64().unwrap()
}

fn kill(pid: u64) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    wait_for("a killed process is gone", || !runs(pid));
}

const SESSION: usize = 3;

#[test]
fn a_command_outlives_whoever_started_it() {
    let keeper = Keeper::new();
    // That `output` returns shows that nobody holds the outputs of `keep start`.
    let record = keeper.started(&["sh", "-c", "echo to-out; echo to-err >&2; exec sleep 60"]);
    let (command, supervisor) = (pid(&record, "pid"), pid(&record, "supervisor"));
    wait_for("the command is sleep", || {
        keeper.ask()["argv"] == json!(["sleep", "60"])
    });
    let on_disk: Json = serde_json::from_str(&keeper.0.read("state/server.json")).unwrap();
    assert_eq!(on_disk, record);
    assert_eq!(record["argv"][0], "sh", "as it was asked for");
    assert_eq!(record["started_ticks"].to_string(), stat(command).unwrap()[19]);
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(record["boot_id"], boot_id.trim());
    assert_eq!(
        (keeper.0.read("logs/out"), keeper.0.read("logs/err")),
        ("to-out\n".into(), "to-err\n".into())
    );
    assert_eq!(stat(command).unwrap()[SESSION], command.to_string());
    assert_eq!(stat(supervisor).unwrap()[SESSION], supervisor.to_string());
    let link = |pid: u64, name: &str| fs::read_link(format!("/proc/{pid}/{name}")).unwrap();
    assert_eq!(link(supervisor, "cwd"), Path::new("/"));
    assert_eq!(link(command, "cwd"), std::env::current_dir().unwrap(), "the caller's");
    for file in ["fd/0", "fd/1", "fd/2"] {
        assert_eq!(link(supervisor, file), Path::new("/dev/null"), "{file}");
    }
    let asked = keeper.ask();
    assert_eq!((&asked["alive"], &asked["ended"]), (&json!(true), &Json::Null));
    assert_eq!(
        (&asked["pid"], &asked["started_ticks"]),
        (&record["pid"], &record["started_ticks"])
    );

    assert!(keeper.stop("10").status.success());
    assert!(!runs(command) && !runs(supervisor));
    assert_eq!(
        keeper.ask(),
        json!({"record": keeper.record(), "alive": false, "missing": true})
    );
    assert!(!keeper.0.has("state/server.json"));
    assert!(keeper.stop("10").status.success(), "again");
}

#[test]
fn a_kept_command_has_no_capabilities_and_gains_none() {
    let keeper = Keeper::new();
    keeper.started(&["grep", "-E", "Cap|NoNewPrivs", "/proc/self/status"]);
    keeper.ended();
    assert_unprivileged(&keeper.0.read("logs/out"));
}

#[test]
fn only_its_owner_reads_a_command_line_and_what_it_prints() {
    let keeper = Keeper::new();
    let mode = |name: &str| fs::metadata(keeper.0.path(name)).unwrap().permissions().mode() & 0o777;
    keeper.started(&["sh", "-c", "stat -c %a $SCRATCH/state/server.json; exit 7"]);
    keeper.ended();
    assert_eq!(keeper.0.read("logs/out"), "600\n", "while it runs");
    for name in ["state/server.json", "logs/out", "logs/err"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
}

#[test]
fn how_a_command_ended_is_in_its_record() {
    let keeper = Keeper::new();
    let record = keeper.started(&["sh", "-c", "exit 7"]);
    let asked = keeper.ended();
    assert_eq!((&asked["alive"], &asked["ended"]), (&json!(false), &json!({"code": 7})));
    assert_eq!(asked["argv"], json!(["sh", "-c", "exit 7"]));
    assert_eq!(asked["pid"], record["pid"]);
    let written: Json = serde_json::from_str(&keeper.0.read("state/server.json")).unwrap();
    assert!(written["ended_s"].as_f64().unwrap() > 1.7e9, "{written}");
    wait_for("the supervisor ends", || !runs(pid(&record, "supervisor")));
    // The record of what has ended may be replaced.
    keeper.started(&["sh", "-c", "echo more; kill -KILL $$"]);
    assert_eq!(keeper.ended()["ended"], json!({"signal": 9}));
    keeper.started(&["sh", "-c", "echo and more"]);
    assert_eq!(keeper.ended()["ended"], json!({"code": 0}));
    assert_eq!(keeper.0.read("logs/out"), "more\nand more\n", "outputs are appended to");
}

#[test]
fn the_record_is_there_before_the_command_is_executed() {
    let keeper = Keeper::new();
    keeper.started(&["sh", "-c", "cat $SCRATCH/state/server.json; echo $$"]);
    keeper.ended();
    let out = keeper.0.read("logs/out");
    let (record, own) = out.split_once('\n').unwrap();
    let record: Json = serde_json::from_str(record).unwrap();
    assert_eq!(record["pid"].to_string(), own.trim());
}

#[test]
fn a_command_that_cannot_be_executed_leaves_no_record() {
    let keeper = Keeper::new();
    for (argv, message) in [
        ("no-such-program-here", "program no-such-program-here not found in PATH"),
        ("/etc/passwd", "cannot execute /etc/passwd: Permission denied"),
    ] {
        let output = keeper.start(&[argv]);
        assert_eq!(output.status.code(), Some(127));
        assert!(text(&output.stderr).contains(message), "{output:?}");
        assert!(output.stdout.is_empty());
        assert!(!keeper.0.has("state/server.json"));
    }
}

#[test]
fn without_its_record_a_command_is_never_executed() {
    let keeper = Keeper::new();
    let blocker = keeper.0.file("state", "a file where a folder should be");
    let output = keeper.start(&["sh", "-c", "touch $SCRATCH/executed"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot write the record"), "{output:?}");
    assert!(!keeper.0.has("executed"));
    fs::remove_file(blocker).unwrap();
    // A file that is no record is not replaced: somebody else's, perhaps.
    keeper.0.file("state/server.json", "no record");
    for output in [keeper.start(&["true"]), keeper.stop("0")] {
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("cannot read the record"), "{output:?}");
    }
    assert_eq!(keeper.0.read("state/server.json"), "no record");
}

#[test]
fn a_command_that_runs_is_not_forgotten() {
    let keeper = Keeper::new();
    let record = keeper.started(&["sleep", "60"]);
    let output = keeper.start(&["sleep", "61"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("still runs"), "{output:?}");
    assert_eq!(keeper.ask()["pid"], record["pid"]);
}

#[test]
fn a_command_lives_on_without_its_supervisor() {
    let keeper = Keeper::new();
    let record = keeper.started(&["sleep", "60"]);
    kill(pid(&record, "supervisor"));
    assert_eq!(keeper.ask()["alive"], true);
    kill(pid(&record, "pid"));
    let asked = keeper.ask();
    assert_eq!((&asked["alive"], &asked["ended"]), (&json!(false), &Json::Null));

    let record = keeper.started(&["sleep", "60"]);
    kill(pid(&record, "supervisor"));
    assert!(keeper.stop("10").status.success());
    assert!(!runs(pid(&record, "pid")) && !keeper.0.has("state/server.json"));
}

#[test]
fn another_process_with_its_id_is_left_alone() {
    let keeper = Keeper::new();
    let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let other_pid = u64::from(other.id());
    let ticks: u64 = stat(other_pid).unwrap()[19].parse().unwrap();
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for (ticks, boot_id) in [(ticks - 1, boot_id.trim()), (ticks, "of an earlier boot")] {
        let record = json!({
            "pid": other_pid, "started_ticks": ticks, "boot_id": boot_id, "argv": ["server"], "supervisor": 0,
        });
        keeper.0.file("state/server.json", &record.to_string());
        let asked = keeper.ask();
        assert_eq!((&asked["alive"], &asked["argv"]), (&json!(false), &json!(["server"])));
        let signalled = run(&["keep", "signal", "--record", &keeper.record(), "--number", "9"]);
        assert!(signalled.status.success() && keeper.stop("0").status.success());
        assert!(!keeper.0.has("state/server.json"));
        assert!(runs(other_pid));
    }
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn what_ignores_sigterm_is_killed_with_its_children() {
    let keeper = Keeper::new();
    let script = "trap '' TERM; sleep 60 & echo $!; echo ready; while :; do sleep 0.05; done";
    let record = keeper.started(&["sh", "-c", script]);
    wait_for("it ignores SIGTERM", || keeper.0.read("logs/out").contains("ready"));
    let child: u64 = keeper.0.read("logs/out").lines().next().unwrap().parse().unwrap();
    assert!(keeper.stop("0.1").status.success());
    assert!(!runs(pid(&record, "pid")));
    wait_for("its child is killed", || !runs(child));
}

#[test]
fn what_a_command_leaves_of_its_group_ends_with_it() {
    let keeper = Keeper::new();
    keeper.started(&["sh", "-c", "sleep 60 & echo $!; exit 3"]);
    assert_eq!(keeper.ended()["ended"], json!({"code": 3}));
    assert!(!runs(keeper.0.read("logs/out").trim().parse().unwrap()));
}

#[test]
fn a_signal_reaches_the_command() {
    let keeper = Keeper::new();
    let script = "trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.02; done";
    keeper.started(&["sh", "-c", script]);
    wait_for("it is ready", || keeper.0.read("logs/out").contains("ready"));
    let number = libc::SIGUSR1.to_string();
    for _ in 0..2 {
        let signalled = run(&["keep", "signal", "--record", &keeper.record(), "--number", &number]);
        assert!(signalled.status.success(), "also when it is gone: {signalled:?}");
        assert_eq!(keeper.ended()["ended"], json!({"code": 5}));
    }
    assert_eq!(keeper.0.read("logs/out"), "ready\ncaught\n");
}

#[test]
fn several_records_are_asked_for_at_once() {
    let keeper = Keeper::new();
    keeper.started(&["sleep", "60"]);
    let gone = keeper.0.path("gone.json");
    let output = run(&["keep", "ask", "--record", &keeper.record(), "--record", &gone]);
    let answers = lines(&output);
    assert_eq!(
        (&answers[0]["alive"], &answers[1]["missing"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(answers[1]["record"], json!(gone));
}
