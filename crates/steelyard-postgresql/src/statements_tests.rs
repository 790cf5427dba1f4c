//! Tests of statements and of what their answers mean.
#![allow(clippy::unwrap_used)]

use super::*;

fn statements(action: Action, whole: bool) -> Statements {
    let mut order: Order = serde_json::from_str(include_str!("../../../schema/resp-order.example.json")).unwrap();
    let ycsb = order.work.ycsb_mut().unwrap();
    ycsb.fields.truncate(2);
    (ycsb.field_length, ycsb.validate_fraction) = (40, 1.0);
    (ycsb.read_all_fields, ycsb.write_all_fields) = (whole, whole);
    order.action = action;
    Statements::of(&order, &target()).unwrap()
}

fn target() -> Postgresql {
    serde_json::from_str(r#"{"table": "usertable", "key": "Key"}"#).unwrap()
}

fn operation(kind: Kind) -> Operation {
    Operation {
        kind: kind as u16,
        key: 7,
        field: 1,
        scan_length: 5,
        ..Operation::default()
    }
}

fn value(statements: &Statements, field: u32, version: u64) -> Vec<u8> {
    let mut value = Vec::new();
    write_value(statements.seed, 7, field, version, &statements.workload, &mut value);
    value
}

fn key(statements: &Statements) -> Vec<u8> {
    let mut key = Vec::new();
    write_key(7, &statements.workload, &mut key);
    key
}

/// A message that has these bytes behind its length.
fn message(kind: u8, body: &[u8], out: &mut Vec<u8>) {
    put(Some(kind), out, |out| out.extend_from_slice(body));
}

#[test]
fn statements_are_prepared_once_in_sql() {
    let (load, fill) = (statements(Action::Load, false), statements(Action::Populate, true));
    let text = |statements: &Statements| String::from_utf8_lossy(&statements.prepare).replace('\0', "~");
    for sql in [
        "s0~SELECT field0 FROM usertable WHERE \"Key\" = $1~",
        "s1~SELECT field1 FROM usertable WHERE \"Key\" = $1~",
        "s3~UPDATE usertable SET field1 = $1 WHERE \"Key\" = $2~",
        "s4~INSERT INTO usertable (\"Key\", field0, field1) VALUES ($1, $2, $3) ON CONFLICT (\"Key\") DO UPDATE SET ",
        "s6~SELECT \"Key\", field1 FROM usertable WHERE \"Key\" >= $1 ORDER BY \"Key\" LIMIT $2~",
    ] {
        assert!(text(&load).contains(sql), "{sql}: {}", text(&load));
    }
    let upsert =
        "VALUES ($1, $2, $3) ON CONFLICT (\"Key\") DO UPDATE SET field0 = EXCLUDED.field0, field1 = EXCLUDED.field1~";
    for sql in [
        upsert,
        "s1~UPDATE usertable SET field0 = $1, field1 = $2 WHERE \"Key\" = $3~",
    ] {
        assert!(text(&fill).contains(sql), "{sql}: {}", text(&fill));
    }
}

#[test]
fn groups_are_those_of_the_protocol_to_the_byte() {
    let statements = statements(Action::Load, false);
    let sized = |value: &[u8]| [(value.len() as u32).to_be_bytes().as_slice(), value].concat();
    let (key, value) = (sized(&key(&statements)), sized(&value(&statements, 1, 1)));
    let cases = [
        (Kind::Read, "s1", vec![&key]),
        (Kind::Update, "s3", vec![&value, &key]),
        (Kind::ReadModifyWrite, "s1", vec![&key]),
    ];
    for (kind, name, values) in cases {
        let mut body = [b"\0".as_slice(), name.as_bytes(), b"\0\0\0\0", &[values.len() as u8]].concat();
        values.iter().for_each(|value| body.extend_from_slice(value));
        body.extend_from_slice(b"\0\0");
        let (mut wanted, mut out) = (Vec::new(), Vec::new());
        message(b'B', &body, &mut wanted);
        wanted.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04");
        statements.put(&operation(kind), &mut out);
        assert_eq!(out, wanted, "{kind:?}");
    }
    let mut scan = Vec::new();
    statements.put(&operation(Kind::Scan), &mut scan);
    assert!(scan.windows(5).any(|window| window == b"\0\0\0\x015"));
}

fn answer(rows: &[Vec<Option<&[u8]>>], tag: &str) -> Vec<u8> {
    let mut out = b"2\0\0\0\x04".to_vec();
    for row in rows {
        put(Some(b'D'), &mut out, |out| {
            out.extend_from_slice(&(row.len() as u16).to_be_bytes());
            for value in row {
                match value {
                    Some(value) => put_value(out, |out| out.extend_from_slice(value)),
                    None => out.extend_from_slice(&[0xff; 4]),
                }
            }
        });
    }
    put(Some(b'C'), &mut out, |out| put_text(tag.as_bytes(), out));
    [out.as_slice(), b"Z\0\0\0\x05I"].concat()
}

fn take(statements: &Statements, kind: Kind, answer: &[u8]) -> (Result<Outcome, Malformed>, u32) {
    let (mut course, mut samples) = (Course::default(), ErrorSamples::default());
    let outcome = statements.take(&operation(kind), &mut course, answer, &mut samples);
    (outcome, course.rows)
}

#[test]
fn every_wrong_byte_of_a_row_is_found() {
    for whole in [true, false] {
        let statements = statements(Action::Load, whole);
        let (key, first, second) = (key(&statements), value(&statements, 0, 3), value(&statements, 1, 9));
        let fields = if whole {
            vec![Some(first.as_slice()), Some(second.as_slice())]
        } else {
            vec![Some(second.as_slice())]
        };
        let named = [vec![Some(key.as_slice())], fields.clone()].concat();
        for (kind, rows) in [
            (Kind::Read, vec![fields.clone()]),
            (Kind::Scan, vec![named.clone(), named]),
        ] {
            let good = answer(&rows, "SELECT 1");
            let count = rows.len() as u32;
            assert_eq!(take(&statements, kind, &good), (Ok(Outcome::Ok), count));
            let first_row = 5..good.len() - 20;
            for byte in first_row {
                let mut wrong = good.clone();
                wrong[byte] ^= 1;
                assert_ne!(take(&statements, kind, &wrong), (Ok(Outcome::Ok), count), "{byte}");
            }
        }
        let null = answer(&[vec![None; fields.len()]], "SELECT 1");
        assert_eq!(take(&statements, Kind::Read, &null).0, Ok(Outcome::Invalid));
    }
}

#[test]
fn what_was_not_there_is_not_found_and_another_statements_answer_is_refused() {
    let statements = statements(Action::Load, true);
    let cases = [
        (Kind::Read, "SELECT 0", Some(Outcome::NotFound)),
        (Kind::Scan, "SELECT 0", Some(Outcome::Ok)),
        (Kind::Update, "UPDATE 1", Some(Outcome::Ok)),
        (Kind::Update, "UPDATE 0", Some(Outcome::NotFound)),
        (Kind::Insert, "INSERT 0 1", Some(Outcome::Ok)),
        (Kind::Insert, "UPDATE 1", None),
        (Kind::Update, "SELECT 1", None),
        (Kind::Scan, "INSERT 0 1", None),
    ];
    for (kind, tag, wanted) in cases {
        assert_eq!(
            take(&statements, kind, &answer(&[], tag)).0.ok(),
            wanted,
            "{kind:?} {tag}"
        );
    }
    assert!(
        take(&statements, Kind::Update, &answer(&[vec![None]], "UPDATE 1"))
            .0
            .is_err()
    );
    assert!(take(&statements, Kind::Read, b"2\0\0\0\x04Z\0\0\0\x05I").0.is_err());
    for (code, wanted) in [
        ("40001", Outcome::Server),
        ("53300", Outcome::Overloaded),
        ("57P03", Outcome::Unavailable),
    ] {
        let mut out = Vec::new();
        message(b'E', format!("C{code}\0Mno\0\0").as_bytes(), &mut out);
        assert_eq!(take(&statements, Kind::Read, &out).0, Ok(wanted));
    }
}

#[test]
fn what_has_no_statements_is_refused_in_words() {
    let program = include_str!("../../../schema/program-order.example.json");
    let refused = Statements::of(&serde_json::from_str(program).unwrap(), &target())
        .err()
        .unwrap();
    assert!(
        refused.to_string().contains("not possible over postgresql"),
        "{refused}"
    );
    let order: Order = serde_json::from_str(include_str!("../../../schema/resp-order.example.json")).unwrap();
    let nameless = Postgresql {
        table: String::new(),
        ..target()
    };
    let refused = Statements::of(&order, &nameless).err().unwrap();
    assert_eq!(refused.to_string(), "target.table: read nothing; allowed: a name");
}
