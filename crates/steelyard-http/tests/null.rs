//! The whole path, from order to records, over real sockets against the null server.
#![allow(clippy::unwrap_used)]

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use steelyard_http::null;
use steelyard_testing::scenarios::null_server;
use steelyard_wire::{Action, Document, Stop, Work};

use crate::{document, drive, order};

pub fn null(address: SocketAddr, listening: mpsc::Sender<SocketAddr>) -> io::Result<()> {
    null::serve(address, Duration::ZERO, |address| listening.send(address).unwrap())
}

#[test]
fn documents_come_whole_over_kept_connections_and_over_one_for_each() {
    let contacts = [null_server(null)];
    for (keep_alive, connections) in [(true, 8), (false, 0)] {
        let mut order = order(&contacts, keep_alive, 1_000, 2_000);
        if let Work::Requests(requests) = &mut order.work {
            requests.documents = [0, 1, 26, 1_000, 300_000].map(document).to_vec();
        }
        let driven = drive(&order, 2);
        let done = &driven.done;
        assert_eq!(
            (done.operations, done.errors, done.not_found),
            (2_000, 0, 0),
            "{done:?}"
        );
        assert_eq!((done.rows, done.reconnections), (0, 0));
        assert_eq!(
            (driven.connected.connections, driven.connected.server.as_str()),
            (connections, "null")
        );
        let kinds: Vec<_> = driven.intervals.iter().flat_map(|interval| &interval.counts).collect();
        assert!(kinds.iter().all(|counts| counts.operation == "get"));
        driven.nothing_is_lost();
    }
}

#[test]
fn there_is_nothing_to_fill() {
    let mut order = order(&[null_server(null)], true, 1_000, 1);
    order.action = Action::Populate;
    order.stop = Stop::default();
    let done = drive(&order, 1).done;
    assert_eq!((done.phase.as_str(), done.operations, done.errors), ("populate", 0, 0));
}

#[test]
fn what_is_not_there_is_not_found_and_what_is_of_another_length_is_invalid() {
    let mut order = order(&[null_server(null)], true, 1_000, 100);
    let of = |path: &str, bytes| Document {
        path: path.to_owned(),
        bytes,
        share: 1.0,
    };
    let mut set = |document| {
        let Work::Requests(requests) = &mut order.work else {
            panic!()
        };
        requests.documents = vec![document];
        drive(&order, 1).done
    };
    let done = set(of("/nothing", 5));
    assert_eq!(
        (done.operations, done.not_found, done.errors),
        (100, 100, 0),
        "{done:?}"
    );
    let done = set(of("/10.bin", 11));
    assert_eq!(done.errors_by_kind, [("invalid".to_owned(), 100)].into());
    assert_eq!(done.error_texts["invalid"], ["GET /10.bin: 10 bytes, not 11"]);
}

#[test]
fn a_connection_of_http_1_0_is_kept_only_on_request() {
    let server = null_server(null);
    let answered = |head: &str| {
        let mut stream = TcpStream::connect(&server).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream
            .write_all(format!("GET /3.bin {head}\r\n\r\n").as_bytes())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    for head in [
        "HTTP/1.0",
        "HTTP/1.0\r\nConnection: close",
        "HTTP/1.1\r\nConnection: close",
    ] {
        let answer = answered(head);
        assert!(answer.contains("\r\nConnection: close\r\n"), "{head}: {answer}");
        assert!(answer.ends_with("\r\n\r\nabc"), "{head}: {answer}");
    }
    // The second request ends the connection, which the first kept.
    let answer = answered("HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET /4.bin HTTP/1.0");
    let (first, second) = answer.split_once("abcHTTP").unwrap();
    assert!(first.contains("\r\nConnection: keep-alive\r\n"), "{answer}");
    assert!(second.ends_with("\r\n\r\nabcd"), "{answer}");
}
