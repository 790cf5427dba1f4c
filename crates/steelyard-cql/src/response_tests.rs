//! The protocol's answers, both ways, broken ones included.

use super::*;
use crate::{HEADER_LENGTH, V3, put_bytes};

/// `AUTHENTICATE`: the class that wants a password.
fn authenticate(out: &mut Vec<u8>, version: u8, stream: i16, class: &str) {
    Frame::response(out, version, stream, Opcode::Authenticate, |body| {
        put_string(body, class)
    });
}

/// `AUTH_SUCCESS`.
fn auth_success(out: &mut Vec<u8>, version: u8, stream: i16) {
    Frame::response(out, version, stream, Opcode::AuthSuccess, crate::put_null);
}

fn spec(name: &str, kind: ColumnType) -> ColumnSpec {
    ColumnSpec {
        keyspace: "k".into(),
        table: "t".into(),
        name: name.into(),
        kind,
    }
}

fn frame(wire: &[u8]) -> (Header, &[u8]) {
    let header = Frame::header(wire).unwrap().unwrap();
    assert!(header.response);
    assert_eq!(header.frame_length(), wire.len());
    (header, &wire[HEADER_LENGTH..])
}

fn decode(wire: &[u8]) -> Response<'_> {
    let (header, body) = frame(wire);
    Response::decode(&header, body).unwrap()
}

#[test]
fn rows_come_back_with_their_columns() {
    let columns = [
        spec("a", ColumnType::Text),
        spec("b", ColumnType::Set(Box::new(ColumnType::Int))),
    ];
    let mut wire = Vec::new();
    rows(&mut wire, V4, 9, Columns::Named(&columns), 2, |out| {
        Value::put_text(out, "x");
        Value::List(vec![Value::Int(4)]).put(out);
        put_bytes(out, b"y");
        crate::put_null(out);
    });
    let (header, body) = frame(&wire);
    assert_eq!(glance(&header, body).unwrap(), Glance::Rows(2));
    let Response::Rows(mut rows) = decode(&wire) else {
        panic!()
    };
    assert_eq!(
        (rows.count, rows.column_count, rows.columns.as_slice()),
        (2, 2, &columns[..])
    );
    assert_eq!(rows.cell().unwrap(), Some(&b"x"[..]));
    assert_eq!(
        Value::decode(&columns[1].kind, rows.cell().unwrap()).unwrap(),
        Value::List(vec![Value::Int(4)])
    );
    assert_eq!((rows.cell().unwrap(), rows.cell().unwrap()), (Some(&b"y"[..]), None));
    assert!(rows.cell().is_err());
}

#[test]
fn rows_are_decoded_by_their_metadata() {
    let columns = [spec("a", ColumnType::Text), spec("b", ColumnType::Int)];
    let mut wire = Vec::new();
    rows(&mut wire, V4, 9, Columns::Named(&columns), 1, |out| {
        Value::Text("x").put(out);
        Value::Null.put(out);
    });
    let Response::Rows(mut rows) = decode(&wire) else {
        panic!()
    };
    assert_eq!(rows.row().unwrap(), [Value::Text("x"), Value::Null]);
    assert!(rows.row().is_err());
}

#[test]
fn rows_without_metadata_are_counted() {
    let mut wire = Vec::new();
    rows(&mut wire, V4, 9, Columns::Counted(10), 0, |_| {});
    let (header, body) = frame(&wire);
    assert_eq!(glance(&header, body).unwrap(), Glance::Rows(0));
    let Response::Rows(rows) = decode(&wire) else { panic!() };
    assert_eq!((rows.columns.len(), rows.column_count), (0, 10));
}

#[test]
fn a_prepared_statement_comes_back_in_both_versions() {
    let markers = [spec("key", ColumnType::Text)];
    let columns = [spec("field0", ColumnType::Text)];
    for (version, key_markers) in [(V3, vec![]), (V4, vec![0])] {
        let mut wire = Vec::new();
        prepared(&mut wire, version, 1, b"0123456789abcdef", &markers, &[0], &columns);
        let Response::Prepared(back) = decode(&wire) else {
            panic!()
        };
        assert_eq!(back.id, b"0123456789abcdef");
        assert_eq!(
            (back.markers, back.columns, back.key_markers),
            (markers.to_vec(), columns.to_vec(), key_markers)
        );
    }
}

#[test]
fn errors_come_back_with_what_they_say_more() {
    let level = Consistency::One;
    let cases = [
        (code::OVERLOADED, Detail::None),
        (
            code::UNAVAILABLE,
            Detail::Unavailable {
                consistency: level,
                required: 2,
                alive: 1,
            },
        ),
        (
            code::READ_TIMEOUT,
            Detail::ReadTimeout {
                consistency: level,
                received: 0,
                required: 1,
                data_present: true,
            },
        ),
        (
            code::WRITE_TIMEOUT,
            Detail::WriteTimeout {
                consistency: level,
                received: 0,
                required: 1,
                write_type: "SIMPLE",
            },
        ),
        (code::UNPREPARED, Detail::Unprepared { id: b"id" }),
        (
            code::ALREADY_EXISTS,
            Detail::AlreadyExists {
                keyspace: "k",
                table: "",
            },
        ),
    ];
    for (code, detail) in cases {
        let mut wire = Vec::new();
        error(&mut wire, V4, 3, code, "why", &detail);
        assert_eq!(
            decode(&wire),
            Response::Error(ServerError {
                code,
                message: "why",
                detail
            })
        );
        let (header, body) = frame(&wire);
        assert_eq!(glance(&header, body).unwrap(), Glance::Error(code));
    }
}

#[test]
fn the_other_answers_come_back() {
    let mut wire = Vec::new();
    ready(&mut wire, V4, 0);
    assert_eq!(decode(&wire), Response::Ready);
    wire.clear();
    supported(&mut wire, V3, 0, &[("CQL_VERSION", &["3.4.5"]), ("COMPRESSION", &[])]);
    assert_eq!(
        decode(&wire),
        Response::Supported(vec![("CQL_VERSION", vec!["3.4.5"]), ("COMPRESSION", vec![])])
    );
    wire.clear();
    authenticate(&mut wire, V4, 0, "a.b.PasswordAuthenticator");
    assert_eq!(decode(&wire), Response::Authenticate("a.b.PasswordAuthenticator"));
    wire.clear();
    auth_success(&mut wire, V4, 0);
    assert_eq!(decode(&wire), Response::AuthSuccess);
    wire.clear();
    void(&mut wire, V4, 0);
    assert_eq!(decode(&wire), Response::Void);
    wire.clear();
    set_keyspace(&mut wire, V4, 0, "ycsb");
    assert_eq!(decode(&wire), Response::SetKeyspace("ycsb"));
    wire.clear();
    schema_change(&mut wire, V4, 0, "CREATED", "ycsb", Some("usertable"));
    assert_eq!(decode(&wire), Response::SchemaChange);
}

#[test]
fn warnings_before_the_body_are_passed_over() {
    let mut body = Vec::new();
    put_string_list(&mut body, &["careful"]);
    body.extend_from_slice(&KIND_VOID.to_be_bytes());
    let header = Header {
        version: 4,
        response: true,
        flags: FLAG_WARNING,
        stream: 0,
        opcode: Opcode::Result as u8,
        body_length: 0,
    };
    assert_eq!(Response::decode(&header, &body).unwrap(), Response::Void);
    assert_eq!(glance(&header, &body).unwrap(), Glance::Void);
}

/// Cuts and changed bytes of real frames are errors or other answers, never a panic and never endless.
#[test]
fn broken_frames_are_no_danger() {
    let columns = [
        spec(
            "a",
            ColumnType::Map(Box::new(ColumnType::Text), Box::new(ColumnType::Decimal)),
        ),
        spec("b", ColumnType::Tuple(vec![ColumnType::Duration, ColumnType::VarInt])),
    ];
    let mut frames = vec![Vec::new(), Vec::new(), Vec::new()];
    rows(&mut frames[0], V4, 1, Columns::Named(&columns), 1, |out| {
        Value::Map(vec![(Value::Text("k"), Value::Decimal { unscaled: -5, scale: 1 })]).put(out);
        Value::Tuple(vec![
            Value::Duration {
                months: 1,
                days: 2,
                nanoseconds: 3,
            },
            Value::VarInt(4),
        ])
        .put(out);
    });
    prepared(&mut frames[1], V4, 1, b"id", &columns, &[0], &columns);
    error(
        &mut frames[2],
        V4,
        1,
        code::UNPREPARED,
        "why",
        &Detail::Unprepared { id: b"id" },
    );
    for frame in &frames {
        for at in 0..frame.len() {
            for change in [0x00, 0x01, 0x7F, 0x80, 0xFF] {
                let mut broken = frame.clone();
                broken[at] ^= change;
                let Ok(Some(header)) = Frame::header(&broken) else {
                    continue;
                };
                for end in [broken.len(), HEADER_LENGTH + (at * 7) % (broken.len() - HEADER_LENGTH)] {
                    let body = &broken[HEADER_LENGTH..end];
                    let _ = glance(&header, body);
                    let _ = crate::request::Request::decode(&header, body);
                    if let Ok(Response::Rows(mut rows)) = Response::decode(&header, body) {
                        while !rows.columns.is_empty() && rows.row().is_ok() {}
                    }
                }
            }
        }
    }
}

/// A result with rows: flags, columns, whatever describes them, the number of rows, cells.
fn rows_of(flags: i32, columns: i32, described: &[u8], count: i32, cells: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    result(&mut wire, V4, 1, KIND_ROWS, |body| {
        body.extend_from_slice(&flags.to_be_bytes());
        body.extend_from_slice(&columns.to_be_bytes());
        body.extend_from_slice(described);
        body.extend_from_slice(&count.to_be_bytes());
        body.extend_from_slice(cells);
    });
    wire
}

fn refused(wire: &[u8], what: &str) {
    let (header, body) = frame(wire);
    for error in [
        glance(&header, body).unwrap_err(),
        Response::decode(&header, body).unwrap_err(),
    ] {
        let named = match error {
            CqlError::Count { what, .. } | CqlError::TooMany { what, .. } => what,
            other => panic!("{other}"),
        };
        assert_eq!(named, what, "{error}");
    }
}

#[test]
fn counts_are_held_against_the_bytes_that_are_left() {
    const NULLS: [u8; 8] = [0xFF; 8];
    // Two tables' names once for all; then names without a letter, of type int.
    let global: Vec<u8> = [0, 1, b'k', 0, 1, b't']
        .into_iter()
        .chain([0, 0, 0, 9].repeat(2))
        .collect();
    let good = rows_of(ROWS_GLOBAL_TABLE, 2, &global, 1, &NULLS);
    let (header, body) = frame(&good);
    assert_eq!(glance(&header, body), Ok(Glance::Rows(1)));

    refused(&rows_of(ROWS_NO_METADATA, 0, &[], i32::MAX, &[]), "rows");
    refused(&rows_of(ROWS_NO_METADATA, 0, &[], 1, &NULLS), "rows");
    refused(&rows_of(ROWS_NO_METADATA, 1, &[], -1, &NULLS), "rows");
    refused(&rows_of(ROWS_NO_METADATA, 2, &[], 2, &NULLS), "rows");
    refused(&rows_of(ROWS_NO_METADATA, -5, &[], 0, &[]), "columns");
    refused(&rows_of(ROWS_NO_METADATA, 65_536, &[], 0, &[]), "columns");
    refused(&rows_of(ROWS_GLOBAL_TABLE, 60_000, &global, 0, &[]), "columns");
    refused(&rows_of(ROWS_GLOBAL_TABLE, 2, &global, 2, &NULLS), "rows");
    // A tuple that says more members than there are bytes, and a type with more fields.
    refused(
        &rows_of(0, 1, &[0, 0, 0, 0, 0, 0, 0, 0x31, 0xFF, 0xFF], 0, &[]),
        "members of a tuple",
    );
    let fields = [0, 0, 0, 0, 0, 0, 0, 0x30, 0, 0, 0, 0, 0xFF, 0xFF];
    refused(&rows_of(0, 1, &fields, 0, &[]), "fields of a type");
}

#[test]
fn a_description_has_a_bounded_number_of_types() {
    // Tuples within a tuple: few bytes each.
    let wide = [&[0x00, 0x31, 0xEA, 0x60][..], &[0, 9].repeat(60_000)].concat();
    let described = [&[0, 0, 0, 0, 0, 0][..], &wide].concat().repeat(5);
    refused(&rows_of(0, 5, &described, 0, &[]), "types of columns");
}

#[test]
fn names_that_are_said_once_are_kept_once() {
    let column = [0, 0, 0, 9];
    let described = [&[0, 1, b'k', 0, 1, b't'][..], &column.repeat(3)].concat();
    let wire = rows_of(ROWS_GLOBAL_TABLE, 3, &described, 0, &[]);
    let Response::Rows(rows) = decode(&wire) else { panic!() };
    assert!(Arc::ptr_eq(&rows.columns[0].keyspace, &rows.columns[2].keyspace));
}

#[test]
fn a_row_is_not_more_than_its_bytes_and_what_may_be_missing() {
    // 300 lists' elements of 4 bytes, each of 300 members that are all missing.
    let tuple = ColumnType::Tuple(vec![ColumnType::Int; 300]);
    let columns = [spec("a", ColumnType::List(Box::new(tuple)))];
    let mut wire = Vec::new();
    rows(&mut wire, V4, 1, Columns::Named(&columns), 1, |out| {
        put_bytes(out, &[&[0, 0, 1, 44][..], &[0; 1_200]].concat());
    });
    let Response::Rows(mut rows) = decode(&wire) else {
        panic!()
    };
    assert!(matches!(
        rows.row(),
        Err(CqlError::TooMany {
            limit: SPARE_VALUES,
            ..
        })
    ));
}

#[test]
fn counts_of_a_prepared_statement_are_held_too() {
    let prepared = |markers: i32, key: i32, columns: i32| {
        let mut wire = Vec::new();
        result(&mut wire, V4, 1, KIND_PREPARED, |body| {
            put_short_bytes(body, b"id");
            for number in [0, markers, key, ROWS_NO_METADATA, columns] {
                body.extend_from_slice(&number.to_be_bytes());
            }
        });
        let (header, body) = frame(&wire);
        Response::decode(&header, body).map(|_| ())
    };
    prepared(0, 0, 7).unwrap();
    for (markers, key, columns) in [(-1, 0, 0), (9_000, 0, 0), (0, -1, 0), (0, i32::MAX, 0), (0, 0, -1)] {
        let error = prepared(markers, key, columns).unwrap_err();
        assert!(matches!(error, CqlError::Count { .. }), "{error}");
    }
}
