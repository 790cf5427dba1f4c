//! Statements of a table: values follow from the row's primary key, whichever key number, statement and operation it was reached
//! by, and are those that cassandra-stress 3.11.4 draws of the same profile.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use steelyard_client::program::{Execution, Request, Requests};
use steelyard_wire::Order;
use steelyard_workload::operation::Operation;

fn uniform(min: i64, max: i64) -> Json {
    json!({"name": "uniform", "min": min as f64, "max": max as f64})
}

fn fixed(value: i64) -> Json {
    json!({"name": "fixed", "value": value as f64})
}

fn gaussian(min: i64, max: i64) -> Json {
    json!({"name": "gaussian", "min": min, "max": max, "mean": (min + max) as f64 / 2.0, "deviation": (max - min) as f64 / 6.0})
}

fn key(cql_type: &str, named: &str, of: Json, size: i64, hidden: bool) -> Json {
    let identity = json!({"named": named, "of": of, "size": fixed(size), "hidden": hidden});
    json!({"type": cql_type, "make": {"kind": "key", "digits": 0, "identity": identity}})
}

fn chosen(cql_type: &str, named: &str, of: Json) -> Json {
    json!({"type": cql_type, "make": {"kind": "random", "salt": 5, "choice": {"named": named, "of": of}}})
}

fn text() -> Json {
    json!({"type": "text", "make": {"kind": "random", "salt": 9, "size": fixed(12)}})
}

fn clustering(cql_type: &str, column: u32) -> Json {
    json!({"type": cql_type, "make": {"kind": "clustering", "column": column}})
}

/// An insert that selects a share of the rows, and queries of the same table, with its markers' values.
fn order(table: &Json, values: &Json, select: &Json) -> Order {
    let mut order: Json = serde_json::from_str(include_str!("../../../schema/program-order.example.json")).unwrap();
    let mut apart = table.clone();
    apart["apart"] = true.into();
    let statement = |name: &str, table: &Json, writes: bool| json!({"name": name, "cql": name, "values": values, "writes": writes, "table": table});
    let batch =
        json!({"kind": "batch", "statements": ["insert"], "mode": "unlogged", "next_key": true, "select": select});
    let operation = |name: &str, step: Json| {
        let keys = json!({"kind": "drawn", "number": {"name": "sequence", "min": 0, "max": 299}});
        json!({"name": name, "weight": 1.0, "keys": keys, "steps": [step]})
    };
    let execute = |name: &str| json!({"kind": "execute", "statement": name});
    let program = &mut order["work"];
    program["records"] = 300.into();
    program["statements"] = json!([
        statement("insert", table, true),
        statement("read", table, false),
        statement("apart", &apart, false)
    ]);
    program["operations"] = json!([
        operation("insert", batch),
        operation("read", execute("read")),
        operation("apart", execute("apart")),
    ]);
    serde_json::from_value(order).unwrap()
}

type Bound = Vec<Vec<u8>>;

/// What a statement binds in one execution.
fn bound(requests: &Requests, statement: usize, at: &Execution) -> Bound {
    let put = |source: &steelyard_client::program::ValueSource| {
        let mut out = Vec::new();
        source.put(at, &mut out);
        out
    };
    requests.statements[statement].values.iter().map(put).collect()
}

fn at(requests: &Requests, index: u64, key: u64) -> Execution {
    requests.at(&Operation {
        index,
        key,
        ..Operation::default()
    })
}

/// The rows that an insert writes.
fn inserted(requests: &Requests, index: u64, key: u64) -> Vec<Bound> {
    let Request::Batch(batch) = requests.request(0) else {
        panic!()
    };
    let executions = batch.executions(&at(requests, index, key));
    executions.iter().map(|at| bound(requests, 0, at)).collect()
}

fn int(bytes: &[u8]) -> i64 {
    bytes.iter().fold(if bytes[0] > 127 { -1 } else { 0 }, |sum, byte| {
        (sum << 8) | i64::from(*byte)
    })
}

#[test]
fn every_value_follows_from_the_primary_key() {
    let levels = [
        json!([]),
        json!([{"count": fixed(1), "value": key("bigint", "at", uniform(1, 6), 4, false)}]),
        json!([{"count": uniform(1, 7), "value": {"type": "bigint", "make": {"kind": "key"}}}]),
        json!([{"count": fixed(9), "value": key("bigint", "at", uniform(1, 6), 4, false)}]),
        json!([
            {"count": uniform(2, 3), "value": {"type": "bigint", "make": {"kind": "key"}}},
            {"count": fixed(1), "value": key("text", "of", uniform(1, 6), 4, true)},
            {"count": uniform(1, 4), "value": {"type": "smallint", "make": {"kind": "key"}}},
        ]),
    ];
    for (of, levels) in [
        uniform(1, 40),
        gaussian(1, 90),
        json!({"name": "exponential", "min": 1, "max": 60}),
    ]
    .iter()
    .flat_map(|of| levels.iter().map(move |levels| (of, levels)))
    {
        let id = key("int", "id", of.clone(), 4, false);
        let columns = levels.as_array().unwrap();
        let mut values = vec![id.clone()];
        values.extend(
            (0..)
                .zip(columns)
                .map(|(number, level)| clustering(level["value"]["type"].as_str().unwrap(), number)),
        );
        let keys = values.len();
        values.extend([chosen("int", "age", gaussian(1, 1000)), text()]);
        let table = json!({"partition": [id], "clustering": levels});
        let order = order(&table, &json!(values), &json!({"of": fixed(1), "divisor": 2}));
        let requests = Requests::of(&order).unwrap();
        let mut written = BTreeMap::new();
        let mut partitions = BTreeSet::new();
        // Far from each other: neighbouring keys draw neighbouring numbers.
        for key in (0..300).map(|key| 98_765 * key) {
            let rows = inserted(&requests, 7 * key, key);
            assert!(!rows.is_empty());
            for row in rows {
                assert_eq!(int(&row[0]), int(&bound(&requests, 1, &at(&requests, 0, key))[0]));
                let values = written
                    .entry(row[..keys].to_vec())
                    .or_insert_with(|| row[keys..].to_vec());
                assert_eq!(*values, row[keys..], "{levels}");
                partitions.insert(row[0].clone());
            }
        }
        assert!((5..150).contains(&partitions.len()), "{}", partitions.len());
        // Queries ask for those rows, with all of their values.
        let mut found = 0;
        for index in 0..600 {
            let asked = bound(&requests, 1, &at(&requests, index, 98_765 * (index % 300)));
            if let Some(values) = written.get(&asked[..keys]) {
                assert_eq!(*values, asked[keys..], "{levels}");
                found += 1;
            }
        }
        assert!(found > 300, "{found}");
    }
}

#[test]
fn selected_rows_are_others_each_time_until_all_were_there() {
    let table = json!({
        "partition": [key("int", "id", fixed(3), 4, false)],
        "clustering": [{"count": fixed(500), "value": {"type": "int", "make": {"kind": "key"}}}],
    });
    let values = json!([table["partition"][0], clustering("int", 0)]);
    let requests = Requests::of(&order(&table, &values, &json!({"of": fixed(1), "divisor": 50}))).unwrap();
    let mut rows = BTreeSet::new();
    let mut count = 0;
    for index in 0..1000 {
        let written = inserted(&requests, index, index % 7);
        count += written.len();
        rows.extend(written);
        if index == 99 {
            // 500 (1 - 0.98^100) = 434 of them.
            assert!((405..460).contains(&rows.len()), "{}", rows.len());
        }
    }
    assert_eq!(rows.len(), 500);
    assert!((9_500..10_500).contains(&count), "{count}");
    let none = json!({"of": fixed(0), "divisor": 50});
    let least = Requests::of(&order(&table, &values, &none)).unwrap();
    assert_eq!(inserted(&least, 4, 2).len(), 1, "an insert writes a row");
    let all = json!({"of": fixed(3), "divisor": 3});
    assert_eq!(
        inserted(&Requests::of(&order(&table, &values, &all)).unwrap(), 4, 2).len(),
        500
    );
}

#[test]
fn markers_apart_are_of_few_rows_and_others_of_one() {
    let table = json!({
        "partition": [key("int", "id", fixed(3), 4, false)],
        "clustering": [{"count": fixed(6), "value": {"type": "int", "make": {"kind": "key"}}}],
    });
    let values = json!([table["partition"][0], clustering("int", 0), clustering("int", 0)]);
    let requests = Requests::of(&order(&table, &values, &json!({"of": fixed(1), "divisor": 1}))).unwrap();
    let equal = |statement: usize| {
        (0..2000)
            .map(|index| bound(&requests, statement, &at(&requests, index, 1)))
            .filter(|row| row[1] == row[2])
            .count()
    };
    assert_eq!(equal(1), 2000);
    // Each row is taken with the chance of a half, three at most, one at least: 1/k of them agree where there are k.
    assert!((820..1000).contains(&equal(2)), "{}", equal(2));
}

/// (2^32 - 1)^4 rows are more than a number holds: an entry is then drawn about never, and the last one is taken.
#[test]
fn more_rows_than_can_be_counted_are_drawn_from() {
    let level = json!({"count": fixed(u32::MAX.into()), "value": {"type": "bigint", "make": {"kind": "key"}}});
    let id = key("int", "id", fixed(3), 4, false);
    let table = json!({"partition": [id], "clustering": vec![level; 4]});
    let values = json!([id, clustering("bigint", 0)]);
    let none = json!({"of": fixed(0), "divisor": 1});
    let requests = Requests::of(&order(&table, &values, &none)).unwrap();
    for statement in [1, 2] {
        let entries: BTreeSet<Bound> = (0..100)
            .map(|index| bound(&requests, statement, &at(&requests, index, 1)))
            .collect();
        assert_eq!(entries.len(), 1);
        // So does an insert that selects none of them.
        assert_eq!(entries.first(), inserted(&requests, 0, 1).first());
    }
}

#[test]
fn numbers_are_those_that_cassandra_stress_draws() {
    // Read from tables that the tool filled with `user profile=... ops(insert=1) n=300 -pop seq=1..300`.
    let id = key("bigint", "id", uniform(1, 150), 4, false);
    let table = json!({"partition": [id]});
    let values = json!([id, chosen("int", "age", gaussian(1, 90))]);
    let every = json!({"of": fixed(1), "divisor": 1});
    let requests = Requests::of(&order(&table, &values, &every)).unwrap();
    let people: BTreeSet<(i64, i64)> = (0..300)
        .map(|key| bound(&requests, 1, &at(&requests, 0, key)))
        .map(|row| (int(&row[0]), int(&row[1])))
        .collect();
    let wanted = [(25, 31), (26, 17), (27, 39), (28, 43), (29, 44), (30, 41), (31, 28)];
    assert!(people.into_iter().eq(wanted));

    // Two columns, and a text below them that nobody sees: what comes after it follows from the tool's own text.
    let (shop, day) = (
        key("int", "shop", uniform(1, 20), 4, false),
        key("int", "day", gaussian(1, 25), 4, false),
    );
    let table = json!({
        "partition": [shop, day],
        "clustering": [{"count": fixed(1), "value": key("text", "guest", uniform(1, 100_000_000_000), 9, true)}],
    });
    let values = json!([shop, day, chosen("bigint", "amount", uniform(1, 10_000_000))]);
    let requests = Requests::of(&order(&table, &values, &every)).unwrap();
    let visits: BTreeSet<(i64, i64, i64)> = (0..300)
        .map(|key| bound(&requests, 1, &at(&requests, 0, key)))
        .map(|row| (int(&row[0]), int(&row[1]), int(&row[2])))
        .collect();
    let read = [
        (6, 11, 2_680_634),
        (5, 9, 5_791_431),
        (6, 9, 8_422_952),
        (5, 15, 519_093),
        (5, 14, 3_013_883),
    ];
    assert_eq!(visits.len(), 30);
    assert!(read.iter().all(|visit| visits.contains(visit)), "{visits:?}");

    // A blob and a text whose bytes are others here.
    for (cql_type, named, size, column, of, some) in [
        ("blob", "isbn", 12, "pages", gaussian(1, 900), [397, 289, 516, 339]),
        ("text", "code", 10, "customer", uniform(1, 400), [233, 277, 259, 353]),
    ] {
        let id = key(cql_type, named, uniform(1, 100_000_000_000), size, true);
        let values = json!([id, chosen("int", column, of)]);
        let requests = Requests::of(&order(&json!({"partition": [id]}), &values, &every)).unwrap();
        let numbers: BTreeSet<i64> = (0..300)
            .map(|key| int(&bound(&requests, 1, &at(&requests, 0, key))[1]))
            .collect();
        assert!(
            some.iter().all(|number| numbers.contains(number)),
            "{named}: {numbers:?}"
        );
    }
}

#[test]
fn tables_that_are_not_possible_are_refused() {
    let id = key("int", "id", uniform(1, 9), 4, false);
    let good = json!({"partition": [id], "clustering": [{"count": fixed(300), "value": {"type": "int", "make": {"kind": "key"}}}]});
    let every = json!({"of": fixed(1), "divisor": 1});
    let refused = |table: &Json, values: Json, select: &Json| {
        let error = Requests::of(&order(table, &values, select)).unwrap_err();
        error.field.trim_start_matches("operations.insert.").to_owned()
    };
    assert!(Requests::of(&order(&good, &json!([id, clustering("int", 0)]), &every)).is_ok());
    for wrong in [clustering("int", 1), clustering("bigint", 0)] {
        assert_eq!(
            refused(&good, json!([id, wrong]), &every),
            "statements.insert.values.1.make.column"
        );
    }
    let mut many = good.clone();
    many["clustering"] = json!(vec![good["clustering"][0].clone(); 9]);
    assert_eq!(refused(&many, json!([id]), &every), "statements.insert.table");
    many["clustering"] = json!(vec![good["clustering"][0].clone(); 2]);
    assert!(
        refused(&many, json!([id]), &every).ends_with("statements"),
        "300 x 300 rows in a batch"
    );
    assert!(refused(&good, json!([id]), &json!({"of": fixed(1), "divisor": 0})).ends_with("divisor"));
    let mut tiny = good.clone();
    tiny["clustering"][0]["value"]["type"] = "tinyint".into();
    assert!(
        refused(&tiny, json!([id]), &every).contains("table.clustering"),
        "300 entries of 128 values"
    );
    let row = json!({"type": "int", "make": {"kind": "row", "count": fixed(3)}});
    assert!(refused(&good, json!([row]), &every).contains("make.kind"));
}

/// The values of a statement of a table with that key, by row.
fn rows_of(id: &Json, columns: &[Json], keys: u64) -> Vec<Bound> {
    let values: Vec<Json> = std::iter::once(id.clone()).chain(columns.iter().cloned()).collect();
    let every = json!({"of": fixed(1), "divisor": 1});
    let requests = Requests::of(&order(&json!({"partition": [id]}), &json!(values), &every)).unwrap();
    (0..keys)
        .map(|key| bound(&requests, 1, &at(&requests, 0, 98_765 * key)))
        .collect()
}

#[test]
fn whole_numbers_are_cut_and_reals_keep_their_fraction() {
    let every = uniform(1, 100_000_000_000);
    let id = key("bigint", "id", every.clone(), 4, false);
    let columns = [
        chosen("int", "a", every.clone()),
        chosen("tinyint", "a", every.clone()),
        chosen("bigint", "a", every),
        chosen("double", "d", gaussian(1, 90)),
        chosen("int", "d", gaussian(1, 90)),
        chosen(
            "double",
            "x",
            json!({"name": "inverted", "of": {"name": "exponential", "min": 1, "max": 60}}),
        ),
        chosen("float", "u", uniform(-3, 4)),
    ];
    let rows = rows_of(&id, &columns, 2000);
    let real = |bytes: &[u8]| f64::from_be_bytes(bytes.try_into().unwrap());
    let (mut negative, mut least, mut most) = (0, 9.0_f32, -9.0_f32);
    for row in &rows {
        let whole = int(&row[3]);
        assert_eq!(
            (int(&row[1]), int(&row[2])),
            (i64::from(whole as i32), i64::from(whole as i8))
        );
        negative += u32::from(int(&row[1]) < 0);
        // The whole number is the same draw without its fraction.
        assert_eq!(real(&row[4]) as i64, int(&row[5]));
        assert!((1.0..=60.0).contains(&real(&row[6])));
        let u = f32::from_be_bytes(row[7][..].try_into().unwrap());
        (least, most) = (least.min(u), most.max(u));
    }
    assert!((850..1150).contains(&negative), "{negative}");
    assert!(least < -2.9 && most == 4.0, "{least} {most}");
    let whole = rows.iter().filter(|row| real(&row[4]).fract() == 0.0).count();
    assert!(whole < 20, "only at the ends: {whole}");
}

#[test]
fn a_blob_key_is_the_tools_own() {
    let bytes = |of: Json, size: i64| {
        let mut id = key("blob", "id", of, size, false);
        id["make"]["identity"]["bytes"] = true.into();
        id
    };
    let every = uniform(1, 100_000_000_000);
    let column = chosen("int", "n", every.clone());
    let rows = rows_of(&bytes(every.clone(), 20), std::slice::from_ref(&column), 500);
    assert!(rows.iter().all(|row| row[0].len() == 20));
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), 500);
    let few = rows_of(&bytes(uniform(1, 30), 3), &[column], 3000);
    let keys: BTreeSet<&Vec<u8>> = few.iter().map(|row| &row[0]).collect();
    assert_eq!((keys.len(), few.iter().collect::<BTreeSet<_>>().len()), (30, 30));
    let mut text = bytes(every, 5);
    text["type"] = "text".into();
    let order = order(
        &json!({"partition": [text]}),
        &json!([text]),
        &json!({"of": fixed(1), "divisor": 1}),
    );
    assert!(Requests::of(&order).unwrap_err().field.ends_with("identity.bytes"));
}

#[test]
fn values_in_collections_are_of_as_many_as_their_population_has() {
    let inner = |cql_type: &str, of: Json| {
        let mut value = chosen(cql_type, "c", of);
        if cql_type == "text" {
            value["make"]["size"] = fixed(3);
        }
        value
    };
    let of = |cql_type: &str, of: Json| json!({"type": cql_type, "make": {"kind": "random", "salt": 5, "size": fixed(40), "of": of}});
    let columns = [
        of("set<text>", json!([inner("text", uniform(1, 3))])),
        of("list<tinyint>", json!([inner("tinyint", uniform(1, 1_000_000))])),
        of(
            "map<int, double>",
            json!([inner("int", uniform(1, 4)), inner("double", uniform(1, 4))]),
        ),
    ];
    let id = key("bigint", "id", uniform(1, 100_000_000_000), 4, false);
    let rows = rows_of(&id, &columns, 50);
    let mut texts = BTreeSet::new();
    let (mut numbers, mut whole) = (BTreeSet::new(), 0);
    for row in &rows {
        // Count of entries, then each with its length.
        let entry = |cell: &[u8], at: usize, size: usize| cell[4 + at * (4 + size) + 4..][..size].to_vec();
        let many = |cell: &[u8]| int(&cell[..4]) as usize;
        assert_eq!(many(&row[1]), 3, "none is in a set twice");
        (0..3).for_each(|at| _ = texts.insert(entry(&row[1], at, 3)));
        assert_eq!(many(&row[2]), 40);
        (0..40).for_each(|at| _ = numbers.insert(int(&entry(&row[2], at, 1))));
        assert_eq!(many(&row[3]), 4);
        let real = f64::from_be_bytes(row[3][4 + 8 + 4..][..8].try_into().unwrap());
        whole += usize::from(real.fract() == 0.0);
    }
    assert_eq!(texts.len(), 3);
    assert!(whole < rows.len() / 2, "a quarter is cut to 4: {whole}");
    assert!(
        numbers.first() < Some(&-100) && numbers.last() > Some(&100),
        "{numbers:?}"
    );
}
