//! Programs over real sockets, against a server that remembers rows: what arrives, and what is made of the answers.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};
use steelyard_client::connect::connect;
use steelyard_client::error::ConnectError;
use steelyard_cql::request::{Parameters, Request, Statement};
use steelyard_cql::response::{self, Columns, Detail};
use steelyard_cql::{ColumnType, Consistency, Frame, Header, Value, code, put_bytes};
use steelyard_load::clock::Clock;
use steelyard_load::drive;
use steelyard_wire::{Done, Interval, Order, Record};
use steelyard_workload::murmur3;

use crate::server::{Listening, column, start};

/// Rows of a scan.
const SCANNED: i32 = 10;

/// One request that came.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    /// Statements, as their texts.
    statements: Vec<String>,
    consistency: Consistency,
    serial: Option<Consistency>,
    page_size: Option<i32>,
    paged_on: bool,
    values: Vec<Vec<u8>>,
}

#[derive(Default)]
struct State {
    /// First two values of what was written to the third.
    rows: HashMap<(Vec<u8>, Vec<u8>), Vec<u8>>,
    seen: Vec<Seen>,
    /// Every n-th row that is read is corrupted.
    breaks_each: Option<usize>,
    read: usize,
    /// A statement that is forgotten once.
    forgets: Option<&'static str>,
    prepared: usize,
    /// Tokens of this node and of its peer.
    tokens: [i64; 2],
}

struct Server {
    address: String,
    _listening: Listening,
    state: Arc<Mutex<State>>,
}

impl Server {
    fn start(state: State) -> Self {
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let listening = start(usize::MAX, move |_, header, request, out| {
            answer(&mut shared.lock().unwrap(), header, request, out);
            true
        });
        Self {
            address: listening.address.to_string(),
            _listening: listening,
            state,
        }
    }

    fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }
}

fn answer(state: &mut State, header: &Header, request: &Request<'_>, out: &mut Vec<u8>) {
    let (version, stream) = (header.version, header.stream);
    match request {
        Request::Options => response::supported(out, version, stream, &[("CQL_VERSION", &["3.4.5"])]),
        Request::Startup(_) | Request::Register(_) => response::ready(out, version, stream),
        Request::Prepare { statement } => {
            state.prepared += 1;
            response::prepared(out, version, stream, statement.as_bytes(), &[], &[], &[]);
        }
        Request::Query { statement, .. } => system_table(state.tokens, statement, header, out),
        Request::Execute { id, parameters } => {
            if forgotten(state, id, header, out) {
                return;
            }
            let values = values(&mut { parameters.values });
            state.seen.push(Seen {
                statements: vec![text(id)],
                consistency: parameters.consistency,
                serial: parameters.serial_consistency,
                page_size: parameters.page_size,
                paged_on: parameters.paging_state.is_some(),
                values: values.clone(),
            });
            execute(state, id, &values, parameters, header, out);
        }
        Request::Batch {
            statements,
            consistency,
            serial_consistency,
        } => {
            let mut seen = Seen {
                statements: Vec::new(),
                consistency: *consistency,
                serial: *serial_consistency,
                page_size: None,
                paged_on: false,
                values: Vec::new(),
            };
            for statement in statements {
                let Statement::Prepared { id, values: bound } = statement else {
                    panic!()
                };
                if forgotten(state, id, header, out) {
                    return;
                }
                let values = values(&mut { *bound });
                state
                    .rows
                    .insert((values[0].clone(), values[1].clone()), values[2].clone());
                seen.statements.push(text(id));
                seen.values.extend(values);
            }
            state.seen.push(seen);
            response::void(out, version, stream);
        }
        Request::AuthResponse(_) => panic!(),
    }
}

fn text(id: &[u8]) -> String {
    String::from_utf8(id.to_vec()).unwrap()
}

fn values<'a>(bound: &mut impl Iterator<Item = Option<&'a [u8]>>) -> Vec<Vec<u8>> {
    bound.map(|value| value.unwrap().to_vec()).collect()
}

fn forgotten(state: &mut State, id: &[u8], header: &Header, out: &mut Vec<u8>) -> bool {
    let forgotten = state.forgets.is_some_and(|text| text.as_bytes() == id);
    if forgotten {
        state.forgets = None;
        let detail = Detail::Unprepared { id };
        response::error(out, header.version, header.stream, code::UNPREPARED, "gone", &detail);
    }
    forgotten
}

fn execute(
    state: &mut State,
    id: &[u8],
    values: &[Vec<u8>],
    parameters: &Parameters<'_>,
    header: &Header,
    out: &mut Vec<u8>,
) {
    let (version, stream) = (header.version, header.stream);
    let key = || (values[0].clone(), values[1].clone());
    match id {
        b"PUT" => {
            state.rows.insert(key(), values[2].clone());
            response::void(out, version, stream);
        }
        b"PUT IF" => {
            let applied = !state.rows.contains_key(&key());
            state.rows.entry(key()).or_insert_with(|| values[2].clone());
            let columns = [column("[applied]", ColumnType::Boolean)];
            response::rows(out, version, stream, Columns::Named(&columns), 1, |cells| {
                Value::Boolean(applied).put(cells);
            });
        }
        b"GET" => {
            state.read += 1;
            let row = state.rows.get(&key()).map(|row| {
                let mut row = row.clone();
                if state.breaks_each.is_some_and(|each| state.read % each == 0) {
                    row[17] ^= 1;
                }
                row
            });
            response::rows(
                out,
                version,
                stream,
                Columns::Counted(1),
                u32::from(row.is_some()),
                |cells| {
                    row.iter().for_each(|row| put_bytes(cells, row));
                },
            );
        }
        b"SCAN" => {
            let from = parameters
                .paging_state
                .map_or(0, |state| i32::from_be_bytes(state.try_into().unwrap()));
            let to = (from + parameters.page_size.unwrap_or(SCANNED)).min(SCANNED);
            page(out, header, (from, to));
        }
        // The first page has no row, but a next one.
        b"LATE" => {
            let to = parameters.paging_state.map_or(0, |_| SCANNED);
            page(out, header, (0, to));
        }
        other => panic!("{}", text(other)),
    }
}

/// Rows with the place of the next page, if there is one.
fn page(out: &mut Vec<u8>, header: &Header, (from, to): (i32, i32)) {
    let more = to < SCANNED;
    Frame::response(
        out,
        header.version,
        header.stream,
        steelyard_cql::Opcode::Result,
        |body| {
            // Rows; no metadata, and perhaps more pages; one column.
            body.extend_from_slice(&2_i32.to_be_bytes());
            body.extend_from_slice(&(4_i32 | if more { 2 } else { 0 }).to_be_bytes());
            body.extend_from_slice(&1_i32.to_be_bytes());
            if more {
                put_bytes(body, &to.to_be_bytes());
            }
            body.extend_from_slice(&(to - from).to_be_bytes());
            (from..to).for_each(|row| put_bytes(body, &row.to_be_bytes()));
        },
    );
}

fn system_table(tokens: [i64; 2], statement: &str, header: &Header, out: &mut Vec<u8>) {
    let text = || Box::new(ColumnType::Text);
    let columns = [
        column("release_version", ColumnType::Text),
        column("host_id", ColumnType::Uuid),
        column("data_center", ColumnType::Text),
        column("rack", ColumnType::Text),
        column("rpc_address", ColumnType::Inet),
        column("tokens", ColumnType::Set(text())),
        column("replication", ColumnType::Map(text(), text())),
    ];
    let token = tokens[usize::from(statement.contains("peers"))];
    let id = u128::from_be_bytes([7; 16]) ^ (token as u64 as u128);
    response::rows(
        out,
        header.version,
        header.stream,
        Columns::Named(&columns),
        1,
        |cells| {
            Value::Text("5.0.5").put(cells);
            Value::Uuid(id.to_be_bytes()).put(cells);
            Value::Text("dc1").put(cells);
            Value::Text("rack1").put(cells);
            Value::Inet("127.0.0.1".parse().unwrap()).put(cells);
            Value::List(vec![Value::Text(&token.to_string())]).put(cells);
            Value::Map(vec![(Value::Text("class"), Value::Text("SimpleStrategy"))]).put(cells);
        },
    );
}

fn order(servers: &[&Server], operations: Json, count: u64) -> Order {
    let place = json!({"type": "int", "make": {"kind": "key", "divide": 10}});
    let row = json!({"type": "bigint", "make": {"kind": "key", "modulo": 10}});
    let size = json!({"name": "uniform", "min": 20, "max": 60});
    let note = json!({"type": "text", "make": {"kind": "random", "salt": 1, "size": size, "versioned": true}});
    let statement = |name: &str, cql: &str, values: Json, more: Json| {
        let mut object = json!({"name": name, "cql": cql, "values": values, "partition_key": [0], "writes": true});
        object
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        object
    };
    let both = json!([place, row]);
    let all = json!([place, row, note]);
    let read = json!({"writes": false, "wants_row": true, "expect": [note]});
    let late = json!({"writes": false, "page_rows": 4, "max_pages": 100, "expect": [note]});
    serde_json::from_value(json!({
        "format": 1, "action": "load", "seed": 3,
        "contacts": servers.iter().map(|server| server.address.as_str()).collect::<Vec<_>>(),
        "work": {
            "kind": "program", "records": 1000, "populate_stride": 10, "validate_fraction": 1.0,
            "statements": [
                statement("put", "PUT", all.clone(), json!({})),
                statement("reserve", "PUT IF", all.clone(), json!({"conditional": true, "consistency": "QUORUM"})),
                statement("get", "GET", both.clone(), read),
                statement("scan", "SCAN", both.clone(), json!({"writes": false, "page_rows": 4, "max_pages": 100})),
                statement("late", "LATE", both.clone(), late),
                statement("peek", "SCAN", both.clone(), json!({"writes": false, "page_rows": 3, "max_pages": 2})),
            ],
            "populate": [{"kind": "batch", "statements": ["put"], "mode": "unlogged", "next_key": true,
                          "repeat": {"name": "fixed", "value": 10}}],
            "operations": operations,
        },
        "schedule": {"kind": "closed", "threads": 4}, "stop": {"operations": count, "duration_s": null},
        "target": {
            "protocol": "cql", "keyspace": "k", "routing": "token",
            "read_consistency": "LOCAL_ONE", "write_consistency": "LOCAL_QUORUM", "serial_consistency": "LOCAL_SERIAL",
        },
        "timeout_ms": 5000, "interval_s": 1.0,
    }))
    .unwrap()
}

fn operation(name: &str, keys: Json, steps: Json) -> Json {
    json!({"name": name, "weight": 1, "keys": keys, "steps": steps})
}

fn execute_step(statement: &str) -> Json {
    json!({"kind": "execute", "statement": statement})
}

fn existing() -> Json {
    json!({"kind": "existing", "distribution": "uniform"})
}

struct Records {
    intervals: Vec<Interval>,
    done: Done,
}

impl Records {
    /// Operations, or steps, by outcome.
    fn outcomes(&self, name: &str, measure: &str) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for counts in self.intervals.iter().flat_map(|interval| &interval.counts) {
            if counts.operation == name && counts.measure == measure {
                let count: u64 = counts.buckets.iter().map(|(_, _, count)| count).sum();
                *sums.entry(counts.outcome.clone()).or_default() += count;
            }
        }
        sums
    }
}

fn drive_order(order: &Order) -> Records {
    let (clients, _) = connect(order, &drive::slots(order, 1).unwrap()).unwrap();
    let mut out = Vec::new();
    drive::run(clients, order, Clock::start(), &AtomicBool::new(false), &mut out).unwrap();
    let (mut intervals, mut dones) = (Vec::new(), Vec::new());
    for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line).unwrap() {
            Record::Interval(interval) => intervals.push(interval),
            Record::Done(done) => dones.push(done),
            other => panic!("{other:?}"),
        }
    }
    Records {
        intervals,
        done: dones.pop().unwrap(),
    }
}

fn filled(state: State) -> Server {
    let server = Server::start(state);
    let mut order = order(&[&server], json!([]), 1000);
    order.action = steelyard_wire::Action::Populate;
    let records = drive_order(&order);
    assert_eq!((records.done.operations, records.done.errors), (100, 0));
    assert_eq!(
        records.outcomes("populate", "response"),
        [("ok".to_owned(), 100)].into()
    );
    let mut state = server.state.lock().unwrap();
    assert_eq!(state.rows.len(), 1000);
    assert!(
        state
            .seen
            .iter()
            .all(|seen| seen.statements == ["PUT"; 10] && seen.serial.is_none())
    );
    state.seen.clear();
    drop(state);
    server
}

fn ok(count: u64) -> BTreeMap<String, u64> {
    [("ok".to_owned(), count)].into()
}

#[test]
fn what_was_filled_and_written_is_read_and_valid() {
    let server = filled(State::default());
    let steps = json!([execute_step("get"), execute_step("put")]);
    let operations = json!([
        operation("read", existing(), json!([execute_step("get")])),
        operation("change", existing(), steps),
    ]);
    let records = drive_order(&order(&[&server], operations, 1000));
    assert_eq!(
        (records.done.operations, records.done.errors, records.done.not_found),
        (1000, 0, 0)
    );
    let (reads, changes) = (
        records.outcomes("read", "response"),
        records.outcomes("change", "response"),
    );
    assert_eq!(reads["ok"] + changes["ok"], 1000);
    assert_eq!(records.outcomes("get", "part"), changes);
    assert_eq!(records.outcomes("put", "part"), changes);
    assert!(records.outcomes("get", "response").is_empty());
    assert_eq!(records.done.rows, 1000, "each of both kinds reads one row");
    let seen = server.seen();
    assert!(seen.iter().all(|seen| match seen.statements[0].as_str() {
        "GET" => seen.consistency == Consistency::LocalOne,
        _ => seen.consistency == Consistency::LocalQuorum,
    }));
}

#[test]
fn a_row_that_holds_something_else_is_invalid() {
    let server = filled(State {
        breaks_each: Some(10),
        ..State::default()
    });
    let read = json!([operation("read", existing(), json!([execute_step("get")]))]);
    let mut order = order(&[&server], read, 1000);
    let records = drive_order(&order);
    assert_eq!((records.done.operations, records.done.errors), (900, 100));
    assert_eq!(records.done.errors_by_kind, [("invalid".to_owned(), 100)].into());
    if let steelyard_wire::Work::Program(program) = &mut order.work {
        program.validate_fraction = 0.3;
    }
    let errors = drive_order(&order).done.errors;
    assert!((5..60).contains(&errors), "{errors} of about 30");
}

#[test]
fn rows_that_are_not_there_are_the_systems_fault_only_where_the_fill_has_written_them() {
    let server = filled(State::default());
    server.state.lock().unwrap().rows.clear();
    let far = json!({"kind": "drawn", "number": {"name": "uniform", "min": 1000, "max": 1999}});
    for (keys, missing) in [(existing(), 500), (far, 0)] {
        let read = json!([operation("read", keys, json!([execute_step("get")]))]);
        let records = drive_order(&order(&[&server], read, 500));
        assert_eq!((records.done.errors, records.done.not_found), (0, missing));
        assert_eq!(
            records.outcomes("read", "response"),
            [("not-found".to_owned(), 500)].into()
        );
    }
}

#[test]
fn conditions_that_do_not_hold_are_no_errors_and_serial_consistency_goes_with_them_alone() {
    let server = filled(State::default());
    let operations = json!([operation(
        "reserve",
        json!({"kind": "drawn", "number": {"name": "sequence", "min": 990, "max": 1019}}),
        json!([execute_step("reserve")])
    ),]);
    let records = drive_order(&order(&[&server], operations, 30));
    assert_eq!((records.done.operations, records.done.errors), (30, 0));
    let outcomes = records.outcomes("reserve", "response");
    assert_eq!(outcomes, [("not-applied".to_owned(), 10), ("ok".to_owned(), 20)].into());
    let asked = (Consistency::Quorum, Some(Consistency::LocalSerial));
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| (seen.consistency, seen.serial) == asked)
    );
}

#[test]
fn pages_are_one_operation() {
    let server = filled(State::default());
    let scan = |statement| json!([operation("scan", existing(), json!([execute_step(statement)]))]);
    let records = drive_order(&order(&[&server], scan("scan"), 50));
    assert_eq!((records.outcomes("scan", "response"), records.done.rows), (ok(50), 500));
    let seen = server.seen();
    assert_eq!(seen.len(), 150, "4, 4 and 2 rows");
    assert_eq!(seen.iter().filter(|seen| seen.paged_on).count(), 100);
    assert!(seen.iter().all(|seen| seen.page_size == Some(4)));
    let records = drive_order(&order(&[&server], scan("peek"), 50));
    assert_eq!((records.outcomes("scan", "response"), records.done.rows), (ok(50), 300));
    assert_eq!(server.seen().len(), 250, "two pages of 3 rows");
}

#[test]
fn the_first_row_is_compared_whatever_page_it_comes_with() {
    let server = filled(State::default());
    let late = json!([operation("late", existing(), json!([execute_step("late")]))]);
    let records = drive_order(&order(&[&server], late, 50));
    assert_eq!(
        records.outcomes("late", "response"),
        [("invalid".to_owned(), 50)].into(),
        "no row of a scan is a note"
    );
}

#[test]
fn a_batch_prepares_again_what_was_forgotten() {
    let server = filled(State::default());
    server.state.lock().unwrap().forgets = Some("PUT IF");
    let before = server.state.lock().unwrap().prepared;
    let batch = json!([{"kind": "batch", "statements": ["put", "reserve"], "mode": "logged"}]);
    let records = drive_order(&order(&[&server], json!([operation("both", existing(), batch)]), 200));
    assert_eq!(
        (records.outcomes("both", "response"), records.done.errors),
        (ok(200), 0)
    );
    let state = server.state.lock().unwrap();
    assert_eq!(state.prepared - before, 3);
    assert!(state.seen.iter().all(|seen| seen.statements == ["PUT", "PUT IF"]));
    assert!(
        state
            .seen
            .iter()
            .all(|seen| seen.serial == Some(Consistency::LocalSerial))
    );
}

#[test]
fn composite_keys_are_routed_as_cassandra_composes_them() {
    let state = |mine, other| State {
        tokens: [mine, other],
        ..State::default()
    };
    // The second node owns the half ring that ends at 2^62, the first the rest.
    let servers = [
        Server::start(state(-(1 << 62), 1 << 62)),
        Server::start(state(1 << 62, -(1 << 62))),
    ];
    let write = json!([operation("write", json!({"kind": "new"}), json!([execute_step("put")]))]);
    for places in [vec![0], vec![0, 1], vec![1, 0]] {
        servers
            .iter()
            .for_each(|server| server.state.lock().unwrap().seen.clear());
        let mut order = order(&[&servers[0], &servers[1]], write.clone(), 1000);
        if let steelyard_wire::Work::Program(program) = &mut order.work {
            program.statements[0].partition_key = places.clone();
        }
        assert_eq!(drive_order(&order).done.operations, 1000);
        for (number, server) in servers.iter().enumerate() {
            let seen = server.seen();
            assert!(seen.len() > 300, "{places:?} {number} {}", seen.len());
            for request in seen {
                let parts: Vec<&[u8]> = places
                    .iter()
                    .map(|place| request.values[usize::from(*place)].as_slice())
                    .collect();
                let compose = |part: &&[u8]| [&(part.len() as u16).to_be_bytes(), *part, &[0]].concat();
                let key = match parts.as_slice() {
                    [only] => only.to_vec(),
                    many => many.iter().flat_map(compose).collect(),
                };
                let second = (-(1 << 62) + 1..=1 << 62).contains(&murmur3::token(&key));
                assert_eq!(second, number == 1, "{places:?}");
            }
        }
    }
}

/// A change that makes an order wrong.
type Change = fn(&mut Order);

#[test]
fn consistency_levels_that_do_not_exist_are_refused() {
    let server = Server::start(State::default());
    let read = json!([operation("read", existing(), json!([execute_step("reserve")]))]);
    let wrong: [(&str, Change); 3] = [
        ("target.serial_consistency", |order| {
            order.target.cql_mut().unwrap().serial_consistency = "QUORUM".into()
        }),
        ("target.write_consistency", |order| {
            order.target.cql_mut().unwrap().write_consistency = "MOST".into()
        }),
        ("statements.consistency", |order| {
            if let steelyard_wire::Work::Program(program) = &mut order.work {
                program.statements[1].consistency = Some("MOST".into());
            }
        }),
    ];
    for (field, change) in wrong {
        let mut order = order(&[&server], read.clone(), 1);
        change(&mut order);
        let Err(ConnectError::Order(error)) = connect(&order, &[1]) else {
            panic!("{field}")
        };
        assert_eq!(error.field, field);
    }
}
