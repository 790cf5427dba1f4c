//! Holds rows and distributions against what cassandra-stress itself gave, `tests/fixtures/stress/reference.json`: rows byte for
//! byte, distributions by a two-sample chi-square test.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use steelyard_wire::program::DistributionSpec;
use steelyard_workload::distributions::Distribution;
use steelyard_workload::random::{Purpose, Random};
use steelyard_workload::stress::{Column, row_seed, write_key};

fn reference() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/fixtures/stress/reference.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn distribution(value: &Value) -> DistributionSpec {
    serde_json::from_value(value.clone()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn keys_and_values_are_equal_byte_for_byte() {
    let mut values = 0;
    for case in list(&reference()["rows"]) {
        let size = distribution(&case["size"]);
        let names: Vec<&str> = list(&case["columns"])
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect();
        let columns: Vec<Column> = names.iter().map(|name| Column::new(name, &size).unwrap()).collect();
        for row in list(&case["rows"]) {
            let seed = row[0].as_i64().unwrap();
            let mut key = Vec::new();
            write_key(seed, case["key_size"].as_u64().unwrap() as u32, &mut key);
            assert_eq!(hex(&key), row[1].as_str().unwrap(), "{}", case["line"]);
            for (place, (name, column)) in names.iter().zip(&columns).enumerate() {
                let mut value = b"before".to_vec();
                column.write(row_seed(&key), &mut value);
                let expected = row[2 + place].as_str().unwrap();
                assert_eq!(hex(&value[6..]), expected, "{} {name} of {seed}", case["line"]);
                values += 1;
            }
        }
    }
    assert!(values > 400, "{values}");
}

#[test]
fn bounds_are_equal() {
    for row in list(&reference()["exact"]) {
        let (least, greatest) = (row[2].as_i64().unwrap(), row[3].as_i64().unwrap());
        // The inverse of the tool says its least for its greatest.
        let expected = (least.min(greatest), least.max(greatest));
        assert_eq!(
            Distribution::new(&distribution(&row[1])).unwrap().bounds(),
            expected,
            "{row}"
        );
    }
}

#[test]
fn draws_are_distributed_as_the_tools() {
    let random = Random::new(11, Purpose::Key);
    for case in list(&reference()["histograms"]) {
        let compiled = Distribution::new(&distribution(&case["distribution"])).unwrap();
        let cells = list(&case["cells"]);
        let ends: Vec<i64> = cells.iter().map(|cell| cell[0].as_i64().unwrap()).collect();
        let theirs: Vec<f64> = cells.iter().map(|cell| cell[1].as_f64().unwrap()).collect();
        let mut ours = vec![0.0; cells.len()];
        for index in 0..case["draws"].as_u64().unwrap() {
            let value = compiled.value([random.at(index).bits(0), random.at(index).bits(1)]);
            // The last cell is open: a greater value than the tool happened to draw may come.
            ours[ends.partition_point(|end| *end < value).min(cells.len() - 1)] += 1.0;
        }
        let z = chi_square_z(&ours, &theirs);
        // One-sided p of 1e-4.
        assert!(z < 3.719, "{}: z = {z}", case["option"]);
    }
}

/// Two-sample chi-square of equally many draws, as a standard normal deviate (Wilson and Hilferty 1931).
fn chi_square_z(ours: &[f64], theirs: &[f64]) -> f64 {
    let chi_square: f64 = ours.iter().zip(theirs).map(|(a, b)| (a - b).powi(2) / (a + b)).sum();
    let degrees = ours.len() as f64 - 1.0;
    let part = 2.0 / (9.0 * degrees);
    ((chi_square / degrees).cbrt() - (1.0 - part)) / part.sqrt()
}
