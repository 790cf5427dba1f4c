//! Streams: who asks does not matter, inserts are numbered on, wrong workloads are refused.

use steelyard_wire::RequestDistribution;

use super::*;

fn order() -> Order {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/order.example.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn ycsb(order: &mut Order) -> &mut Ycsb {
    order.workload.ycsb_mut().unwrap()
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
    Stream::new(workload, 10, 3, Share { index, of }, Action::Load, first).unwrap()
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
            Stream::new(&workload, 10, 4, Share::default(), Action::Load, 0)
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
        let mut part = Stream::new(&workload, 10, 3, Share { index, of: 4 }, Action::Populate, 0).unwrap();
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
    let wrong: [(&str, Change); 16] = [
        ("workload.records", |w| w.records = 0),
        ("workload.records", |w| w.insert_start = u64::MAX),
        ("workload.records", |w| {
            (w.records, w.insert_start, w.request_distribution) = (1, 0, RequestDistribution::Latest);
        }),
        ("workload.proportions", |w| w.proportions = Proportions::default()),
        ("workload.proportions", |w| w.proportions.read = -1.0),
        ("workload.proportions", |w| w.proportions.read = f64::NAN),
        ("workload.proportions", |w| {
            (w.proportions.read, w.proportions.insert) = (1e308, 1e308);
        }),
        ("workload.min_field_length", |w| {
            (w.min_field_length, w.field_length_distribution) = (101, LengthDistribution::Uniform);
        }),
        ("workload.zero_padding", |w| w.zero_padding = u32::MAX),
        ("workload.field_length", |w| w.field_length = u32::MAX),
        ("workload.min_scan_length", |w| w.min_scan_length = 101),
        ("workload.scan_length_distribution", |w| {
            w.scan_length_distribution = LengthDistribution::Constant
        }),
        ("workload.hotspot_data_fraction", |w| w.hotspot_data_fraction = 1.5),
        ("workload.hotspot_data_fraction", |w| {
            (w.hotspot_data_fraction, w.request_distribution) = (0.0, RequestDistribution::Hotspot);
        }),
        ("workload.exponential_percentile", |w| w.exponential_percentile = 100.0),
        ("workload.exponential_fraction", |w| w.exponential_fraction = 0.0),
    ];
    for (field, change) in wrong {
        let mut workload = ycsb(&mut order()).clone();
        change(&mut workload);
        let error = Stream::new(&workload, 10, 1, Share::default(), Action::Load, 0).unwrap_err();
        assert_eq!(error.field, field, "{error}");
    }
    let workload = ycsb(&mut order()).clone();
    let of_share = |index, of| Stream::new(&workload, 10, 1, Share { index, of }, Action::Load, 0).unwrap_err();
    assert_eq!(of_share(0, 0).field, "share.of");
    assert_eq!(of_share(0, u64::MAX).field, "share.of");
    assert_eq!(
        of_share(2, 2).to_string(),
        "share.index: read 2; allowed: 0 up to share.of - 1"
    );
    assert_eq!(
        Stream::new(&workload, 0, 1, Share::default(), Action::Load, 0)
            .unwrap_err()
            .field,
        "fields"
    );
}
