//! `rtt`: round trips to a kernel that refuses, and to nobody.
#![allow(clippy::unwrap_used)] // helpers of tests

use crate::scratch::agent;

#[test]
fn a_port_without_a_listener_answers() {
    let out = agent()
        .args(["rtt", "--address", "127.0.0.1", "--count", "5"])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let times = answer["times_ms"].as_array().unwrap();
    assert_eq!(times.len(), 5);
    assert!(times.iter().all(|time| (0.0..1000.0).contains(&time.as_f64().unwrap())));
}

#[test]
fn a_name_is_no_address() {
    let out = agent().args(["rtt", "--address", "localhost"]).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
}
