//! The example of a program from end to end: against a simulated node that remembers rows it is filled, loaded, and every
//! answer that is compared holds what was written.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::{Value as Json, json};
use steelyard_wire::{Done, Record};

use crate::scratch::first_line;

const EXAMPLE: &str = include_str!("../../../schema/program-order.example.json");
const TABLE: &str = "CREATE TABLE sensors.readings (sensor int, at timestamp, note text, \
     labels map<text, frozen<list<int>>>, samples list<double>, PRIMARY KEY (sensor, at))";

fn agent() -> Command {
    Command::new(env!("CARGO_BIN_EXE_steelyard-agent"))
}

/// A process of `sim`, and its address. Ends with the test.
pub struct Node(Child, pub String);

impl Node {
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = agent()
            .args(["sim", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let line = first_line(&mut child);
        let address = line.trim().strip_prefix("listening ").unwrap().to_owned();
        Self(child, address)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lines of a command that is given an order.
pub fn lines(arguments: &[&str], order: &Json) -> Vec<String> {
    let mut child = agent()
        .args(arguments)
        .args(["--order", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = order.to_string();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

pub fn load(order: &Json) -> Done {
    let lines = lines(&["load", "--workers", "2"], order);
    match serde_json::from_str(lines.last().unwrap()).unwrap() {
        Record::Done(done) => done,
        other => panic!("{other:?}"),
    }
}

fn order(address: &str) -> Json {
    let mut order: Json = serde_json::from_str(EXAMPLE).unwrap();
    order["contacts"] = json!([address]);
    order["schedule"] = json!({"kind": "closed", "threads": 8});
    order["warm_up_s"] = json!(0.0);
    order["work"]["validate_fraction"] = json!(1.0);
    order
}

#[test]
fn the_example_is_filled_loaded_and_valid() {
    let node = Node::start(&["--service-us", "20", "--remember"]);
    let keyspace = "CREATE KEYSPACE sensors WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    let output = agent()
        .args(["cql", "--contact", &node.1, keyspace, TABLE])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut order = order(&node.1);
    order["action"] = json!("populate");
    order["stop"] = json!({"operations": null, "duration_s": null});
    let filled = load(&order);
    assert_eq!((filled.operations, filled.errors), (1000, 0));
    order["action"] = json!("load");
    // Another seed than the fill's: what is stored does not depend on it.
    order["seed"] = json!(99);
    order["stop"]["operations"] = json!(3000);
    let done = load(&order);
    assert_eq!((done.operations, done.errors, done.not_found), (3000, 0, 0), "{done:?}");
    assert!(done.rows > 2000, "{}", done.rows);
}

#[test]
fn operations_are_printed_with_readable_values() {
    let printed = lines(&["ops", "--count", "200", "--values"], &order("127.0.0.1:1"));
    let operations: Vec<Json> = printed.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(operations.len(), 200);
    let of = |kind: &str| operations.iter().find(|operation| operation["kind"] == kind).unwrap();
    let read = &of("read")["steps"][0]["statements"][0];
    let key = of("read")["key_number"].as_u64().unwrap();
    assert_eq!(read["name"], "read");
    assert_eq!(read["values"][0], key / 10);
    assert!(read["values"][1].as_str().unwrap().starts_with("2023-11-14T22:13:2"));
    let correct = &of("correct")["steps"];
    assert_eq!(
        (&correct[0]["batch"], &correct[1]["batch"]),
        (&Json::Null, &json!("logged"))
    );
    let inserts = correct[1]["statements"].as_array().unwrap();
    assert_eq!(inserts.len(), 2);
    for insert in inserts {
        let values = insert["values"].as_array().unwrap();
        assert!((20..=100).contains(&values[2].as_str().unwrap().len()), "{insert}");
        let labels = values[3].as_object().unwrap();
        assert!(labels.len() == 3 && labels.values().all(|list| !list.as_array().unwrap().is_empty()));
        assert!(
            values[4]
                .as_array()
                .unwrap()
                .iter()
                .all(|sample| (0.0..=100.0).contains(&sample.as_f64().unwrap()))
        );
    }
    assert_ne!(inserts[0]["values"][2], inserts[1]["values"][2]);
}
