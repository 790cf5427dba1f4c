//! Servers that answer what is no answer: every operation ends as an error, nothing panics, nothing runs away.
#![allow(clippy::unwrap_used)]

use std::net::TcpListener;
use std::thread;

use steelyard_protocol::ConnectError;
use steelyard_wire::Schedule;

use crate::server::{greet, start};
use crate::{drive, order, refused};

#[test]
fn answers_out_of_nothing_end_as_errors() {
    let endless = b"x".repeat(100_000);
    let nested = b"*1\r\n".repeat(1_000);
    let cases: [&[u8]; 12] = [
        b"\x00\xff\xfe garbage",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"$9999999999999\r\n",
        b"$-7\r\n",
        b"*4194305\r\n",
        b"*-2\r\n",
        b"$3\r\nabcdef\r\n",
        b":1\r\n",
        b"+OK\r\n+OK\r\n",
        b"-MOVED 5 nowhere\r\n",
        &[b"+".as_slice(), &endless].concat(),
        &nested,
    ];
    for bytes in cases.map(<[u8]>::to_vec) {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(30)]).into_owned();
        let server = start(move |parts, out| {
            if !greet(parts, out) {
                out.extend_from_slice(&bytes);
            }
            true
        });
        let mut order = order(&[server.contact()], 10);
        order.schedule = Schedule::Closed { threads: 2 };
        order.timeout_ms = 300;
        let driven = drive(&order, 1);
        assert_eq!(
            (driven.done.operations, driven.done.errors),
            (0, 10),
            "{shown}: {:?}",
            driven.done
        );
        driven.nothing_is_lost();
    }
}

/// Half an answer, and then silence, or the end of the connection.
#[test]
fn truncated_answers_are_time_outs_or_lost_connections() {
    for (goes_on, kind) in [(true, "timeout"), (false, "connection")] {
        let server = start(move |parts, out| {
            if greet(parts, out) {
                return true;
            }
            out.extend_from_slice(b"*2\r\n$5\r\nfie");
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
fn a_server_that_speaks_something_else_is_no_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        use std::io::Write;
        for stream in listener.incoming() {
            let _ = stream.unwrap().write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
        }
    });
    let error = refused(&order(&[address], 1));
    assert!(matches!(error, ConnectError::Protocol { .. }), "{error}");
    for slots in [
        "*0\r\n",
        "*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n$1\r\nh\r\n:1\r\n",
        ":1\r\n",
    ] {
        let server = start(move |parts, out| {
            if parts[0] == b"CLUSTER" {
                out.extend_from_slice(slots.as_bytes());
                return true;
            }
            greet(parts, out)
        });
        let error = refused(&order(&[server.contact()], 1));
        let expected = matches!(error, ConnectError::Protocol { .. } | ConnectError::Refused { .. });
        assert!(expected, "{error}");
    }
}
