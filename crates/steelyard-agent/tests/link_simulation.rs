//! `link --simulate`: what it prints, and what it refuses.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::process::Output;

use serde_json::Value as Json;

use crate::scratch::{agent, lines, text};

fn simulate(arguments: &str) -> Output {
    let arguments = arguments.split_whitespace();
    agent().args(["link", "--simulate"]).args(arguments).output().unwrap()
}

fn line(arguments: &str) -> Json {
    let output = simulate(&format!("--json --seconds 1 {arguments}"));
    assert!(output.status.success(), "{output:?}");
    lines(&output).remove(0)
}

#[test]
fn the_line_holds_the_arguments_and_what_came_of_them() {
    let line = line("--phy 802.11n-65 --stations 3 --aggregate 8 --rts 500 --retry-limit off --seed 4");
    for (name, value) in [
        ("phy", Json::from("802.11n-65")),
        ("stations", Json::from(3)),
        ("aggregate", Json::from(8)),
        ("rts_threshold_bytes", Json::from(500)),
        ("retry_limit", Json::Null),
        ("seed", Json::from(4)),
        ("traffic", Json::from("uplink")),
        ("delay_ms", Json::Null),
    ] {
        assert_eq!(line[name], value, "{name}: {line}");
    }
    assert!(line["throughput_mbit_per_s"].as_f64().unwrap() > 40.0, "{line}");
    assert!(line["jain_index"].as_f64().unwrap() > 0.9, "{line}");
    for count in ["attempts", "collisions", "retries", "delivered"] {
        assert!(line[count].as_u64().unwrap() > 0, "{count}: {line}");
    }
}

#[test]
fn rts_without_a_number_is_for_all_frames() {
    assert_eq!(line("--rts")["rts_threshold_bytes"], Json::from(0));
    assert_eq!(line("")["rts_threshold_bytes"], Json::Null);
    assert!(line("--load 0.1")["delay_ms"]["p50"].as_f64().unwrap() < 0.3);
}

#[test]
fn people_get_words() {
    let output = simulate("--seconds 1");
    let words = text(&output.stdout);
    assert!(
        words.contains("throughput: 28.96 Mb/s of 1500-byte payloads"),
        "{words}"
    );
    assert!(words.contains("times as fast as real time"), "{words}");
}

#[test]
fn what_cannot_be_is_refused_with_what_is_allowed() {
    for (arguments, message) in [
        ("--phy 802.11ax-600", "802.11n-65"),
        ("--aggregate 4", "aggregate: 802.11g-54 cannot aggregate; 802.11n can"),
        ("--retry-limit 0", "neither off nor a number"),
        ("--stations 0", "0 is not from 1 to 500"),
    ] {
        let output = simulate(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
        assert!(text(&output.stderr).contains(message), "{arguments}: {output:?}");
    }
}
