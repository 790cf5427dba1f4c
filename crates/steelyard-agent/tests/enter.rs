//! `enter` as a node's prefix uses it.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::path::Path;
use std::process::{Command, Output};

use crate::scratch::assert_unprivileged;

const AGENT: &str = env!("CARGO_BIN_EXE_steelyard-agent");

fn enter(arguments: &[&str]) -> Output {
    Command::new(AGENT).arg("enter").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap().trim_end()
}

fn is_root() -> bool {
    text(&Command::new("id").arg("-u").output().unwrap().stdout) == "0"
}

#[test]
fn becomes_the_command_in_the_folder() {
    let done = enter(&[
        "--cwd",
        "/",
        "--",
        "sh",
        "-c",
        "pwd; echo \"$@\"; exit 7",
        "sh",
        "a b",
        "--netns",
    ]);
    assert_eq!(text(&done.stdout), "/\na b --netns");
    assert_eq!(done.status.code(), Some(7), "the command's own code");
}

#[test]
fn keeps_its_process_id() {
    let mut child = Command::new(AGENT)
        .args(["enter", "--", "sleep", "60"])
        .spawn()
        .unwrap();
    let name = || std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap_or_default();
    let became = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        name() == "sleep\n"
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(became);
}

#[test]
fn failures_say_which_step_and_path() {
    for (arguments, code, part) in [
        (
            vec!["--", "no-such-program-here"],
            127,
            "program no-such-program-here not found",
        ),
        (vec!["--", "/etc/passwd"], 1, "cannot execute /etc/passwd"),
        (
            vec!["--netns", "/nowhere/net", "--", "true"],
            1,
            "network namespace /nowhere/net",
        ),
        (
            vec!["--cgroup", "/nowhere/group", "--", "true"],
            1,
            "cgroup /nowhere/group",
        ),
        (
            vec!["--cwd", "/nowhere/folder", "--", "true"],
            1,
            "folder /nowhere/folder",
        ),
        (
            vec!["--drop-capability", "nonsense", "--", "true"],
            2,
            "unknown capability",
        ),
        (vec!["true"], 2, "Usage"),
    ] {
        let done = enter(&arguments);
        assert_eq!(done.status.code(), Some(code), "{arguments:?}");
        assert!(
            text(&done.stderr).contains(part),
            "{arguments:?}: {}",
            text(&done.stderr)
        );
    }
}

#[test]
fn a_dropped_capability_stays_away() {
    let done = enter(&[
        "--drop-capability",
        "ipc_lock",
        "--",
        "grep",
        "Cap",
        "/proc/self/status",
    ]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    const IPC_LOCK: u64 = 1 << 14;
    for line in text(&done.stdout).lines() {
        let (name, bits) = line.split_once(":\t").unwrap();
        if name == "CapBnd" && !is_root() {
            // Without privileges the bounding set cannot be changed, and need not be: there is nothing to gain it by.
            continue;
        }
        assert_eq!(u64::from_str_radix(bits, 16).unwrap() & IPC_LOCK, 0, "{line}");
    }
}

#[test]
fn an_unprivileged_command_has_no_capabilities_and_gains_none() {
    let done = enter(&[
        "--unprivileged",
        "--",
        "grep",
        "-E",
        "Cap|NoNewPrivs",
        "/proc/self/status",
    ]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_unprivileged(text(&done.stdout));
}

#[test]
fn joins_a_network_namespace() {
    let own = Path::new("/proc/self/ns/net");
    if !is_root() {
        // Joining takes CAP_SYS_ADMIN; that the refusal names the step is all there is to see.
        let done = enter(&["--netns", "/proc/self/ns/net", "--", "true"]);
        assert!(text(&done.stderr).contains("cannot join the network namespace"));
        return;
    }
    // A namespace that lives as long as the process that holds it.
    let mut holder = Command::new("unshare").args(["--net", "sleep", "60"]).spawn().unwrap();
    let its = format!("/proc/{}/ns/net", holder.id());
    let parted = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        std::fs::read_link(&its).is_ok_and(|link| link != std::fs::read_link(own).unwrap())
    });
    let expected = std::fs::read_link(&its);
    let done = enter(&["--netns", &its, "--", "readlink", "/proc/self/ns/net"]);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(parted);
    assert_eq!(Path::new(text(&done.stdout)), expected.unwrap());
}
