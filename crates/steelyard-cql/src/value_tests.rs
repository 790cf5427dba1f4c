//! Values of every native type, both ways.

use super::*;

fn round_trip(kind: &ColumnType, value: &Value<'_>) {
    let mut out = Vec::new();
    value.put(&mut out);
    let cell = Reader::new(&out).bytes().unwrap();
    assert_eq!(&Value::decode(kind, cell).unwrap(), value, "{kind:?}");
}

#[test]
fn values_come_back_as_they_were_written() {
    round_trip(&ColumnType::Text, &Value::Text("Grüße"));
    round_trip(&ColumnType::Blob, &Value::Blob(&[0, 255]));
    round_trip(&ColumnType::Boolean, &Value::Boolean(true));
    round_trip(&ColumnType::TinyInt, &Value::TinyInt(-1));
    round_trip(&ColumnType::SmallInt, &Value::SmallInt(-300));
    round_trip(&ColumnType::Int, &Value::Int(i32::MIN));
    round_trip(&ColumnType::Counter, &Value::BigInt(1 << 40));
    round_trip(&ColumnType::Float, &Value::Float(0.5));
    round_trip(&ColumnType::Double, &Value::Double(-1e300));
    round_trip(&ColumnType::Timestamp, &Value::Timestamp(1_790_000_000_000));
    round_trip(&ColumnType::Date, &Value::Date(-1));
    round_trip(&ColumnType::Time, &Value::Time(1));
    round_trip(&ColumnType::Uuid, &Value::Uuid([7; 16]));
    round_trip(&ColumnType::Inet, &Value::Inet("10.0.0.1".parse().unwrap()));
    round_trip(&ColumnType::Inet, &Value::Inet("::1".parse().unwrap()));
    round_trip(&ColumnType::Int, &Value::Null);
}

#[test]
fn numbers_of_any_size_come_back() {
    for value in [0, 1, -1, 127, 128, -128, -129, 255, 256, i128::MAX, i128::MIN, 1 << 64] {
        round_trip(&ColumnType::VarInt, &Value::VarInt(value));
        round_trip(
            &ColumnType::Decimal,
            &Value::Decimal {
                unscaled: value,
                scale: -2,
            },
        );
    }
    for part in [0, 1, -1, 63, 64, -64, -65, 8191, 8192, i64::MAX, i64::MIN] {
        round_trip(
            &ColumnType::Duration,
            &Value::Duration {
                months: part,
                days: 1,
                nanoseconds: -part.saturating_abs(),
            },
        );
    }
}

#[test]
fn nested_types_and_their_values_come_back() {
    let text = || Box::new(ColumnType::Text);
    let map = ColumnType::Map(text(), Box::new(ColumnType::Set(Box::new(ColumnType::Int))));
    let udt = ColumnType::Udt {
        keyspace: "k".into(),
        name: "u".into(),
        fields: vec![
            ("a".into(), ColumnType::Int),
            ("b".into(), ColumnType::Tuple(vec![ColumnType::Text, map.clone()])),
        ],
    };
    for kind in [
        map.clone(),
        udt.clone(),
        ColumnType::Duration,
        ColumnType::Custom("x.Y".into()),
    ] {
        let mut out = Vec::new();
        kind.encode(&mut out);
        assert_eq!(ColumnType::decode(&mut Reader::new(&out)).unwrap(), kind);
    }
    let inner = Value::Map(vec![(
        Value::Text("x"),
        Value::List(vec![Value::Int(1), Value::Int(2)]),
    )]);
    round_trip(&map, &inner);
    let tuple = Value::Tuple(vec![Value::Null, inner]);
    round_trip(
        &udt,
        &Value::Udt(vec![("a".into(), Value::Int(3)), ("b".into(), tuple)]),
    );
}

#[test]
fn a_wrong_length_is_an_error_and_a_short_udt_is_padded() {
    assert_eq!(
        Value::decode(&ColumnType::Int, Some(&[1])),
        Err(CqlError::Value { kind: "int", bytes: 1 })
    );
    let pair = ColumnType::Tuple(vec![ColumnType::Int, ColumnType::Int]);
    let short = Value::decode(&pair, Some(&[0, 0, 0, 4, 0, 0, 0, 9])).unwrap();
    assert_eq!(short, Value::Tuple(vec![Value::Int(9), Value::Null]));
}

#[test]
fn bottomless_types_are_refused() {
    let deep: Vec<u8> = [0x00, 0x20].repeat(100_000);
    assert_eq!(
        ColumnType::decode(&mut Reader::new(&deep)),
        Err(CqlError::TooDeep { limit: MAX_DEPTH })
    );
}

#[test]
fn counts_of_elements_are_held_against_their_bytes() {
    let text = || Box::new(ColumnType::Text);
    for (kind, cell) in [
        (ColumnType::List(text()), &[0x7F, 0xFF, 0xFF, 0xFF][..]),
        (ColumnType::Set(text()), &[0xFF, 0xFF, 0xFF, 0xFE]),
        (ColumnType::List(text()), &[0, 0, 0, 2, 0, 0, 0, 0]),
        (ColumnType::Map(text(), text()), &[0, 0, 0, 1, 0, 0, 0, 0]),
    ] {
        let error = Value::decode(&kind, Some(cell)).unwrap_err();
        assert!(matches!(error, CqlError::Count { .. }), "{kind:?}: {error}");
    }
}
