//! The examples in `schema/`, which Python's tests read too: nothing is lost or changed by reading and writing them.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use steelyard_wire::{FORMAT, Order, Record, Word};

fn example(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../schema/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn orders_come_back_whole() {
    for name in [
        "order.example.json",
        "program-order.example.json",
        "phased-order.example.json",
        "resp-order.example.json",
        "http-order.example.json",
        "etcd-order.example.json",
        "postgresql-order.example.json",
    ] {
        let text = example(name);
        let order: Order = serde_json::from_str(&text).unwrap();
        assert_eq!(order.format, FORMAT);
        assert_eq!(
            serde_json::to_value(&order).unwrap(),
            serde_json::from_str::<Value>(&text).unwrap()
        );
        let again: Order = serde_json::from_str(&serde_json::to_string(&order).unwrap()).unwrap();
        assert_eq!(again, order);
    }
}

#[test]
fn an_unknown_key_is_refused() {
    let mut order: Value = serde_json::from_str(&example("order.example.json")).unwrap();
    order["work"]["recrods"] = 1.into();
    let error = serde_json::from_value::<Order>(order).unwrap_err().to_string();
    assert!(error.contains("recrods"), "{error}");
    for place in [
        "/work",
        "/work/statements/0",
        "/work/statements/0/values/0/make",
        "/work/operations/0/keys",
        "/work/operations/0/steps/0",
        "/work/clustering",
    ] {
        let mut order: Value = serde_json::from_str(&example("program-order.example.json")).unwrap();
        order.pointer_mut(place).unwrap()["recrods"] = 1.into();
        let error = serde_json::from_value::<Order>(order).unwrap_err().to_string();
        assert!(error.contains("recrods"), "{place}: {error}");
    }
}

#[test]
fn words_come_back_byte_for_byte() {
    for line in example("words.example.jsonl").lines() {
        let word: Word = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&word).unwrap(), line);
    }
}

#[test]
fn records_come_back_byte_for_byte() {
    let text = example("records.example.jsonl");
    let mut kinds = Vec::new();
    for line in text.lines() {
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
        kinds.push(
            serde_json::from_str::<Value>(line).unwrap()["record"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    assert_eq!(
        kinds,
        [
            "hello",
            "connected",
            "interval",
            "done",
            "routed",
            "doing",
            "sample",
            "error"
        ]
    );
}
