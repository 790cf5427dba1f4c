//! Streams: who asks does not matter, inserts are numbered on, wrong workloads are refused.

use steelyard_wire::{InsertOrder, RequestDistribution};

use super::*;

fn order() -> Order {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/order.example.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn ycsb(order: &mut Order) -> &mut Ycsb {
    order.work.ycsb_mut().unwrap()
}

/// A mix of everything, with inserts that the key choosers must see.
fn mixed(distribution: RequestDistribution) -> Ycsb {
    let mut workload = ycsb(&mut order()).clone();
    workload.request_distribution = distribution;
    workload.records = 200;
    workload.insert_start = 50;
    workload.proportions = Proportions {
        read: 0.4,
        update: 0.2,
        insert: 0.2,
        scan: 0.1,
        read_modify_write: 0.1,
    };
    workload.expected_new_keys = Some(800);
    workload.insert_lag = Some(7);
    workload
}

const DISTRIBUTIONS: [RequestDistribution; 6] = [
    RequestDistribution::Uniform,
    RequestDistribution::Zipfian,
    RequestDistribution::Latest,
    RequestDistribution::Hotspot,
    RequestDistribution::Sequential,
    RequestDistribution::Exponential,
];

fn stream(workload: &Ycsb, index: u64, of: u64, first: u64) -> Stream {
    Stream::new(workload, 3, Share { index, of }, Action::Load, first).unwrap()
}

#[test]
fn operations_do_not_depend_on_who_asks() {
    for distribution in DISTRIBUTIONS {
        let workload = mixed(distribution);
        let mut whole = stream(&workload, 0, 1, 0);
        let all: Vec<Operation> = (0..600).map(|_| whole.next()).collect();
        for (index, operation) in (0..).zip(&all) {
            assert_eq!(operation.index, index);
        }
        for share in 0..3 {
            let mut part = stream(&workload, share, 3, 100);
            let first = (100..103).find(|index| index % 3 == share).unwrap();
            for index in (first..600).step_by(3) {
                assert_eq!(part.next(), all[index as usize], "{distribution:?} {share}");
            }
        }
        for index in [0, 1, 77, 599] {
            // An operation by itself: a new stream that begins there.
            assert_eq!(stream(&workload, 0, 1, index).next(), all[index as usize]);
        }
        assert_eq!(whole.at(5), all[5]);
        assert_eq!(whole.at(300), all[300]);
        assert_ne!(
            Stream::new(&workload, 4, Share::default(), Action::Load, 0)
                .unwrap()
                .next(),
            all[0]
        );
    }
}

#[test]
fn inserts_are_numbered_on_and_requests_see_them_after_the_lag() {
    for distribution in DISTRIBUTIONS {
        let workload = mixed(distribution);
        let mut stream = stream(&workload, 0, 1, 0);
        let mut inserted_at = Vec::new();
        let mut seen_new = 0;
        for index in 0..3000 {
            let operation = stream.next();
            assert_eq!(operation.scan_length > 0, operation.kind == Kind::Scan as u16);
            assert!(operation.field < 10);
            if operation.kind == Kind::Insert as u16 {
                assert_eq!(operation.key, 250 + inserted_at.len() as u64);
                assert!(stream.is_new(operation.key));
                inserted_at.push(index);
                continue;
            }
            assert!(operation.key >= 50);
            if stream.is_new(operation.key) {
                seen_new += 1;
                let by = inserted_at[(operation.key - 250) as usize];
                assert!(by + 7 < index, "{distribution:?}: {index} asks for what {by} inserted");
            }
        }
        let grows = matches!(
            distribution,
            RequestDistribution::Zipfian | RequestDistribution::Latest | RequestDistribution::Exponential
        );
        assert_eq!(seen_new > 100, grows, "{distribution:?} {seen_new}");
    }
}

#[test]
fn populate_inserts_every_key_once() {
    let workload = mixed(RequestDistribution::Latest);
    let mut keys: Vec<u64> = Vec::new();
    for index in 0..4 {
        let mut part = Stream::new(&workload, 3, Share { index, of: 4 }, Action::Populate, 0).unwrap();
        for _ in 0..50 {
            let operation = part.next();
            assert_eq!(
                (operation.kind, operation.version(Action::Populate)),
                (Kind::Insert as u16, 0)
            );
            keys.push(operation.key);
        }
    }
    keys.sort_unstable();
    assert_eq!(keys, (50..250).collect::<Vec<_>>());
}

/// How many values with a wrong byte pass, and how many of whole values that belong elsewhere.
fn unseen(workload: &Ycsb) -> (u32, u32) {
    let (mut flipped, mut elsewhere) = (0, 0);
    for key in 0..50 {
        let (number, mut value) = (named_number(key, workload), Vec::new());
        write_value(ValueSeed::new(key + 3), key, 4, key % 7, workload, &mut value);
        assert!(check_value(number, 4, &value, workload));
        let passes = |number, field, value: &[u8]| u32::from(check_value(number, field, value, workload));
        elsewhere += passes(number, 5, &value) + passes(named_number(key + 1, workload), 4, &value);
        elsewhere += passes(number, 4, &value[1..]) + passes(number, 4, &value[..value.len() - 1]);
        for byte in 0..value.len() {
            for bit in 0..8 {
                value[byte] ^= 1 << bit;
                flipped += u32::from(check_value(number, 4, &value, workload));
                value[byte] ^= 1 << bit;
            }
        }
    }
    (flipped, elsewhere)
}

#[test]
fn a_value_is_known_to_be_right_without_its_seed_and_version() {
    let mut workload = mixed(RequestDistribution::Uniform);
    for order in [InsertOrder::Hashed, InsertOrder::Ordered] {
        workload.insert_order = order;
        assert_eq!(unseen(&workload), (0, 0));
    }
    workload.field_length_distribution = LengthDistribution::Uniform;
    workload.min_field_length = 24;
    assert_eq!(unseen(&workload), (0, 0));
    // Of two characters one is the mark.
    (workload.min_field_length, workload.field_length) = (2, 2);
    let (flipped, elsewhere) = unseen(&workload);
    assert!(flipped < 50 && elsewhere < 20, "{flipped} of 800, {elsewhere} of 200");
    (workload.min_field_length, workload.field_length) = (0, 0);
    assert!(check_value(7, 4, b"", &workload) && !check_value(7, 4, b"x", &workload));
}

/// A snapshot holds values. Other bytes need another `VALUES` in src/steelyard/workload/ycsb.py, so that none is restored in which they
/// are wrong.
#[test]
fn values_are_those_of_format_3() {
    assert_eq!(&null_value(0)[..36], b"1*45$n#He2,|%Hi:5f4To& &(%d'V-,72!6f");
}

#[test]
fn null_servers_answer_with_a_record_that_is_right() {
    let workload = mixed(RequestDistribution::Uniform);
    let mut name = Vec::new();
    write_key(0, &workload, &mut name);
    assert_eq!(null_name().as_bytes(), name);
    assert!((0..10).all(|field| check_value(named_number(0, &workload), field, &null_value(field), &workload)));
}

#[test]
fn names_have_the_numbers_that_values_follow_from() {
    for order in [InsertOrder::Hashed, InsertOrder::Ordered] {
        let mut workload = mixed(RequestDistribution::Uniform);
        (workload.insert_order, workload.zero_padding) = (order, 30);
        for key in [0, 7, u64::MAX] {
            let mut name = Vec::new();
            write_key(key, &workload, &mut name);
            assert_eq!(number_in_name(&name), Some(named_number(key, &workload)));
        }
    }
    for other in ["user", "used1", "user1x", "user18446744073709551616"] {
        assert_eq!(number_in_name(other.as_bytes()), None);
    }
}

#[test]
fn a_key_space_that_hardly_exists_still_ends() {
    let mut workload = mixed(RequestDistribution::Zipfian);
    workload.records = 1;
    workload.proportions = Proportions {
        read: 1.0,
        ..Proportions::default()
    };
    workload.expected_new_keys = Some(1 << 40);
    assert_eq!(stream(&workload, 0, 1, 0).next().key, 50);
}

/// A change that makes a workload wrong.
type Change = fn(&mut Ycsb);

#[test]
fn what_cannot_be_is_refused_by_field() {
    let wrong: [(&str, Change); 18] = [
        ("work.records", |w| w.records = 0),
        ("work.fields", |w| w.fields.clear()),
        ("work.records", |w| w.insert_start = u64::MAX),
        ("work.records", |w| {
            (w.records, w.insert_start, w.request_distribution) = (1, 0, RequestDistribution::Latest);
        }),
        ("work.proportions", |w| w.proportions = Proportions::default()),
        ("work.proportions", |w| w.proportions.read = -1.0),
        ("work.proportions", |w| w.proportions.read = f64::NAN),
        ("work.proportions", |w| {
            (w.proportions.read, w.proportions.insert) = (1e308, 1e308);
        }),
        ("work.min_field_length", |w| {
            (w.min_field_length, w.field_length_distribution) = (101, LengthDistribution::Uniform);
        }),
        ("work.zero_padding", |w| w.zero_padding = u32::MAX),
        ("work.field_length", |w| w.field_length = u32::MAX),
        ("work.min_scan_length", |w| w.min_scan_length = 101),
        ("work.scan_length_distribution", |w| {
            w.scan_length_distribution = LengthDistribution::Constant
        }),
        ("work.hotspot_data_fraction", |w| w.hotspot_data_fraction = 1.5),
        ("work.hotspot_data_fraction", |w| {
            (w.hotspot_data_fraction, w.request_distribution) = (0.0, RequestDistribution::Hotspot);
        }),
        ("work.exponential_percentile", |w| w.exponential_percentile = 100.0),
        ("work.exponential_fraction", |w| w.exponential_fraction = 0.0),
        ("work.validate_fraction", |w| w.validate_fraction = 1.5),
    ];
    for (field, change) in wrong {
        let mut workload = ycsb(&mut order()).clone();
        change(&mut workload);
        let error = Stream::new(&workload, 1, Share::default(), Action::Load, 0).unwrap_err();
        assert_eq!(error.field, field, "{error}");
    }
    let workload = ycsb(&mut order()).clone();
    let of_share = |index, of| Stream::new(&workload, 1, Share { index, of }, Action::Load, 0).unwrap_err();
    assert_eq!(of_share(0, 0).field, "share.of");
    assert_eq!(of_share(0, u64::MAX).field, "share.of");
    assert_eq!(
        of_share(2, 2).to_string(),
        "share.index: read 2; allowed: 0 up to share.of - 1"
    );
}
