//! Batches that draw each of their keys: over a sequence every key is taken once, whoever computes which operation.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use steelyard_client::program::{Request, Requests};
use steelyard_wire::{Order, Share};
use steelyard_workload::stream::{Stream, settle};

fn sizes() -> [Json; 5] {
    [
        json!({"name": "uniform", "min": 1.0, "max": 20.0}),
        json!({"name": "gaussian", "min": 1, "max": 20}),
        json!({"name": "exponential", "min": 1, "max": 40}),
        json!({"name": "sequence", "min": 1, "max": 7}),
        json!({"name": "fixed", "value": 7.0}),
    ]
}

fn sequence(max: u64) -> Json {
    json!({"name": "sequence", "min": 0, "max": max})
}

/// Inserts of batches, with twice as many reads where they are mixed; ended by keys.
fn order(repeat: &Json, number: &Json, keys: u64, mixed: bool) -> Order {
    let mut order: Json = serde_json::from_str(include_str!("../../../schema/program-order.example.json")).unwrap();
    let operation = |name: &str, weight: f64, step: Json| json!({"name": name, "weight": weight, "keys": {"kind": "drawn", "number": number, "each": true}, "steps": [step]});
    let batch =
        json!({"kind": "batch", "statements": ["insert"], "mode": "unlogged", "next_key": true, "repeat": repeat});
    let read = json!({"kind": "execute", "statement": "read"});
    let reads = if mixed { 2.0 } else { 0.0 };
    order["work"]["operations"] = json!([operation("insert", 1.0, batch), operation("read", reads, read)]);
    order["work"]["clustering"] = Json::Null;
    order["warm_up_s"] = 0.0.into();
    order["stop"] = json!({"keys": keys});
    let mut order = serde_json::from_value(order).unwrap();
    settle(&mut order).unwrap();
    order
}

/// The keys of each operation of a share, by index.
fn keys(order: &Order, share: Share) -> Vec<(u64, Vec<u64>)> {
    let order = Order { share, ..order.clone() };
    let requests = Requests::of(&order).unwrap();
    let mut stream = Stream::from_order(&order, 0.0, 0).unwrap();
    let mut taken = Vec::new();
    loop {
        let operation = stream.next();
        if operation.index >= order.stop.operations.unwrap() {
            return taken;
        }
        let at = requests.at(&operation);
        let keys = match requests.request(requests.request_number(&operation)) {
            Request::Batch(batch) => batch.executions(&at).iter().map(|at| at.key).collect(),
            Request::Execute { .. } => vec![operation.key],
        };
        assert_eq!(keys.len() as u64, u64::from(operation.keys));
        assert_eq!(keys[0], operation.key, "a batch goes to a replica of its first key");
        taken.push((operation.index, keys));
    }
}

#[test]
fn a_sequence_is_taken_whole_and_no_key_of_it_twice() {
    for repeat in sizes() {
        for mixed in [false, true] {
            let order = order(&repeat, &sequence(9999), 10_000, mixed);
            let whole = keys(&order, Share::default());
            let in_turn: Vec<u64> = whole.iter().flat_map(|(_, keys)| keys.clone()).collect();
            assert!(in_turn.into_iter().eq(0..10_000), "{repeat} {mixed}");
            let lengths: BTreeSet<usize> = whole.iter().map(|(_, keys)| keys.len()).collect();
            assert!(lengths.len() > 4 || repeat["name"] == "fixed", "{lengths:?}");
            for of in [2, 3, 7] {
                let mut parts: Vec<_> = (0..of).flat_map(|index| keys(&order, Share { index, of })).collect();
                parts.sort_unstable();
                assert_eq!(parts, whole, "{repeat} {mixed} {of}");
            }
        }
    }
}

#[test]
fn sizes_have_the_distribution_asked_for_and_differ_with_the_seed() {
    let mut order = order(&sizes()[0], &sequence(99_999), 100_000, false);
    let lengths = |order: &Order| -> Vec<usize> {
        let taken = keys(order, Share::default());
        taken.iter().map(|(_, keys)| keys.len()).collect()
    };
    let first = lengths(&order);
    let mean = 100_000.0 / first.len() as f64;
    // Ten standard errors of a mean of 10.5.
    assert!((mean - 10.5).abs() < 0.6, "{mean}");
    assert_eq!((first.iter().min(), first.iter().max()), (Some(&1), Some(&20)));
    order.seed += 1;
    assert_ne!(lengths(&order), first);
}

#[test]
fn a_sequence_that_ends_within_a_batch_begins_again() {
    let order = order(&sizes()[4], &sequence(9), 24, false);
    let taken: Vec<Vec<u64>> = keys(&order, Share::default()).into_iter().map(|one| one.1).collect();
    assert_eq!(taken[1], [7, 8, 9, 0, 1, 2, 3]);
    assert_eq!(taken[3], [1, 2, 3], "only what is left of 24");
}

#[test]
fn keys_of_other_distributions_are_draws_of_their_own_and_differ_within_a_batch() {
    let uniform = json!({"name": "uniform", "min": 0.0, "max": 29.0});
    let order = order(&sizes()[0], &uniform, 30_000, false);
    let taken = keys(&order, Share::default());
    let mut counts = [0.0; 30];
    for (_, keys) in &taken {
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
        keys.iter().for_each(|key| counts[*key as usize] += 1.0);
    }
    let chi_square: f64 = counts.iter().map(|count: &f64| (count - 1000.0).powi(2) / 1000.0).sum();
    // 29 degrees of freedom, p = 1e-4; draws without replacement vary less.
    assert!(chi_square < 66.0, "{chi_square}");
    let neighbours = taken
        .iter()
        .filter(|(_, keys)| keys.windows(2).all(|pair| pair[1] == pair[0] + 1) && keys.len() > 3);
    assert_eq!(neighbours.count(), 0);
}

#[test]
fn an_end_by_keys_is_refused_where_they_are_not_counted() {
    let plain = || {
        let mut order = order(&sizes()[0], &sequence(9), 10, false);
        order.stop.operations = None;
        order
    };
    let refused = |order: &mut Order| settle(order).unwrap_err().field.into_owned();
    let mut warm = plain();
    warm.warm_up_s = 1.0;
    assert_eq!(refused(&mut warm), "stop.keys");
    let text = serde_json::to_string(&plain())
        .unwrap()
        .replace("\"each\":true", "\"each\":false");
    assert_eq!(refused(&mut serde_json::from_str(&text).unwrap()), "stop.keys");
    let mut empty = plain();
    empty.stop.keys = Some(0);
    assert_eq!(refused(&mut empty), "stop.keys");
}
