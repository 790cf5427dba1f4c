//! Programs: operations do not depend on who asks, their mix is what the weights say, and values follow from key and version.
#![allow(clippy::unwrap_used)]

use serde_json::{Value as Json, json};
use steelyard_client::program::{Execution, Request, Requests};
use steelyard_wire::program::{DistributionSpec, Make, Program};
use steelyard_wire::{Action, Order, Schedule, Share, Work};
use steelyard_workload::OrderError;
use steelyard_workload::operation::Operation;
use steelyard_workload::stream::{Stream, kinds};

fn order() -> Order {
    serde_json::from_str(include_str!("../../../schema/program-order.example.json")).unwrap()
}

fn program(order: &mut Order) -> &mut Program {
    match &mut order.work {
        Work::Program(program) => program,
        _ => panic!(),
    }
}

/// What the order's schedule asks for in all: its number of operations, or rate times duration.
fn expected_operations(order: &Order) -> f64 {
    match (order.stop.operations, &order.schedule) {
        (Some(operations), _) => operations as f64,
        (None, Schedule::Constant { rate_per_s, .. } | Schedule::Poisson { rate_per_s, .. }) => {
            rate_per_s * order.stop.duration_s.unwrap()
        }
        (None, _) => 0.0,
    }
}

/// Operations of a share from an index on.
fn operations(order: &Order, share: Share, first: u64, count: usize) -> Vec<Operation> {
    let order = Order { share, ..order.clone() };
    let mut stream = Stream::from_order(&order, expected_operations(&order), first).unwrap();
    (0..count).map(|_| stream.next()).collect()
}

fn all(order: &Order, count: usize) -> Vec<Operation> {
    operations(order, Share::default(), 0, count)
}

fn uniform(min: f64, max: f64) -> DistributionSpec {
    DistributionSpec::Uniform { min, max }
}

#[test]
fn the_shares_together_are_the_whole_stream() {
    for clustering in [None, Some(uniform(1.0, 9.0))] {
        let mut order = order();
        program(&mut order).clustering = clustering;
        let whole = all(&order, 900);
        assert!(whole.iter().map(|operation| operation.index).eq(0..900));
        for index in 0..3 {
            let part = operations(&order, Share { index, of: 3 }, 0, 300);
            assert!(part.iter().eq(whole.iter().skip(index as usize).step_by(3)));
            let later = operations(&order, Share { index, of: 3 }, 600, 100);
            assert_eq!(later, part[200..]);
        }
        let other = Order {
            seed: 8,
            ..order.clone()
        };
        assert_ne!(all(&other, 900), whole);
    }
}

#[test]
fn kinds_come_as_often_as_their_weights_say() {
    for clustering in [None, Some(DistributionSpec::Fixed { value: 5.0 })] {
        let mut order = order();
        let run = if clustering.is_some() { 5.0 } else { 1.0 };
        let weights = [6.0, 2.0, 0.5, 0.5, 1.0];
        program(&mut order).clustering = clustering;
        let mut counts = [0.0; 5];
        for operation in all(&order, 100_000) {
            counts[usize::from(operation.kind)] += 1.0 / run;
        }
        let total: f64 = counts.iter().sum();
        let chi_square: f64 = counts
            .iter()
            .zip(weights)
            .map(|(count, weight)| (count - total * weight / 10.0).powi(2) / (total * weight / 10.0))
            .sum();
        // 4 degrees of freedom, p = 1e-4.
        assert!(chi_square < 23.5, "{chi_square} {counts:?}");
    }
}

#[test]
fn operations_of_one_kind_follow_each_other_for_the_lengths_drawn() {
    let mut order = order();
    let program = program(&mut order);
    program.clustering = Some(DistributionSpec::Sequence { min: 1, max: 4 });
    // So many kinds that two runs of the same one hardly ever follow each other.
    let operation = program.operations[0].clone();
    program.operations = (0..2000)
        .map(|number| steelyard_wire::program::OperationSpec {
            name: format!("o{number}"),
            weight: 1.0,
            ..operation.clone()
        })
        .collect();
    let kinds: Vec<u16> = all(&order, 1000).iter().map(|operation| operation.kind).collect();
    let lengths: Vec<usize> = kinds.chunk_by(|a, b| a == b).map(<[u16]>::len).collect();
    let wanted = lengths.iter().zip([1, 2, 3, 4].into_iter().cycle());
    let equal = wanted.filter(|(length, wanted)| *length == wanted).count();
    assert!(equal > lengths.len() * 9 / 10, "{lengths:?}");
}

#[test]
fn inserts_take_the_next_keys_and_requests_see_them_after_the_lag() {
    let mut order = order();
    let program = program(&mut order);
    (program.clustering, program.insert_lag) = (None, Some(50));
    program.records = 100;
    program.populate_stride = 1;
    let mut inserted = Vec::new();
    let mut new_read = 0;
    for operation in all(&order, 5000) {
        match operation.kind {
            1 => {
                assert_eq!(operation.key, 100 + inserted.len() as u64);
                inserted.push(operation.index);
            }
            0 | 3 | 4 => {
                if let Some(place) = operation.key.checked_sub(100) {
                    assert!(inserted[place as usize] + 50 < operation.index);
                    new_read += 1;
                }
            }
            _ => {}
        }
    }
    assert!(new_read > 500, "{new_read}");
}

#[test]
fn a_batch_of_new_keys_takes_as_many_as_it_repeats() {
    let mut order = order();
    let program = program(&mut order);
    program.operations = serde_json::from_value(json!([{
        "name": "load", "weight": 1, "keys": {"kind": "new"},
        "steps": [{"kind": "batch", "statements": ["insert"], "mode": "unlogged",
                   "repeat": {"name": "fixed", "value": 7}, "next_key": true}],
    }]))
    .unwrap();
    let keys: Vec<u64> = all(&order, 4).iter().map(|operation| operation.key).collect();
    assert_eq!(keys, [10_000, 10_007, 10_014, 10_021]);
    program_mut_step(&mut order, json!({"name": "uniform", "min": 1, "max": 3}));
    let error = Stream::from_order(&order, expected_operations(&order), 0).unwrap_err();
    assert_eq!(error.field, "operations.load.repeat");
}

fn program_mut_step(order: &mut Order, repeat: Json) {
    let mut text = serde_json::to_value(&*order).unwrap();
    text["work"]["operations"][0]["steps"][0]["repeat"] = repeat;
    *order = serde_json::from_value(text).unwrap();
}

#[test]
fn the_fill_writes_every_key_once_and_none_beyond() {
    let mut order = order();
    order.action = Action::Populate;
    program(&mut order).records = 95;
    let requests = Requests::of(&order).unwrap();
    let mut keys = Vec::new();
    for index in 0..2 {
        for operation in operations(&order, Share { index, of: 2 }, 0, 5) {
            assert_eq!((operation.kind, operation.version(Action::Populate)), (0, 0));
            let Request::Batch(batch) = requests.request(requests.request_number(&operation)) else {
                panic!()
            };
            let at = requests.at(&operation);
            keys.extend(batch.executions(&at).iter().map(|at| at.key));
        }
    }
    keys.sort_unstable();
    assert!(keys.into_iter().eq(0..95));
    let kinds = kinds(&order).unwrap();
    assert_eq!((kinds.names(), kinds.count()), (&["populate".to_owned()][..], 1));
    assert_eq!(requests.statements.len(), 1, "only what the fill executes");
}

#[test]
fn steps_are_named_after_their_statements() {
    let kinds = kinds(&order()).unwrap();
    assert_eq!(kinds.names(), ["read", "write", "reserve", "scan", "correct", "insert"]);
    let steps = |kind| {
        kinds
            .kind(kind)
            .steps
            .iter()
            .map(|name| &*kinds.names()[usize::from(*name)])
            .collect::<Vec<_>>()
    };
    assert_eq!((steps(0), steps(4)), (vec!["read"], vec!["read", "insert"]));
}

/// An order of one statement with one value.
fn order_of(values: Json, expect: Json) -> Order {
    let mut order = order();
    let text = json!({
        "kind": "program", "records": 1000,
        "statements": [{"name": "s", "cql": "S", "writes": true, "values": values, "expect": expect}],
        "populate": [{"kind": "execute", "statement": "s"}],
        "operations": [{"name": "o", "weight": 1, "keys": {"kind": "existing", "distribution": "uniform"},
                        "steps": [{"kind": "execute", "statement": "s"}]}],
        "validate_fraction": 0.25,
    });
    order.work = serde_json::from_value(text).unwrap();
    order
}

fn requests(values: Json) -> Result<Requests, OrderError> {
    Requests::of(&order_of(values, json!([])))
}

fn at(key: u64, version: u64) -> Execution {
    Execution {
        index: version,
        key,
        version,
        ..Execution::default()
    }
}

fn bytes(requests: &Requests, at: &Execution) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(requests.statements[0].values[0].put(at, &mut out));
    out
}

fn value(kind: &str, make: Json) -> Json {
    json!([{"type": kind, "make": make}])
}

#[test]
fn key_values_follow_from_the_key() {
    let number = |make: Json, key| {
        let compiled = requests(value("bigint", make)).unwrap();
        i64::from_be_bytes(bytes(&compiled, &at(key, 1)).try_into().unwrap())
    };
    assert_eq!(number(json!({"kind": "key"}), 77), 77);
    let make = json!({"kind": "key", "divide": 10, "modulo": 5, "scale": -3, "offset": 100});
    assert_eq!(number(make, 77), 100 - 3 * 2);
    let scrambled = json!({"kind": "key", "divide": 10, "modulo": 1000, "scramble": true});
    assert_eq!(number(scrambled.clone(), 77), number(scrambled.clone(), 70));
    assert!((0..1000).contains(&number(scrambled, 80)));
    let text = json!({"kind": "key", "prefix": "user", "digits": 5});
    let compiled = requests(value("text", text)).unwrap();
    assert_eq!(bytes(&compiled, &at(42, 1)), b"user00042");
}

#[test]
fn random_values_follow_from_key_and_version_and_differ_by_salt() {
    let make = |salt: u32, versioned: bool| {
        let size = json!({"name": "uniform", "min": 20, "max": 60});
        requests(value(
            "text",
            json!({"kind": "random", "salt": salt, "size": size, "versioned": versioned}),
        ))
        .unwrap()
    };
    let (plain, versioned) = (make(1, false), make(1, true));
    assert_eq!(bytes(&plain, &at(5, 1)), bytes(&plain, &at(5, 2)));
    assert_ne!(bytes(&plain, &at(5, 1)), bytes(&plain, &at(6, 1)));
    assert_ne!(bytes(&plain, &at(5, 1)), bytes(&make(2, false), &at(5, 1)));
    assert!(bytes(&versioned, &at(5, 0x1a)).starts_with(b"000000000000001a"));
    assert_ne!(bytes(&versioned, &at(5, 1))[16..], bytes(&versioned, &at(5, 2))[16..]);
    let mut lengths = [0; 61];
    for key in 0..2000 {
        let text = bytes(&plain, &at(key, 1));
        assert!(text.iter().all(|byte| (b'?'..=b'~').contains(byte)));
        lengths[text.len()] += 1;
    }
    assert!(lengths[..20].iter().all(|count| *count == 0) && lengths[20..].iter().all(|count| *count > 0));
}

#[test]
fn rows_of_a_partition_differ_where_the_statement_has_rows() {
    let row = json!({"type": "int", "make": {"kind": "row", "count": {"name": "fixed", "value": 4}}});
    let text = json!({"type": "text", "make": {"kind": "random"}});
    let compiled = requests(json!([row, text])).unwrap();
    let both = |at: &Execution| {
        let mut out = (Vec::new(), Vec::new());
        compiled.statements[0].values[0].put(at, &mut out.0);
        compiled.statements[0].values[1].put(at, &mut out.1);
        out
    };
    let within = |number| {
        both(&Execution {
            repetition: Some(number),
            ..at(9, 1)
        })
    };
    assert_eq!(within(3).0, [0, 0, 0, 3]);
    assert_ne!(within(3).1, within(2).1);
    let mut rows: Vec<_> = (0..100).map(|index| both(&at(9, index))).collect();
    rows.sort();
    rows.dedup();
    assert_eq!(rows.len(), 4, "a text for each row, and no other");
}

const TYPES: [&str; 30] = [
    "ascii",
    "bigint",
    "blob",
    "boolean",
    "counter",
    "date",
    "decimal",
    "double",
    "duration",
    "float",
    "inet",
    "int",
    "smallint",
    "text",
    "time",
    "timestamp",
    "timeuuid",
    "tinyint",
    "uuid",
    "varint",
    "list<int>",
    "set<text>",
    "set<tinyint>",
    "map<smallint, frozen<list<text>>>",
    "tuple<int, text, frozen<set<date>>>",
    "vector<float, 3>",
    "vector<text, 2>",
    "set<frozen<map<boolean, duration>>>",
    "list<vector<smallint, 2>>",
    "map<uuid, inet>",
];

#[test]
fn every_type_is_expected_as_it_was_written() {
    for kind in TYPES {
        let values = value(kind, json!({"kind": "random", "salt": 3}));
        let order = order_of(values.clone(), values);
        let requests = Requests::of(&order).unwrap();
        let statement = &requests.statements[0];
        let mut scratch = Vec::new();
        for key in 0..20 {
            let at = at(key, 1);
            let mut cell = bytes(&requests, &at);
            assert!(statement.holds(&at, 0, Some(&cell), &mut scratch), "{kind}");
            assert!(!statement.holds(&at, 0, None, &mut scratch), "{kind}");
            if let Some(last) = cell.last_mut() {
                *last ^= 1;
            }
            assert!(!statement.holds(&at, 0, Some(&cell), &mut scratch), "{kind}");
        }
    }
}

#[test]
fn sets_have_no_entry_twice_and_are_expected_in_any_order() {
    let values = value(
        "set<tinyint>",
        json!({"kind": "random", "size": {"name": "fixed", "value": 200}}),
    );
    let order = order_of(values.clone(), values);
    let requests = Requests::of(&order).unwrap();
    let at = at(1, 1);
    let cell = bytes(&requests, &at);
    let count = u32::from_be_bytes(cell[..4].try_into().unwrap()) as usize;
    let mut entries: Vec<&[u8]> = cell[4..].chunks_exact(5).collect();
    assert_eq!(entries.len(), count);
    entries.sort_unstable();
    entries.dedup();
    assert!(entries.len() == count && (100..200).contains(&count), "{count}");
    let sorted = [&cell[..4], &entries.concat()].concat();
    assert_ne!(sorted, cell);
    assert!(requests.statements[0].holds(&at, 0, Some(&sorted), &mut Vec::new()));
}

#[test]
fn a_versioned_value_is_expected_with_the_version_that_it_carries() {
    for kind in ["text", "blob"] {
        let make = json!({"kind": "random", "versioned": true, "size": {"name": "uniform", "min": 30, "max": 90}});
        let order = order_of(value(kind, make.clone()), value(kind, make));
        let requests = Requests::of(&order).unwrap();
        let holds = |cell: &[u8]| requests.statements[0].holds(&at(7, 1000), 0, Some(cell), &mut Vec::new());
        for version in [0, 1, 77, u64::MAX] {
            let cell = bytes(&requests, &at(7, version));
            assert!(holds(&cell));
            for place in 0..cell.len() {
                let mut broken = cell.clone();
                broken[place] ^= 2;
                assert!(!holds(&broken), "{kind} {version} {place}");
            }
            assert!(!holds(&bytes(&requests, &at(8, version))));
        }
        assert!(!holds(b"") && !holds(b"short"));
    }
}

#[test]
fn answers_are_compared_in_the_fraction_asked_for() {
    let requests = Requests::of(&order_of(json!([]), json!([]))).unwrap();
    let operation = |index| Operation {
        index,
        ..Operation::default()
    };
    let compared = (0..10_000)
        .filter(|index| requests.is_compared(&operation(*index)))
        .count();
    // Four standard deviations about 2,500.
    assert!((2327..2673).contains(&compared), "{compared}");
}

#[test]
fn what_cannot_be_is_refused_by_its_place() {
    let cases = [
        (value("integer", json!({"kind": "key"})), "statements.s.values.0.type"),
        (value("list<int>", json!({"kind": "key"})), "statements.s.values.0.type"),
        (value("tinyint", json!({"kind": "key"})), "statements.s.values.0.make"),
        (
            value("int", json!({"kind": "key", "scramble": true})),
            "statements.s.values.0.make",
        ),
        (
            value("int", json!({"kind": "key", "divide": 0})),
            "statements.s.values.0.make",
        ),
        (
            value("int", json!({"kind": "fixed", "value": "x"})),
            "statements.s.values.0.value",
        ),
        (
            value(
                "tinyint",
                json!({"kind": "draw", "number": {"name": "fixed", "value": 300}}),
            ),
            "statements.s.values.0.make.number",
        ),
        (
            value(
                "text",
                json!({"kind": "random", "size": {"name": "fixed", "value": -1}}),
            ),
            "statements.s.values.0.make.size",
        ),
        (
            value(
                "list<int>",
                json!({"kind": "random", "number": {"name": "fixed", "value": 1}}),
            ),
            "statements.s.values.0.make.number",
        ),
        (
            value(
                "map<int, int>",
                json!({"kind": "random", "of": [{"type": "int", "make": {"kind": "random"}}]}),
            ),
            "statements.s.values.0.make.of",
        ),
        (
            value(
                "list<int>",
                json!({"kind": "random", "of": [{"type": "text", "make": {"kind": "random"}}]}),
            ),
            "statements.s.values.0.make.of.type",
        ),
        (
            value("int", json!({"kind": "row", "count": {"name": "fixed", "value": 0}})),
            "statements.s.values.0.make.count",
        ),
        (value("int", json!({"kind": "any"})), "statements.s.values.make"),
    ];
    for (values, field) in cases {
        let error = requests(values.clone()).unwrap_err();
        assert_eq!(error.field, format!("operations.o.{field}"), "{values} {error}");
    }
    let draw = value("int", json!({"kind": "draw", "number": {"name": "fixed", "value": 1}}));
    let error = Requests::of(&order_of(json!([]), draw)).unwrap_err();
    assert_eq!(error.field, "operations.o.statements.s.expect");
}

/// A change that makes the example wrong, and the field that says so.
type Wrong = (&'static str, fn(&mut Program));

#[test]
fn programs_that_cannot_be_are_refused() {
    let wrong: [Wrong; 14] = [
        ("operations.weight", |p| {
            p.operations.iter_mut().for_each(|o| o.weight = 0.0)
        }),
        ("operations.weight", |p| p.operations[0].weight = f64::NAN),
        ("operations.read.statements.read.values.0.make.size", |p| {
            p.statements[1].values[0].make = Make::StressKey { size: u32::MAX };
        }),
        ("operations.read.statements.read.expect.0.make.key_size", |p| {
            let size = DistributionSpec::Fixed { value: 1.0 };
            p.statements[1].expect[0].make = Make::StressColumn {
                column: 0,
                size,
                named: None,
                key_size: 0,
            };
        }),
        ("work.operations", |p| p.operations.clear()),
        ("work.operations", |p| p.operations[0].steps.clear()),
        ("work.populate_stride", |p| p.populate_stride = 0),
        ("work.validate_fraction", |p| p.validate_fraction = 1.5),
        ("clustering", |p| {
            p.clustering = Some(DistributionSpec::Fixed { value: 0.0 })
        }),
        ("operations.read.keys.kind", |p| p.records = 0),
        ("operations.read.statement", |p| p.statements[1].name = "red".into()),
        ("operations.read.statement", |p| p.statements[2].name = "read".into()),
        ("operations.read.statements.read.partition_key", |p| {
            p.statements[1].partition_key = vec![2]
        }),
        ("operations.scan.statements.history.max_pages", |p| {
            p.statements[3].max_pages = 0
        }),
    ];
    for (field, change) in wrong {
        let mut order = order();
        change(program(&mut order));
        let refused = Stream::from_order(&order, expected_operations(&order), 0)
            .map(|_| ())
            .and_then(|()| Requests::of(&order).map(|_| ()));
        let error = refused.unwrap_err();
        assert_eq!(error.field, field, "{error}");
    }
}

#[test]
fn orders_that_would_overflow_are_refused() {
    let mut shared = order();
    shared.share.of = u64::MAX;
    assert_eq!(
        Stream::from_order(&shared, expected_operations(&shared), 0)
            .unwrap_err()
            .field,
        "share.of"
    );
    let mut long = order();
    long.stop.operations = Some(u64::MAX);
    assert_eq!(
        Stream::from_order(&long, expected_operations(&long), 0)
            .unwrap_err()
            .field,
        "stop.operations"
    );
}
