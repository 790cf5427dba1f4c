//! `gauge`: one line of numbers, and nothing left behind.
#![allow(clippy::unwrap_used)] // helpers of tests

use crate::scratch::{Scratch, agent};

#[test]
fn every_part_is_measured_on_request() {
    let scratch = Scratch::new();
    let out = agent()
        .args([
            "gauge",
            "--cpu-s",
            "0.02",
            "--disk-s",
            "0.01",
            "--memory-mb",
            "3",
            "--folder",
        ])
        .arg(&scratch.0)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    for name in [
        "cpus",
        "work_per_cpu_s",
        "disk_read_mb_per_s",
        "disk_write_mb_per_s",
        "disk_read_ops_per_s",
        "disk_write_ops_per_s",
    ] {
        assert!(answer[name].as_f64().unwrap() > 0.0, "{name}");
    }
    assert_eq!(answer["memory_mb"], 3);
    assert_eq!(answer["memory_ended"], "all");
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 0);
}

#[test]
fn without_a_folder_no_disk_is_measured() {
    let out = agent().args(["gauge", "--cpu-s", "0.01"]).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(answer.get("disk_read_mb_per_s").is_none());
    assert!(answer.get("memory_mb").is_none());
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let out = agent()
        .args(["gauge", "--cpu-s", "0.01", "--folder", "/none"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("cannot measure the disk of /none"));
}
