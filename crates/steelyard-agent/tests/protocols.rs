//! Orders over protocols other than CQL from end to end, as the conductor gives them: against the null server, and refused.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use serde_json::{Value as Json, json};

use crate::program::{Node, lines, load};

fn example(name: &str) -> Json {
    let path = format!("{}/../../schema/{name}-order.example.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_examples_are_driven_against_the_null_server() {
    for protocol in ["http", "etcd", "resp", "postgresql"] {
        let node = Node::start(&["--null", "--protocol", protocol]);
        let mut order = example(protocol);
        order["contacts"] = json!([node.1]);
        order["schedule"]["threads"] = json!(8);
        order["stop"]["operations"] = json!(2_000);
        let done = load(&order);
        assert_eq!(
            (done.operations, done.errors, done.not_found),
            (2_000, 0, 0),
            "{done:?}"
        );
    }
}

/// Same seed, same keys, same bytes.
#[test]
fn operations_are_those_that_cql_would_send() {
    let over_resp = example("resp");
    let mut over_cql = over_resp.clone();
    let cql: Json = serde_json::from_str(include_str!("../../../schema/order.example.json")).unwrap();
    over_cql["target"] = cql["target"].clone();
    let operations = |order: &Json| lines(&["ops", "--count", "100", "--values"], order);
    assert_eq!(operations(&over_resp), operations(&over_cql));
}

#[test]
fn requests_are_printed_with_their_documents() {
    let printed = lines(&["ops", "--count", "50"], &example("http"));
    let paths: Vec<String> = printed
        .iter()
        .map(|line| {
            serde_json::from_str::<Json>(line).unwrap()["path"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(paths.len(), 50);
    let small = paths.iter().filter(|path| *path == "/1000.bin").count();
    assert!((28..47).contains(&small), "{small}");
}

#[test]
fn what_no_protocol_can_do_is_refused_in_words() {
    for (work, target, why) in [
        ("resp", "http", "over http only requests for documents are possible"),
        ("http", "resp", "requests for documents are not possible over resp"),
        ("http", "etcd", "requests for documents are not possible over etcd"),
        (
            "program",
            "etcd",
            "a program has CQL statements, so it is not possible over etcd",
        ),
        ("program", "resp", "a program has CQL statements"),
    ] {
        let mut order = example(work);
        order["target"] = example(target)["target"].clone();
        let refused = lines(&["load"], &order);
        assert!(refused.last().unwrap().contains(why), "{refused:?}");
    }
}

/// The limits of this machine are no answers of a server: the load ends, and says which.
#[test]
fn a_process_without_files_left_ends_the_load() {
    let node = Node::start(&["--null", "--protocol", "http"]);
    let mut order = example("http");
    order["contacts"] = json!([node.1]);
    order["schedule"]["threads"] = json!(64);
    let path = std::env::temp_dir().join(format!("steelyard-http-{}", std::process::id()));
    std::fs::write(&path, order.to_string()).unwrap();
    let output = Command::new("prlimit")
        .args(["--nofile=32", env!("CARGO_BIN_EXE_steelyard-agent"), "load", "--order"])
        .arg(&path)
        .output()
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("as many files are open as this process may have (ulimit -n)"),
        "{said}"
    );
}

#[test]
fn requests_are_not_possible_over_cql() {
    let mut order = example("http");
    order["target"] = example("program")["target"].clone();
    let node = Node::start(&["--null"]);
    order["contacts"] = json!([node.1]);
    let refused = lines(&["load"], &order);
    assert!(refused.last().unwrap().contains("not possible over cql"), "{refused:?}");
}

#[test]
fn a_server_that_takes_its_time_serves_one_after_the_other() {
    let node = Node::start(&["--protocol", "resp", "--service-us", "2000"]);
    let mut order = example("resp");
    order["contacts"] = json!([node.1]);
    (order["schedule"]["threads"], order["stop"]["operations"]) = (json!(8), json!(200));
    let done = load(&order);
    assert_eq!((done.operations, done.errors), (200, 0));
    assert!(done.execution_ns >= 400_000_000, "{done:?}");
}
