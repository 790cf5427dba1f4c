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
    let mut asked = Conversation::new(&["10.0.0.2:9042"]);
    let expected = Delivery::WhenAllAgree {
        statement: "CREATE KEYSPACE ks".into(),
        truncates: false,
    };
    assert_eq!(asked.query("CREATE KEYSPACE ks").0, expected);
    let mut startup = Vec::new();
    request::startup(&mut startup, 0, FORWARDER, "1", None);
    asked.say(&startup);
    assert_eq!(asked.query("CREATE KEYSPACE other").0, Delivery::AtOnce);
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
        ("SELECT a FROM ks.t WHERE a = 5", code::INVALID, "only by their key"),
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

impl Conversation {
    fn with_table(text: &str) -> Self {
        let mut alone = Self::new(&[]);
        alone.query("CREATE KEYSPACE ks");
        alone.query("USE ks");
        assert_eq!(alone.query(text).0, Delivery::AtOnce);
        alone
    }

    /// The rows of an answer as numbers; other cells are left out.
    fn numbers(&mut self, text: &str) -> Vec<Vec<i64>> {
        let (_, out) = self.query(text);
        let Response::Rows(mut rows) = decode(&out) else {
            panic!("{text}: {:?}", decode(&out))
        };
        let number = |value: Value<'_>| match value {
            Value::Int(number) => Some(i64::from(number)),
            Value::BigInt(number) => Some(number),
            Value::Boolean(is) => Some(i64::from(is)),
            _ => None,
        };
        (0..rows.count)
            .map(|_| rows.row().unwrap().into_iter().filter_map(number).collect())
            .collect()
    }
}

const READINGS: &str = "CREATE TABLE readings (sensor int, room text, at bigint, value int, labels map<text, frozen<list<int>>>, \
     PRIMARY KEY ((sensor, room), at)) WITH CLUSTERING ORDER BY (at ASC)";

#[test]
fn rows_of_a_partition_are_sorted_bounded_and_deleted_together() {
    let mut node = Conversation::with_table(READINGS);
    for (at, value) in [(5, 1), (-3, 2), (300, 3)] {
        for room in ["a", "b"] {
            node.query(&format!(
                "INSERT INTO readings (sensor, room, at, value) VALUES (1, '{room}', {at}, {value})"
            ));
        }
    }
    let of = "SELECT at, value FROM readings WHERE sensor = 1 AND room = 'a'";
    assert_eq!(node.numbers(of), [[-3, 2], [5, 1], [300, 3]]);
    assert_eq!(node.numbers(&format!("{of} AND at = 5")), [[5, 1]]);
    assert_eq!(
        node.numbers(&format!("{of} AND at > -3 AND at <= 300 LIMIT 1")),
        [[5, 1]]
    );
    node.query("UPDATE readings SET value = 9 WHERE sensor = 1 AND room = 'a' AND at = 5");
    assert_eq!(node.numbers(&format!("{of} AND at >= 5 AND at < 6")), [[5, 9]]);
    node.query("DELETE FROM readings WHERE sensor = 1 AND room = 'a'");
    assert_eq!(node.numbers(of), Vec::<Vec<i64>>::new());
    assert_eq!(node.numbers("SELECT count(*) FROM readings"), [[3]]);
    for text in [
        "SELECT at FROM readings WHERE sensor = 1",
        "SELECT at FROM readings WHERE value > 3",
        "INSERT INTO readings (sensor, room) VALUES (1, 'a')",
    ] {
        assert_eq!(node.refused(text).0, code::INVALID, "{text}");
    }
    let (_, out) = node.query("SELECT kind, position, type FROM system_schema.columns");
    let Response::Rows(rows) = decode(&out) else { panic!() };
    assert_eq!(rows.count, 5);
}

#[test]
fn conditions_counters_and_pages() {
    let mut node = Conversation::with_table(READINGS);
    let insert = "INSERT INTO readings (sensor, room, at, value) VALUES (1, 'a', 5, 1) IF NOT EXISTS";
    assert_eq!([node.numbers(insert), node.numbers(insert)], [[[1]], [[0]]]);
    let update = "UPDATE readings SET value = 2 WHERE sensor = 1 AND room = 'a' AND at = 5 IF value = 1";
    assert_eq!([node.numbers(update), node.numbers(update)], [[[1]], [[0]]]);
    let delete = "DELETE FROM readings WHERE sensor = 1 AND room = 'a' AND at = 5 IF EXISTS";
    assert_eq!([node.numbers(delete), node.numbers(delete)], [[[1]], [[0]]]);

    node.query("CREATE TABLE hits (page text PRIMARY KEY, \"C0\" counter)");
    for _ in 0..3 {
        node.query("UPDATE hits SET \"C0\" = \"C0\" + 2 WHERE page = 'x'");
    }
    assert_eq!(node.numbers("SELECT \"C0\" FROM hits WHERE page = 'x'"), [[6]]);

    for at in 0..5 {
        node.query(&format!(
            "INSERT INTO readings (sensor, room, at) VALUES (2, 'a', {at})"
        ));
    }
    let mut request = Vec::new();
    request::prepare(&mut request, 1, "SELECT at FROM readings WHERE sensor = 2 AND room = ?");
    let (_, out) = node.say(&request);
    let Response::Prepared(prepared) = decode(&out) else {
        panic!()
    };
    assert_eq!(
        prepared.key_markers,
        Vec::<u16>::new(),
        "the key is not bound as a whole"
    );
    let mut state: Option<Vec<u8>> = None;
    let mut pages = Vec::new();
    loop {
        let manner = request::Manner {
            page_size: Some(2),
            paging_state: state.as_deref(),
            ..request::Manner::new(Consistency::One)
        };
        let mut request = Vec::new();
        request::execute_with(&mut request, 1, &prepared.id, &manner, 1, |values| values.bytes(b"a"));
        let (_, out) = node.say(&request);
        let Response::Rows(rows) = decode(&out) else { panic!() };
        pages.push(rows.count);
        state = rows.paging_state.map(<[u8]>::to_vec);
        if state.is_none() {
            break;
        }
    }
    assert_eq!(pages, [2, 2, 1]);
}

#[test]
fn a_batch_says_whether_its_conditions_held_and_which_statement_is_not_prepared() {
    let mut node = Conversation::with_table(READINGS);
    let mut request = Vec::new();
    let insert = "INSERT INTO readings (sensor, room, at) VALUES (?, ?, ?) IF NOT EXISTS";
    request::prepare(&mut request, 1, insert);
    let (_, out) = node.say(&request);
    let Response::Prepared(prepared) = decode(&out) else {
        panic!()
    };
    assert_eq!(prepared.key_markers, [0, 1]);
    let batch = |id: &[u8]| {
        let manner = request::Manner::new(Consistency::One);
        let mut request = Vec::new();
        request::batch(&mut request, 1, request::BatchKind::Logged, &manner, 1, |statements| {
            statements.prepared(id, 3, |values| {
                values.int(1);
                values.bytes(b"a");
                values.bytes(&7_i64.to_be_bytes());
            });
        });
        request
    };
    for applied in [&[1], &[0]] {
        let (delivery, out) = node.say(&batch(&prepared.id));
        let Response::Rows(mut rows) = decode(&out) else {
            panic!()
        };
        assert_eq!((delivery, rows.cell().unwrap()), (Delivery::Queued, Some(&applied[..])));
    }
    let (_, out) = node.say(&batch(b"unknown"));
    let Response::Error(error) = decode(&out) else { panic!() };
    assert_eq!(error.detail, Detail::Unprepared { id: b"unknown" });
}

/// A connection of a node to this one.
fn of_a_node() -> Session {
    Session {
        forwarded: true,
        ..Session::default()
    }
}

#[test]
fn one_node_at_a_time_joins_or_leaves() {
    let mut member = Conversation::new(&["10.0.0.2:9042"]);
    member.node.remember = false;
    let (_, message) = member.refused("JOINING '10.0.0.3:9042'");
    assert!(message.contains("only a node"), "a client cannot: {message}");
    member.session = of_a_node();
    for (text, words) in [
        ("SWITCH IN 5", "has not said that it joins or leaves"),
        ("JOINING '10.0.0.2:9042'", "10.0.0.2:9042 already exists"),
        ("LEAVING '10.0.0.3:9042'", "10.0.0.3:9042 is not a member"),
    ] {
        let (_, message) = member.refused(text);
        assert!(message.contains(words), "{text}: {message}");
    }
    member.query("JOINING '10.0.0.3:9042'");
    let first = std::mem::replace(&mut member.session, of_a_node());
    for text in [
        "JOINING '10.0.0.4:9042'",
        "JOINING '10.0.0.3:9042'",
        "LEAVING '10.0.0.2:9042'",
    ] {
        let (code, message) = member.refused(text);
        assert_eq!(code, code::SERVER);
        assert!(
            message.starts_with("Other bootstrapping/leaving/moving nodes detected: 10.0.0.3:9042 joins"),
            "{text}: {message}"
        );
    }
    // The connection of the first ends before it is a member: the way is free.
    member.node.forget(&first);
    assert_eq!(member.query("LEAVING '10.0.0.2:9042'").0, Delivery::AtOnce);
    member.node.now_ns = 1_000;
    member.query("SWITCH IN 2");
    member.node.forget(&member.session.clone());
    assert_eq!(member.node.switch(2_999), None);
    assert!(
        member.node.switch(3_000).is_some(),
        "what all know happens, whoever goes"
    );
    assert_eq!(member.node.ring().size(), 1);
    let (_, message) = member.refused("LEAVING '10.0.0.1:9042'");
    assert!(message.contains("no other normal nodes in the ring"), "{message}");
}

#[test]
fn a_member_that_died_is_out_of_the_ring() {
    let mut member = Conversation::new(&["10.0.0.2:9042", "10.0.0.3:9042"]);
    member.node.remember = false;
    member.session = of_a_node();
    // Said twice, by two who do not know of each other, it is still so.
    for _ in 0..2 {
        member.query("DOWN '10.0.0.3:9042'");
        member.query("SWITCH IN 0");
        let change = member.node.switch(0).unwrap();
        assert_eq!(member.node.ring().size(), 2);
        assert_eq!(change.log_line(), "InetAddress /10.0.0.3:9042 is now DOWN");
        let mut out = Vec::new();
        change.put_events(4, &["STATUS_CHANGE".to_owned(), "TOPOLOGY_CHANGE".to_owned()], &mut out);
        let Response::Event(kind, fields) = decode(&out) else {
            panic!("{:?}", decode(&out))
        };
        let status = steelyard_cql::Reader::new(fields).string().unwrap();
        assert_eq!((kind, status), ("STATUS_CHANGE", "DOWN"));
    }
}

#[test]
fn nothing_joins_rows_that_do_not_move() {
    let mut member = Conversation::new(&[]);
    member.session = of_a_node();
    let (_, message) = member.refused("JOINING '10.0.0.3:9042'");
    assert!(message.contains("do not move"), "{message}");
}

#[test]
fn a_node_says_what_made_its_schema() {
    let mut member = Conversation::new(&[]);
    for text in [
        "CREATE KEYSPACE ks",
        "USE ks",
        "CREATE TABLE t (k text PRIMARY KEY, a text)",
        "CREATE TABLE IF NOT EXISTS t (k text PRIMARY KEY, a text)",
        "TRUNCATE t",
    ] {
        member.query(text);
    }
    let mut joiner = Conversation::new(&[]);
    for (keyspace, text) in member.node.schema.clone() {
        joiner.node.repeat(&keyspace, &text).unwrap();
    }
    assert_eq!(joiner.node.catalog.version(), member.node.catalog.version());
    assert_eq!(joiner.node.schema, member.node.schema);
    assert_eq!(member.node.schema.len(), 2, "only what changed it");
}
