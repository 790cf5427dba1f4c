//! Servers that answer what is no answer: every operation ends as an error, nothing panics, nothing runs away.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use steelyard_protocol::ConnectError;
use steelyard_wire::{Schedule, Tls, Verify};

use crate::server::{done, start, start_at};
use crate::{drive, order, refused};

#[test]
fn answers_out_of_nothing_end_as_errors() {
    let cases: [&[u8]; 9] = [
        b"\x00\xff\xfe garbage",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"D\0\0\0\x03",
        b"D\xff\xff\xff\xff",
        b"C\0\0\0\x0dUPDATE 1\0",
        b"Z\0\0\0\x05I",
        b"1\0\0\0\x04",
        b"C\0\0\0\x04",
        b"G\0\0\0\x07\0\0\0",
    ];
    for bytes in cases {
        let server = start(move |_, out| {
            out.extend_from_slice(bytes);
            true
        });
        let mut order = order(&[server.contact()], 10);
        order.schedule = Schedule::Closed { threads: 2 };
        order.timeout_ms = 300;
        let driven = drive(&order, 1);
        let done = &driven.done;
        // A read whose command has ended without a row is one of a record that is not there.
        assert_eq!(done.operations - done.not_found, 0, "{bytes:?}: {done:?}");
        driven.nothing_is_lost();
    }
}

/// Half an answer, and then silence, or the end of the connection.
#[test]
fn truncated_answers_are_time_outs_or_lost_connections() {
    for (goes_on, kind) in [(true, "timeout"), (false, "connection")] {
        let server = start(move |_, out| {
            out.extend_from_slice(b"D\0\0\x10\0\0\x01");
            goes_on
        });
        let mut order = order(&[server.contact()], 4);
        order.schedule = Schedule::Closed { threads: 1 };
        order.timeout_ms = 150;
        let done = drive(&order, 1).done;
        assert_eq!(done.errors_by_kind.keys().collect::<Vec<_>>(), [kind], "{done:?}");
    }
}

#[test]
fn a_server_that_does_not_let_in_is_refused_in_words() {
    let cases: [(&[u8], &str); 6] = [
        (b"SSH-2.0-OpenSSH_9.2\r\n\0R", "does not speak PostgreSQL's protocol"),
        (b"T\0\0\0\x06\0R", "does not speak PostgreSQL's protocol"),
        (b"R\0\0\0\x0c\0\0\0\x05salt\0R", "than SCRAM-SHA-256"),
        (
            b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0\0R",
            "requires a password of steelyard",
        ),
        (
            b"E\0\0\0\x13SFATAL\0C3D000\0\0\0R",
            "refused: 3D000 invalid_catalog_name: ",
        ),
        (b"E\0\0\0\x0cC57P03\0\0\0R", "57P03 cannot_connect_now"),
    ];
    for (login, words) in cases {
        let address = "127.0.0.1:0".parse().unwrap();
        let server = start_at(address, login, Arc::default(), |name, out| {
            done(name, out);
            true
        });
        let error = refused(&order(&[server.contact()], 1));
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.is_absence(), words.contains("57P03"), "{error}");
    }
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_wanted() {
    let address = "127.0.0.1:0".parse().unwrap();
    let server = start_at(address, b"N\0R", Arc::default(), |_, _| true);
    let mut order = order(&[server.contact()], 1);
    order.tls = Some(Tls {
        verify: Verify::None,
        ..Tls::default()
    });
    let error = refused(&order);
    assert!(error.to_string().ends_with("answers without TLS"), "{error}");
    assert!(matches!(error, ConnectError::Refused { .. }));
}
