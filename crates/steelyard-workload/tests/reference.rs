//! Holds the distributions against what YCSB itself gave, `tests/fixtures/ycsb/reference.json`: exactly for given random numbers, and
//! by a two-sample chi-square test for draws from our own source.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use serde_json::Value;
use steelyard_wire::{Action, InsertOrder, LengthDistribution, Order, Proportions, RequestDistribution, Share};
use steelyard_workload::random::{Purpose, Random, unit};
use steelyard_workload::ycsb::{Stream, ValueSeed, write_key, write_value};
use steelyard_workload::ycsb_distributions::{
    Exponential, Hotspot, Latest, ScrambledZipfian, ZIPFIAN_CONSTANT, Zipfian, fnv_hash, uniform, zeta,
};

fn reference() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/ycsb/reference.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn order() -> Order {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/order.example.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| value.as_i64().unwrap() as u64)
}

fn double(value: &Value) -> f64 {
    f64::from_bits(number(value))
}

#[test]
fn hashes_and_key_names_are_equal() {
    let reference = reference();
    for row in list(&reference["fnv_hash"]) {
        assert_eq!(fnv_hash(number(&row[0])), number(&row[1]), "{row}");
    }
    let mut workload = order().work.ycsb().unwrap().clone();
    for row in list(&reference["key_names"]) {
        workload.insert_order = match row[0].as_str().unwrap() {
            "hashed" => InsertOrder::Hashed,
            _ => InsertOrder::Ordered,
        };
        workload.zero_padding = number(&row[1]) as u32;
        let mut name = Vec::new();
        write_key(number(&row[2]), &workload, &mut name);
        assert_eq!(String::from_utf8(name).unwrap(), row[3].as_str().unwrap());
    }
}

#[test]
fn zetas_are_equal() {
    for row in list(&reference()["zeta"]) {
        let ours = zeta(0, number(&row[0]), ZIPFIAN_CONSTANT, 0.0);
        // The mathematics libraries may differ in a power's last bit.
        assert!((ours / double(&row[1]) - 1.0).abs() < 1e-12, "{row}: {ours}");
    }
}

#[test]
fn values_for_given_random_numbers_are_equal() {
    for case in list(&reference()["exact"]) {
        let name = case["name"].as_str().unwrap();
        let parameters: Vec<u64> = list(&case["parameters"]).iter().map(number).collect();
        let mut differing = 0;
        for row in list(&case["rows"]) {
            let (at, bits, expected) = (double(&row[0]), number(&row[1]), number(&row[2]));
            let ours = match (name, parameters.as_slice()) {
                ("zipfian", &[low, high]) => Zipfian::new(low, high).value(at),
                ("zipfian-grown", &[low, high, count]) => {
                    let mut zipfian = Zipfian::new(low, high);
                    zipfian.grow(count);
                    zipfian.value(at)
                }
                ("scrambled", &[low, high]) => ScrambledZipfian::new(low, high - low + 1).value(at),
                ("uniform", &[low, high]) => uniform(bits, low, high - low + 1),
                ("latest", &[first, newest]) => Latest::new(first).value(at, newest),
                ("hotspot", &[low, count]) => Hotspot::new(low, count, 0.2, 0.8).value(at, bits),
                ("exponential", &[]) => {
                    let ours = Exponential::new(95.0, 857.142_857_1).value(at);
                    assert!((ours / f64::from_bits(expected) - 1.0).abs() < 1e-12, "{row}: {ours}");
                    expected
                }
                other => panic!("unknown case {other:?}"),
            };
            differing += usize::from(ours != expected);
        }
        // A power's last bit can move a rank of 10^10 by one, and so its hash to another key.
        let allowed = usize::from(name == "scrambled");
        assert!(differing <= allowed, "{name} {parameters:?}: {differing} differ");
    }
}

#[test]
fn sequential_kinds_and_value_bytes_are_equal() {
    let reference = reference();
    let mut workload = order().work.ycsb().unwrap().clone();
    let sequential = &reference["sequential"];
    workload.request_distribution = RequestDistribution::Sequential;
    workload.insert_start = number(&sequential["first"]);
    workload.records = number(&sequential["count"]);
    let mut stream = Stream::new(&workload, 1, Share::default(), Action::Load, 0).unwrap();
    for key in list(&sequential["values"]) {
        assert_eq!(stream.next().key, number(key));
    }
    for case in list(&reference["kinds"]) {
        let shares: Vec<f64> = list(&case["proportions"])
            .iter()
            .map(|share| share.as_f64().unwrap())
            .collect();
        let proportions = Proportions {
            read: shares[0],
            update: shares[1],
            insert: shares[2],
            scan: shares[3],
            read_modify_write: shares[4],
        };
        for row in list(&case["rows"]) {
            let name = proportions_kind(&proportions, double(&row[0]));
            assert_eq!(name, row[1].as_str().unwrap());
        }
    }
    for row in list(&reference["value_bytes"]) {
        let expected: Vec<u8> = list(&row[1]).iter().map(|byte| number(byte) as u8).collect();
        assert_eq!(
            steelyard_workload::ycsb::six_characters(number(&row[0]) as u32).to_le_bytes()[..6].to_vec(),
            expected
        );
    }
}

fn proportions_kind(proportions: &Proportions, at: f64) -> String {
    let kind = steelyard_workload::ycsb::kind_at(&steelyard_workload::ycsb::kind_ends(proportions), at);
    kind.name().replace('-', "").to_uppercase()
}

#[test]
fn draws_are_distributed_as_the_references() {
    for case in list(&reference()["histograms"]) {
        let name = case["name"].as_str().unwrap();
        let parameters: Vec<u64> = list(&case["parameters"]).iter().map(number).collect();
        let zipfian = Zipfian::new(0, 9999);
        let scrambled = ScrambledZipfian::new(0, 10_000);
        let mut latest = Latest::new(9999);
        let hotspot = Hotspot::new(0, 1000, 0.2, 0.8);
        let exponential = Exponential::new(95.0, 857.142_857_1);
        let random = Random::new(11, Purpose::Key);
        let ours = (0..number(&case["draws"])).map(|index| {
            let (bits, more) = (random.at(index).bits(0), random.at(index).bits(1));
            match name {
                "zipfian" => zipfian.value(unit(bits)),
                "scrambled" => scrambled.value(unit(bits)),
                "latest" => 9999 - latest.value(unit(bits), 9999),
                "hotspot" => hotspot.value(unit(bits), more),
                "uniform" => uniform(bits, parameters[0], parameters[1] - parameters[0] + 1),
                "exponential" => exponential.value(1.0 - unit(bits)) as u64,
                other => panic!("unknown case {other}"),
            }
        });
        let z = chi_square_z(list(&case["cells"]), ours);
        // One-sided p of 1e-4.
        assert!(z < 3.719, "{name}: z = {z}");
    }
}

/// Two-sample chi-square over the reference's cells, as a standard normal deviate (Wilson and Hilferty 1931).
fn chi_square_z(cells: &[Value], ours: impl Iterator<Item = u64>) -> f64 {
    let singles: HashMap<u64, usize> = cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| cell[0] == cell[1])
        .map(|(i, cell)| (number(&cell[0]), i))
        .collect();
    let ranges: Vec<(u64, u64, usize)> = cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| cell[0] != cell[1])
        .map(|(i, cell)| (number(&cell[0]), number(&cell[1]), i))
        .collect();
    let mut counts = vec![0.0; cells.len()];
    for value in ours {
        let place = singles.get(&value).copied().unwrap_or_else(|| {
            let after = ranges.partition_point(|(low, _, _)| *low <= value);
            let (low, high, place) = ranges[after - 1];
            assert!((low..=high).contains(&value), "{value} is in no cell");
            place
        });
        counts[place] += 1.0;
    }
    let theirs: Vec<f64> = cells.iter().map(|cell| number(&cell[2]) as f64).collect();
    let (sum_ours, sum_theirs): (f64, f64) = (counts.iter().sum(), theirs.iter().sum());
    let mut degrees = -1.0;
    let mut chi_square = 0.0;
    let (mut a, mut b) = (0.0, 0.0);
    for (ours, theirs) in counts.into_iter().zip(theirs) {
        (a, b) = (a + ours, b + theirs);
        // Cells with few counts are joined with the next.
        if a + b >= 20.0 {
            let scaled: f64 = a * (sum_theirs / sum_ours).sqrt() - b * (sum_ours / sum_theirs).sqrt();
            chi_square += scaled.powi(2) / (a + b);
            degrees += 1.0;
            (a, b) = (0.0, 0.0);
        }
    }
    assert!(degrees > 5.0);
    let part = 2.0 / (9.0 * degrees);
    ((chi_square / degrees).cbrt() - (1.0 - part)) / part.sqrt()
}

#[test]
fn values_have_the_lengths_asked_for() {
    let mut workload = order().work.ycsb().unwrap().clone();
    (workload.min_field_length, workload.field_length) = (10, 80);
    for (kind, range) in [
        (LengthDistribution::Constant, 80..=80),
        (LengthDistribution::Uniform, 10..=80),
        (LengthDistribution::Zipfian, 10..=80),
    ] {
        workload.field_length_distribution = kind;
        for key in 0..500 {
            let mut value = Vec::new();
            write_value(ValueSeed::new(1), key, 3, 0, &workload, &mut value);
            assert!(range.contains(&value.len()), "{kind:?} {}", value.len());
            assert!(value.iter().all(|byte| (0x20..=0x7f).contains(byte)));
            let mut other = Vec::new();
            write_value(ValueSeed::new(1), key, 3, 1, &workload, &mut other);
            assert_ne!(value, other);
        }
    }
}
