//! Servers that answer what is no answer: every operation ends as an error, nothing panics, nothing runs away.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::net::TcpListener;
use std::thread;

use steelyard_http::connect;
use steelyard_protocol::ConnectError;
use steelyard_wire::{Schedule, Target, Tls};

use crate::server::start;
use crate::{drive, order, refused};

#[test]
fn answers_out_of_nothing_end_as_errors() {
    let endless = ["HTTP/1.1 200 OK\r\nX: ", &"x".repeat(100_000)].concat();
    let cases: [&[u8]; 12] = [
        b"\x00\xff\xfe garbage",
        b"+OK\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999999\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n",
        endless.as_bytes(),
    ];
    for bytes in cases.map(<[u8]>::to_vec) {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        let server = start(move |_, out| {
            out.extend_from_slice(&bytes);
            true
        });
        for keep_alive in [true, false] {
            let mut order = order(&[server.contact()], keep_alive, 3, 10);
            order.schedule = Schedule::Closed { threads: 2 };
            order.timeout_ms = 100;
            let driven = drive(&order, 1);
            let done = &driven.done;
            assert_eq!((done.operations, done.errors), (0, 10), "{shown}: {done:?}");
            driven.nothing_is_lost();
        }
    }
}

#[test]
fn what_is_no_answer_is_said() {
    let server = start(|_, out| {
        out.extend_from_slice(b"+OK\r\n");
        true
    });
    let done = drive(&order(&[server.contact()], true, 3, 10), 1).done;
    assert_eq!(done.errors_by_kind, [("connection".to_owned(), 10)].into());
    let said = format!(
        "{} does not speak HTTP/1.1: no answer begins with those bytes",
        server.contact()
    );
    assert_eq!(done.error_texts["connection"], [said]);
}

/// Half an answer, and then silence, or the end of the connection.
#[test]
fn truncated_answers_are_time_outs_or_lost_connections() {
    for (goes_on, kind) in [(true, "timeout"), (false, "connection")] {
        for keep_alive in [true, false] {
            let server = start(move |_, out| {
                out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab");
                goes_on
            });
            let mut order = order(&[server.contact()], keep_alive, 3, 4);
            order.schedule = Schedule::Closed { threads: 1 };
            order.timeout_ms = 150;
            let done = drive(&order, 1).done;
            assert_eq!(done.errors_by_kind.keys().collect::<Vec<_>>(), [kind], "{done:?}");
            if !goes_on {
                assert!(done.error_texts[kind][0].ends_with("closed the connection within an answer"));
            }
        }
    }
}

#[test]
fn a_server_that_speaks_something_else_is_no_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.unwrap().write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
        }
    });
    let error = refused(&order(&[address], true, 3, 1));
    assert!(matches!(error, ConnectError::Protocol { .. }), "{error}");
}

#[test]
fn what_is_not_possible_is_refused_in_words() {
    let server = start(|_, _| true);
    let contacts = [server.contact()];
    let said = |change: &dyn Fn(&mut steelyard_wire::Order)| {
        let mut order = order(&contacts, true, 3, 1);
        change(&mut order);
        refused(&order).to_string()
    };
    assert!(said(&|order| order.tls = Some(Tls::default())).contains("tls: not possible over http"));
    assert!(said(&|order| order.connections_per_node = 2).contains("each place in flight has its connection"));
    assert!(said(&|order| order.contacts.clear()).contains("contacts: read 0"));
    let ycsb: steelyard_wire::Order =
        serde_json::from_str(include_str!("../../../schema/resp-order.example.json")).unwrap();
    assert!(said(&|order| order.work = ycsb.work.clone()).contains("only requests for documents are possible"));
    assert!(said(&|order| order.target = ycsb.target.clone()).contains("choose http or etcd"));
    let etcd = Target::Etcd(steelyard_wire::Etcd::default());
    assert!(said(&|order| order.target = etcd.clone()).contains("requests for documents are not possible over etcd"));
    let mut away = order(&["127.0.0.1:1".to_owned()], true, 3, 1);
    assert_eq!(refused(&away).to_string(), "127.0.0.1:1 refused the connection");
    away.contacts.push("127.0.0.1:2".to_owned());
    away.some_contacts = true;
    assert!(
        refused(&away)
            .to_string()
            .starts_with("no contact answers: 127.0.0.1:1")
    );
    away.contacts[1] = server.contact();
    let (_, connected) = connect(&away, &[1]).unwrap();
    assert_eq!((connected.nodes, connected.absent.len()), (contacts.to_vec(), 1));
    assert_eq!(connected.server, "hand-written");
}
