//! Requests in, answers out, without a socket.

#![allow(clippy::unwrap_used)] // helpers of tests

use steelyard_cql::response::Response;
use steelyard_cql::{Consistency, Frame, HEADER_LENGTH};

use super::*;

struct Conversation {
    node: Node,
    session: Session,
}

impl Conversation {
    fn new(peers: &[&str]) -> Self {
        let peers: Vec<_> = peers.iter().map(|peer| peer.parse().unwrap()).collect();
        let ring = Ring::new("10.0.0.1:9042".parse().unwrap(), &peers);
        Self {
            node: Node::new(ring, true),
            session: Session::default(),
        }
    }

    fn say(&mut self, request: &[u8]) -> (Delivery, Vec<u8>) {
        let header = Frame::header(request).unwrap().unwrap();
        let mut out = Vec::new();
        let delivery = self
            .node
            .answer(&mut self.session, &header, &request[HEADER_LENGTH..], &mut out);
        (delivery, out)
    }

    fn query(&mut self, text: &str) -> (Delivery, Vec<u8>) {
        let mut request = Vec::new();
        request::query(&mut request, 3, text, Consistency::One);
        self.say(&request)
    }

    fn refused(&mut self, text: &str) -> (i32, String) {
        let (_, out) = self.query(text);
        match decode(&out) {
            Response::Error(error) => (error.code, error.message.to_owned()),
            other => panic!("{text}: {other:?}"),
        }
    }
}

fn decode(out: &[u8]) -> Response<'_> {
    let header = Frame::header(out).unwrap().unwrap();
    assert_eq!(header.frame_length(), out.len(), "one whole frame");
    Response::decode(&header, &out[HEADER_LENGTH..]).unwrap()
}

#[test]
fn deliveries() {
    let mut alone = Conversation::new(&[]);
    for (text, delivery) in [
        ("CREATE KEYSPACE ks", Delivery::AtOnce),
        ("CREATE TABLE ks.t (k text PRIMARY KEY, a text)", Delivery::AtOnce),
        ("USE ks", Delivery::AtOnce),
        ("SELECT * FROM system.peers", Delivery::AtOnce),
        ("INSERT INTO t (k, a) VALUES ('x', 'y')", Delivery::Queued),
        ("SELECT * FROM t WHERE k = 'x'", Delivery::Queued),
        ("TRUNCATE t", Delivery::AfterTruncate),
        ("SELECT * FROM nothing", Delivery::AtOnce),
    ] {
        assert_eq!(alone.query(text).0, delivery, "{text}");
    }
}

#[test]
fn changes_are_told_to_the_others_once() {
    let mut one = Conversation::new(&["10.0.0.2:9042"]);
    let expected = Delivery::WhenAllAgree {
        statement: "CREATE KEYSPACE ks".into(),
        truncates: false,
    };
    assert_eq!(one.query("CREATE KEYSPACE ks").0, expected);
    let mut startup = Vec::new();
    request::startup(&mut startup, 0, FORWARDER, "1");
    one.say(&startup);
    assert_eq!(one.query("CREATE KEYSPACE other").0, Delivery::AtOnce);
}

#[test]
fn system_tables_are_filtered_and_projected() {
    let mut three = Conversation::new(&["10.0.0.2:9042", "10.0.0.3:9043"]);
    let count = |out: &[u8]| match decode(out) {
        Response::Rows(rows) => (
            rows.count,
            rows.columns
                .iter()
                .map(|column| column.name.clone())
                .collect::<Vec<_>>(),
        ),
        other => panic!("{other:?}"),
    };
    let (_, out) = three.query("SELECT peer, tokens FROM system.peers");
    assert_eq!(count(&out), (2, vec!["peer".into(), "tokens".into()]));
    let (_, out) = three.query("SELECT native_port FROM system.peers_v2 WHERE peer = '10.0.0.3'");
    assert_eq!(count(&out).0, 1);
    let (_, out) = three.query("SELECT key FROM system.local WHERE key = 'local'");
    assert_eq!(count(&out).0, 1);
    let (_, out) = three.query("SELECT * FROM system_schema.types");
    assert_eq!(count(&out).0, 0);
    assert_eq!(three.refused("SELECT nonsense FROM system.local").0, code::INVALID);
    assert_eq!(three.refused("SELECT * FROM system.nonsense").0, code::INVALID);
}

#[test]
fn refusals_have_code_and_words() {
    let mut alone = Conversation::new(&[]);
    alone.query("CREATE KEYSPACE ks");
    alone.query("CREATE TABLE ks.t (k text PRIMARY KEY, a int)");
    for (text, code, part) in [
        ("SELEKT", code::SYNTAX, "SELEKT"),
        ("CREATE KEYSPACE ks", code::ALREADY_EXISTS, "ks"),
        (
            "SELECT b FROM ks.t WHERE k = 'x'",
            code::INVALID,
            "Undefined column name b",
        ),
        ("SELECT a FROM ks.t WHERE a = 5", code::INVALID, "by their key only"),
        ("SELECT a FROM t", code::INVALID, "No keyspace"),
        (
            "INSERT INTO ks.t (a) VALUES (5)",
            code::INVALID,
            "key parts are missing",
        ),
        (
            "INSERT INTO ks.t (k, a) VALUES ('x', 'five')",
            code::INVALID,
            "does not fit",
        ),
        (
            "SELECT a FROM ks.t WHERE k = ?",
            code::INVALID,
            "1 markers, but 0 values",
        ),
        ("SELECT a FROM ks.t LIMIT 0", code::INVALID, "LIMIT"),
        ("USE nowhere", code::INVALID, "does not exist"),
    ] {
        let (got, message) = alone.refused(text);
        assert!(got == code && message.contains(part), "{text}: {got:#x} {message}");
    }
}

#[test]
fn unknown_versions_are_told_in_version_4() {
    let mut alone = Conversation::new(&[]);
    let (_, out) = alone.say(&[5, 0, 0, 9, 5, 0, 0, 0, 0]);
    let header = Frame::header(&out).unwrap().unwrap();
    assert_eq!((header.version, header.stream), (V4, 9));
    assert!(matches!(decode(&out), Response::Error(error) if error.code == code::PROTOCOL));
}
