//! `sweep`: every process of a lease, and no other.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::process::{Child, Command};

use serde_json::json;

use crate::scratch::{Scratch, agent, lines, runs, text};

const MARK: &str = "STEELYARD_LEASE";

/// Ends with the test.
struct Sleeper(Child);

impl Sleeper {
    fn new(lease: &str) -> Self {
        Self(Command::new("sleep").arg("60").env(MARK, lease).spawn().unwrap())
    }

    fn pid(&self) -> u64 {
        u64::from(self.0.id())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_lease_started_is_ended() {
    let scratch = Scratch::new();
    let lease = format!("test-{}-sweep", std::process::id());
    let sleeper = Sleeper::new(&lease);
    let other = Sleeper::new(&format!("{lease}-2"));
    let started = agent()
        .args([
            "keep",
            "start",
            "--record",
            &scratch.path("record.json"),
            "--",
            "sleep",
            "60",
        ])
        .env(MARK, &lease)
        .output()
        .unwrap();
    let record = lines(&started).remove(0);
    let kept = ["pid", "supervisor"].map(|name| record[name].as_u64().unwrap());
    // Marked itself, as a command is that comes through a node of the lease: it spares itself and those who called it.
    let sweep = |more: &[&str]| {
        let script = format!(
            "{} sweep --lease {lease} {}; exit $?",
            env!("CARGO_BIN_EXE_steelyard-agent"),
            more.join(" ")
        );
        let output = Command::new("sh")
            .args(["-c", &script])
            .env(MARK, &lease)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        lines(&output).remove(0)
    };
    let mut expected = vec![sleeper.pid(), kept[0], kept[1]];
    expected.sort_unstable();
    assert_eq!(sweep(&["--ask"]), json!({"pids": expected}));
    assert_eq!(sweep(&[]), json!({"killed": 3}));
    assert!(!runs(sleeper.pid()) && !kept.into_iter().any(runs));
    assert!(runs(other.pid()));
    assert_eq!(sweep(&[]), json!({"killed": 0}));
    assert_eq!(sweep(&["--ask"]), json!({"pids": []}));
}

#[test]
fn an_empty_id_is_refused() {
    let output = agent().args(["sweep", "--lease", ""]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("must not be empty"), "{output:?}");
}
