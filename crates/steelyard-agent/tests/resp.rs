//! An order over RESP from end to end, as the conductor gives it: against the null server, and refused.
#![allow(clippy::unwrap_used)]

use serde_json::{Value as Json, json};

use crate::program::{Node, lines, load};

const EXAMPLE: &str = include_str!("../../../schema/resp-order.example.json");

#[test]
fn the_example_is_driven_against_the_null_server() {
    let node = Node::start(&["--null", "--protocol", "resp"]);
    let mut order: Json = serde_json::from_str(EXAMPLE).unwrap();
    order["contacts"] = json!([node.1]);
    order["schedule"]["threads"] = json!(8);
    let done = load(&order);
    assert_eq!(
        (done.operations, done.errors, done.not_found),
        (10_000, 0, 0),
        "{done:?}"
    );
}

/// Same seed, same keys, same bytes.
#[test]
fn operations_are_those_that_cql_would_send() {
    let over_resp: Json = serde_json::from_str(EXAMPLE).unwrap();
    let mut over_cql = over_resp.clone();
    over_cql["target"] =
        serde_json::from_str::<Json>(include_str!("../../../schema/order.example.json")).unwrap()["target"].clone();
    let operations = |order: &Json| lines(&["ops", "--count", "100", "--values"], order);
    assert_eq!(operations(&over_resp), operations(&over_cql));
}

#[test]
fn what_resp_cannot_do_is_refused_in_words() {
    let mut order: Json = serde_json::from_str(EXAMPLE).unwrap();
    order["work"] =
        serde_json::from_str::<Json>(include_str!("../../../schema/program-order.example.json")).unwrap()["work"]
            .clone();
    let refused = lines(&["load"], &order);
    assert!(
        refused.last().unwrap().contains("a program has CQL statements"),
        "{refused:?}"
    );
}

#[test]
fn a_server_that_takes_its_time_serves_one_after_the_other() {
    let node = Node::start(&["--protocol", "resp", "--service-us", "2000"]);
    let mut order: Json = serde_json::from_str(EXAMPLE).unwrap();
    order["contacts"] = json!([node.1]);
    (order["schedule"]["threads"], order["stop"]["operations"]) = (json!(8), json!(200));
    let done = load(&order);
    assert_eq!((done.operations, done.errors), (200, 0));
    assert!(done.execution_ns >= 400_000_000, "{done:?}");
}
