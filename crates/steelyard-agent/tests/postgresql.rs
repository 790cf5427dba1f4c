//! An order over PostgreSQL's protocol from end to end, as the conductor gives it: against the null server.
#![allow(clippy::unwrap_used)]

use serde_json::{Value as Json, json};

use crate::program::{Node, load};

#[test]
fn an_order_is_driven_against_the_null_server() {
    let node = Node::start(&["--null", "--protocol", "postgresql"]);
    let mut order: Json = serde_json::from_str(include_str!("../../../schema/resp-order.example.json")).unwrap();
    order["contacts"] = json!([node.1]);
    order["target"] = json!({"protocol": "postgresql", "table": "usertable", "key": "ycsb_key", "read_from": "any"});
    order["schedule"]["threads"] = json!(8);
    let done = load(&order);
    assert_eq!(
        (done.operations, done.errors, done.not_found),
        (10_000, 0, 0),
        "{done:?}"
    );
}
