//! Tests of what is asked of etcd.
#![allow(clippy::unwrap_used)]

use steelyard_wire::{InsertOrder, Proportions};

use super::*;

fn order(whole: bool) -> Order {
    let mut order: Order = serde_json::from_str(include_str!("../../../schema/etcd-order.example.json")).unwrap();
    let ycsb = order.work.ycsb_mut().unwrap();
    ycsb.fields.truncate(2);
    ycsb.field_length = 3;
    ycsb.insert_order = InsertOrder::Ordered;
    (ycsb.read_all_fields, ycsb.write_all_fields) = (whole, whole);
    order
}

fn operation(kind: Kind, step: u16) -> Operation {
    Operation {
        kind: kind as u16,
        step,
        key: 7,
        field: 1,
        scan_length: 5,
        ..Operation::default()
    }
}

fn request(order: &Order, serializable: bool, operation: &Operation) -> String {
    let gateway = Gateway::of(order, Etcd { serializable }).unwrap();
    let mut out = Vec::new();
    gateway.put(operation, b"Host: h\r\n\r\n", &mut Scratch::default(), &mut out);
    String::from_utf8(out).unwrap()
}

fn value(order: &Order, field: u32, version: u64) -> String {
    let (mut value, mut text) = (Vec::new(), Vec::new());
    let ycsb = order.work.ycsb().unwrap();
    write_value(ValueSeed::new(order.seed), 7, field, version, ycsb, &mut value);
    base64::put(&value, &mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn requests_are_those_of_the_gateway_to_the_byte() {
    // user7/, user70, user7/field0, user7/field1
    let (prefix, end, field0, field1) = ("dXNlcjcv", "dXNlcjcw", "dXNlcjcvZmllbGQw", "dXNlcjcvZmllbGQx");
    let (one, all) = (order(false), order(true));
    let put = |order: &Order, key: &str, field, version| {
        format!(r#"{{"key":"{key}","value":"{}"}}"#, value(order, field, version))
    };
    let txn = |version| {
        let (first, second) = (put(&all, field0, 0, version), put(&all, field1, 1, version));
        format!(r#"{{"success":[{{"requestPut":{first}}},{{"requestPut":{second}}}]}}"#)
    };
    let record = format!(r#"{{"key":"{prefix}","range_end":"{end}"}}"#);
    let field = format!(r#"{{"key":"{field1}"}}"#);
    let cases = [
        (&all, Kind::Read, 0, "range", record.clone()),
        (&one, Kind::Read, 0, "range", field.clone()),
        (&one, Kind::Update, 0, "put", put(&one, field1, 1, 1)),
        (&all, Kind::Update, 0, "txn", txn(1)),
        (&one, Kind::Insert, 0, "txn", txn(1)),
        (&all, Kind::ReadModifyWrite, 0, "range", record),
        (&one, Kind::ReadModifyWrite, 1, "put", put(&one, field1, 1, 1)),
        (
            &one,
            Kind::Scan,
            0,
            "range",
            format!(r#"{{"key":"{prefix}","range_end":"AA==","limit":10}}"#),
        ),
    ];
    for (order, kind, step, path, body) in cases {
        let length = body.len();
        let wanted = format!("POST /v3/kv/{path} HTTP/1.1\r\nContent-Length: {length}\r\nHost: h\r\n\r\n{body}");
        assert_eq!(request(order, false, &operation(kind, step)), wanted);
    }
    let serializable = format!(r#"{{"key":"{field1}","serializable":true}}"#);
    assert!(request(&one, true, &operation(Kind::Read, 0)).ends_with(&serializable));
    // What is filled has version 0.
    let mut fill = order(true);
    fill.action = Action::Populate;
    assert!(request(&fill, false, &operation(Kind::Insert, 0)).ends_with(&txn(0)));
}

fn end(kind: Kind, status: u16, body: &str) -> Result<(Outcome, u32, Vec<String>), Malformed> {
    let gateway = Gateway::of(&order(true), Etcd::default()).unwrap();
    let mut course = Course {
        status,
        said: b"503 Service Unavailable".to_vec(),
        body: body.as_bytes().to_vec(),
        ..Course::default()
    };
    if status == 200 {
        course.glance.take(body.as_bytes())?;
    }
    let mut samples = ErrorSamples::default();
    let outcome = gateway.end(&operation(kind, 0), &mut course, &mut samples)?;
    Ok((
        outcome,
        course.rows,
        samples.by_kind().into_values().flatten().collect(),
    ))
}

#[test]
fn answers_mean_what_they_say() {
    let kvs = |count: usize| format!(r#"{{"header":{{}},"kvs":[{}]}}"#, vec!["{}"; count].join(","));
    assert_eq!(end(Kind::Read, 200, &kvs(2)), Ok((Outcome::Ok, 1, vec![])));
    assert_eq!(
        end(Kind::Read, 200, r#"{"header":{}}"#),
        Ok((Outcome::NotFound, 0, vec![]))
    );
    // Of the last row of a scan one field is there.
    assert_eq!(end(Kind::Scan, 200, &kvs(7)), Ok((Outcome::Ok, 4, vec![])));
    assert_eq!(end(Kind::Scan, 200, "{}"), Ok((Outcome::Ok, 0, vec![])));
    assert_eq!(
        end(Kind::Insert, 200, r#"{"succeeded":true}"#),
        Ok((Outcome::Ok, 0, vec![]))
    );
    assert!(end(Kind::Read, 200, "").is_err());
    assert!(end(Kind::Read, 200, r#"{"kvs":[{"#).is_err());
    assert!(end(Kind::Read, 200, "<html>").is_err());
}

#[test]
fn every_wrong_byte_of_a_record_is_found() {
    // What other seeds and versions have written is as good.
    let answer = |fields: &[u32], key: &str| {
        let kv = |field: &u32| {
            let (order, mut value, mut name, mut text) = (order(true), Vec::new(), Vec::new(), Vec::new());
            let mut ycsb = order.work.ycsb().unwrap().clone();
            ycsb.field_length = 40;
            write_value(ValueSeed::new(77), 7, *field, 5, &ycsb, &mut value);
            base64::put(format!("{key}/field{field}").as_bytes(), &mut name);
            base64::put(&value, &mut text);
            let shown = |bytes| String::from_utf8(bytes).unwrap();
            format!(r#"{{"key":"{}","version":"5","value":"{}"}}"#, shown(name), shown(text))
        };
        let kvs: Vec<String> = fields.iter().map(kv).collect();
        format!(r#"{{"header":{{}},"kvs":[{}],"count":"2"}}"#, kvs.join(","))
    };
    for whole in [true, false] {
        let mut order = order(whole);
        let ycsb = order.work.ycsb_mut().unwrap();
        (ycsb.validate_fraction, ycsb.field_length) = (1.0, 40);
        let gateway = Gateway::of(&order, Etcd::default()).unwrap();
        let outcome = |kind: Kind, key: u64, body: &str| {
            let read = Operation {
                key,
                ..operation(kind, 0)
            };
            let mut course = Course {
                status: 200,
                body: body.as_bytes().to_vec(),
                compares: gateway.compares(&read),
                ..Course::default()
            };
            course.glance.take(body.as_bytes()).unwrap();
            gateway.end(&read, &mut course, &mut ErrorSamples::default())
        };
        let asked: &[u32] = if whole { &[0, 1] } else { &[1] };
        let good = answer(asked, "user7");
        assert_eq!(outcome(Kind::Read, 7, &good), Ok(Outcome::Ok));
        assert_eq!(outcome(Kind::Scan, 7, &good), Ok(Outcome::Ok));
        assert_eq!(outcome(Kind::Read, 8, &good), Ok(Outcome::Invalid));
        assert_eq!(outcome(Kind::Read, 7, &answer(&[0], "user7")), Ok(Outcome::Invalid));
        assert_eq!(outcome(Kind::Scan, 7, &answer(&[0], "user7")), Ok(Outcome::Ok));
        for kind in [Kind::Read, Kind::Scan] {
            assert_eq!(outcome(kind, 7, &answer(asked, "user8")), Ok(Outcome::Invalid));
            assert_eq!(outcome(kind, 7, &answer(asked, "other7")), Ok(Outcome::Invalid));
            // Of a value only what follows its mark is known.
            let begin = good.find("\"value\":\"").unwrap() + 9;
            for at in begin + 20..begin + 50 {
                let mut wrong = good.clone().into_bytes();
                wrong[at] = if wrong[at] == b'A' { b'B' } else { b'A' };
                assert_eq!(
                    outcome(kind, 7, &String::from_utf8(wrong).unwrap()),
                    Ok(Outcome::Invalid),
                    "{at}"
                );
            }
        }
        assert_eq!(outcome(Kind::Update, 7, "{}"), Ok(Outcome::Ok));
    }
}

#[test]
fn errors_are_of_the_kind_that_their_code_says() {
    let cases = [
        (Kind::Read, 504, 4, Outcome::ReadTimeout),
        (Kind::Scan, 504, 0, Outcome::ReadTimeout),
        (Kind::Update, 504, 4, Outcome::WriteTimeout),
        (Kind::Insert, 429, 8, Outcome::Overloaded),
        (Kind::Insert, 429, 0, Outcome::Overloaded),
        (Kind::Read, 503, 14, Outcome::Unavailable),
        (Kind::Read, 503, 0, Outcome::Unavailable),
        (Kind::Read, 400, 3, Outcome::Server),
        (Kind::Read, 404, 0, Outcome::Server),
    ];
    for (kind, status, code, outcome) in cases {
        let body = format!(r#"{{"error":"etcdserver: why","message":"etcdserver: why","code":{code}}}"#);
        assert_eq!(
            end(kind, status, &body),
            Ok((outcome, 0, vec!["etcdserver: why".to_owned()])),
            "{code}"
        );
    }
    let unknown = r#"{"error":"context deadline exceeded","code":2}"#;
    assert_eq!(end(Kind::Read, 500, unknown).unwrap().0, Outcome::ReadTimeout);
    let (outcome, _, texts) = end(Kind::Read, 503, "<html>").unwrap();
    assert_eq!(
        (outcome, texts),
        (Outcome::Unavailable, vec!["HTTP 503 Service Unavailable".to_owned()])
    );
}

#[test]
fn what_etcd_cannot_do_is_refused_in_words() {
    let mut wide = order(true);
    wide.work.ycsb_mut().unwrap().fields = (0..129).map(|field| format!("f{field}")).collect();
    let refused = |order: &Order| Gateway::of(order, Etcd::default()).err().unwrap().to_string();
    assert!(refused(&wide).starts_with("work.fields: read 129; allowed: 1 to 128 over etcd"));
    for (example, why) in [
        (
            include_str!("../../../schema/program-order.example.json"),
            "a program has CQL statements",
        ),
        (
            include_str!("../../../schema/http-order.example.json"),
            "requests for documents are not possible over etcd",
        ),
    ] {
        assert!(refused(&serde_json::from_str(example).unwrap()).contains(why));
    }
    let mut scans = order(true);
    scans.work.ycsb_mut().unwrap().proportions = Proportions {
        scan: 1.0,
        ..Proportions::default()
    };
    assert!(Gateway::of(&scans, Etcd::default()).is_ok());
}
