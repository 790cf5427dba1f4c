//! `clock`, and the offset that tests of wrong clocks give a node.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value as Json;

use crate::scratch::{agent, lines, text};

const OFFSET: &str = "STEELYARD_CLOCK_OFFSET_S";
const SLACK_S: f64 = 2.0;

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

#[test]
fn each_line_is_answered_at_once() {
    let mut child = agent()
        .arg("clock")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut questions = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut former_s = now_s();
    for _ in 0..3 {
        questions.write_all(b"\n").unwrap();
        let answer: Json = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        let t_s = answer["t_s"].as_f64().unwrap();
        // The clock has more digits than a double.
        assert!(t_s >= former_s - 1e-6 && t_s <= now_s() + 1e-6, "{former_s} {t_s}");
        former_s = t_s;
    }
    drop(questions);
    assert!(child.wait().unwrap().success());
    assert!(answers.next().is_none());
}

#[test]
fn an_offset_moves_clock_probe_and_load() {
    for (arguments, input) in [
        (vec!["clock"], "\n"),
        (vec!["probe", "--interval-s", "0.05", "--lines", "1"], ""),
        (vec!["load", "--order", "-"], "no order"),
    ] {
        let mut child = agent()
            .args(&arguments)
            .env(OFFSET, "-3600")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let times: Vec<f64> = lines(&output).iter().filter_map(|line| line["t_s"].as_f64()).collect();
        assert!(!times.is_empty(), "{arguments:?}: {output:?}");
        for t_s in times {
            assert!((t_s + 3600.0 - now_s()).abs() < SLACK_S, "{arguments:?}: {t_s}");
        }
    }
}

#[test]
fn an_offset_that_is_no_number_is_refused() {
    let output = agent()
        .arg("clock")
        .env(OFFSET, "soon")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("STEELYARD_CLOCK_OFFSET_S: read \"soon\"; allowed: seconds"),
        "{output:?}"
    );
}
