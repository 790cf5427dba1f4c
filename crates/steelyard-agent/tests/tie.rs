//! `tie`: the end of standard input is the end of the command.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::io::Write;
use std::process::{Child, ChildStdin, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::scratch::{agent, first_line, run, runs, text, wait_for};

/// A tied shell script that has printed its process id; killed with the test if need be.
struct Tied {
    child: Child,
    stdin: Option<ChildStdin>,
    command: u64,
}

impl Tied {
    fn new(grace_s: &str, script: &str) -> Self {
        let mut child = agent()
            .args(["tie", "--grace-s", grace_s, "--", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let line = first_line(&mut child);
        Self {
            stdin: child.stdin.take(),
            command: line.trim().parse().unwrap(),
            child,
        }
    }

    /// Closes standard input and waits for the exit code.
    fn let_go(&mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Tied {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn input_output_and_exit_code_are_the_commands() {
    let mut child = agent()
        .args(["tie", "--grace-s", "30", "--", "sh", "-c", "cat; exit 3"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let content = "line\n".repeat(50_000);
    let mut stdin = child.stdin.take().unwrap();
    let input = content.clone();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(output.status.code(), Some(3), "no grace is waited for");
    assert_eq!(text(&output.stdout), content);
}

#[test]
fn a_command_that_ignores_everything_is_killed() {
    let mut tied = Tied::new("0.1", "trap '' TERM HUP; echo $$; while :; do sleep 0.05; done");
    assert!(runs(tied.command), "as long as standard input is open");
    assert_eq!(tied.let_go(), Some(128 + libc::SIGKILL));
    assert!(!runs(tied.command));
}

#[test]
fn a_command_is_asked_first() {
    let mut tied = Tied::new("0.5", "trap 'exit 9' TERM; echo $$; while :; do sleep 0.02; done");
    assert_eq!(tied.let_go(), Some(9));
}

#[test]
fn children_of_the_command_end_with_it() {
    let mut tied = Tied::new(
        "0.1",
        "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.05; done' & wait",
    );
    assert_eq!(tied.let_go(), Some(128 + libc::SIGTERM));
    wait_for("the child is killed", || !runs(tied.command));
}

#[test]
fn a_signal_to_it_ends_the_command() {
    let mut tied = Tied::new("0.1", "trap '' TERM; echo $$; while :; do sleep 0.05; done");
    let id = Pid::from_child(&tied.child);
    kill_process(id, Signal::TERM).unwrap();
    assert_eq!(tied.child.wait().unwrap().code(), Some(128 + libc::SIGKILL));
    assert!(!runs(tied.command));
}

#[test]
fn a_command_that_cannot_be_executed_is_127() {
    let output = run(&["tie", "--", "no-such-program-here"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(
        text(&output.stderr).contains("cannot execute no-such-program-here"),
        "{output:?}"
    );
}
