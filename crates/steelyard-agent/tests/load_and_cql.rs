//! Exit codes and lines of `load` and `cql` where there is no server, as the conductor relies on them.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use steelyard_wire::Record;

const EXAMPLE: &str = include_str!("../../../schema/order.example.json");

fn agent(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_steelyard-agent"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn records(output: &Output) -> Vec<Record> {
    let lines = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// The records are a hello and an error, which is given back.
fn refusal(output: &Output) -> String {
    match records(output).as_slice() {
        [Record::Hello(hello), Record::Error(failure)] if hello.format == steelyard_wire::FORMAT => {
            failure.message.clone()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cluster_that_is_not_there_is_exit_code_3() {
    let order = EXAMPLE
        .replace("10.113.0.1:9042", "127.0.0.1:1")
        .replace("10.113.0.2:9042", "127.0.0.1:2");
    let output = agent(&["load", "--order", "-"], &order);
    assert_eq!(output.status.code(), Some(3));
    assert!(refusal(&output).starts_with("127.0.0.1:1 refused the connection"));
    let output = agent(&["cql", "--contact", "127.0.0.1:1", "SELECT"], "");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("127.0.0.1:1 refused the connection\n"));
}

/// One refuses, one is a name that nobody has, one takes connections and says nothing.
#[test]
fn contacts_that_are_all_away_are_named_with_their_causes() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().to_string();
    let contacts = ["127.0.0.1:1", "nobody.invalid:9042", silent.as_str()];
    let mut order: serde_json::Value = serde_json::from_str(EXAMPLE).unwrap();
    order["contacts"] = contacts.into();
    order["some_contacts"] = true.into();
    let output = agent(&["load", "--order", "-"], &order.to_string());
    assert_eq!(output.status.code(), Some(3));
    let load = refusal(&output);
    let named = contacts.map(|contact| ["--contact", contact]).concat();
    let output = agent(&[&["cql", "--timeout-s", "1"], &named[..], &["SELECT"]].concat(), "");
    assert_eq!(output.status.code(), Some(3));
    for said in [load, String::from_utf8(output.stderr).unwrap()] {
        assert!(
            said.contains("no contact answers: 127.0.0.1:1 refused the connection; "),
            "{said}"
        );
        assert!(said.contains("; no address is known for nobody.invalid ("), "{said}");
        assert!(said.contains(&format!("; {silent} did not answer within ")), "{said}");
    }
}

#[test]
fn an_order_that_cannot_be_is_exit_code_1_and_says_what_is_allowed() {
    let output = agent(
        &["load", "--order", "-"],
        &EXAMPLE.replace("\"format\": 1", "\"format\": 99"),
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(refusal(&output), "format: read 99; allowed: 1");
    let output = agent(
        &["load", "--order", "-"],
        &EXAMPLE.replace("\"threads\": 1", "\"threads\": 0"),
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(refusal(&output).contains("schedule.threads: read 0"));
}

#[test]
fn an_order_with_words_must_be_in_a_file() {
    let order = EXAMPLE.replace("\"format\": 1", "\"format\": 1, \"words\": true");
    let output = agent(&["load", "--order", "-"], &order);
    assert_eq!(output.status.code(), Some(1));
    assert!(refusal(&output).contains("standard input has the order"));
}
