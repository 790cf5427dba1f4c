//! The whole path, from order to records, over real sockets against the smallest server that there can be.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use steelyard_channel::ContactError;
use steelyard_client::blocking_connection::{Access, BlockingConnection, Credentials};
use steelyard_client::connect::connect;
use steelyard_client::error::{ConnectError, ConnectionError};
use steelyard_cql::request::Request;
use steelyard_cql::response::{self, Columns, Detail};
use steelyard_cql::{ColumnType, Consistency, Header, Value, code};
use steelyard_load::clock::Clock;
use steelyard_load::drive;
use steelyard_wire::{Action, Done, Order, Proportions, RequestDistribution, Routing, Schedule, Stop};

use crate::last_done;
use crate::server::{Listening, auth_success, authenticate, column, start};

/// What a test wants of the server, and what the server has seen.
#[derive(Default)]
struct Wish {
    /// The password that it asks for.
    password: Option<&'static str>,
    /// Number of the EXECUTE that is answered with this error code.
    error_at: Option<(u64, i32)>,
    /// Number of the EXECUTE at which the connection is closed.
    close_at: Option<u64>,
    /// Number of the EXECUTE that is never answered.
    swallow_at: Option<u64>,
    /// Connections that are accepted before the node goes away.
    accepts: Option<usize>,
    /// Tokens of this node and of a peer.
    tokens: [i64; 2],
    executed: AtomicU64,
    prepared: AtomicU64,
    keys: Mutex<Vec<Vec<u8>>>,
}

struct Server {
    address: String,
    _listening: Listening,
    wish: Arc<Wish>,
}

impl Server {
    fn start(wish: Wish) -> Self {
        let wish = Arc::new(wish);
        let shared = Arc::clone(&wish);
        let listening = start(wish.accepts.unwrap_or(usize::MAX), move |_, header, request, out| {
            answer(&shared, header, request, out)
        });
        Self {
            address: listening.address.to_string(),
            _listening: listening,
            wish,
        }
    }
}

/// False: close the connection.
fn answer(wish: &Wish, header: &Header, request: &Request<'_>, out: &mut Vec<u8>) -> bool {
    let (version, stream) = (header.version, header.stream);
    match request {
        Request::Options => response::supported(out, version, stream, &[("CQL_VERSION", &["3.4.5"])]),
        Request::Register(_) => response::ready(out, version, stream),
        Request::Startup(_) if wish.password.is_some() => authenticate(out, header, "a.Password"),
        Request::Startup(_) => response::ready(out, version, stream),
        Request::AuthResponse(token) => {
            let expected = format!("\0me\0{}", wish.password.unwrap_or_default());
            match *token == Some(expected.as_bytes()) {
                true => auth_success(out, header),
                false => response::error(out, version, stream, code::BAD_CREDENTIALS, "no", &Detail::None),
            }
        }
        Request::Prepare { statement } => {
            wish.prepared.fetch_add(1, Ordering::Relaxed);
            response::prepared(out, version, stream, statement.as_bytes(), &[], &[0], &[]);
        }
        Request::Query { statement, .. } => system_table(wish, statement, version, stream, out),
        Request::Execute { id, parameters } => {
            let number = wish.executed.fetch_add(1, Ordering::Relaxed);
            if let Some((_, code)) = wish.error_at.filter(|(at, _)| *at == number) {
                let detail = if code == code::UNPREPARED {
                    Detail::Unprepared { id }
                } else {
                    Detail::None
                };
                response::error(out, version, stream, code, "as wished", &detail);
                return true;
            }
            if wish.close_at == Some(number) {
                return false;
            }
            if wish.swallow_at == Some(number) {
                return true;
            }
            let values: Vec<_> = parameters.values.collect();
            let key = if id.starts_with(b"UPDATE") {
                values.last()
            } else {
                values.first()
            };
            wish.keys.lock().unwrap().push(key.unwrap().unwrap().to_vec());
            match id.starts_with(b"SELECT") {
                true => {
                    let rows = if id.ends_with(b"LIMIT ?") { 3 } else { 1 };
                    response::rows(out, version, stream, Columns::Counted(1), rows, |cells| {
                        (0..rows).for_each(|_| Value::put_text(cells, "cell"));
                    });
                }
                false => response::void(out, version, stream),
            }
        }
        other => panic!("{other:?}"),
    }
    true
}

fn system_table(wish: &Wish, statement: &str, version: u8, stream: i16, out: &mut Vec<u8>) {
    let text = || Box::new(ColumnType::Text);
    let columns = [
        column("release_version", ColumnType::Text),
        column("host_id", ColumnType::Uuid),
        column("data_center", ColumnType::Text),
        column("tokens", ColumnType::Set(text())),
        column("replication", ColumnType::Map(text(), text())),
    ];
    let place = usize::from(statement.contains("peers"));
    let token = wish.tokens[place].to_string();
    // A node's identity follows from its token.
    let id = u128::from_be_bytes([7; 16]) ^ (wish.tokens[place] as u64 as u128);
    response::rows(out, version, stream, Columns::Named(&columns), 1, |cells| {
        Value::Text("5.0.5").put(cells);
        Value::Uuid(id.to_be_bytes()).put(cells);
        Value::Text("dc1").put(cells);
        Value::List(vec![Value::Text(&token)]).put(cells);
        Value::Map(vec![(Value::Text("class"), Value::Text("SimpleStrategy"))]).put(cells);
    });
}

fn order(servers: &[&Server], operations: u64) -> Order {
    let mut order: Order = serde_json::from_str(include_str!("../../../schema/order.example.json")).unwrap();
    order.contacts = servers.iter().map(|server| server.address.clone()).collect();
    order.stop = Stop {
        keys: None,
        operations: Some(operations),
        duration_s: None,
    };
    order.work.ycsb_mut().unwrap().request_distribution = RequestDistribution::Uniform;
    order.work.ycsb_mut().unwrap().proportions = Proportions {
        read: 1.0,
        ..Proportions::default()
    };
    order.schedule = Schedule::Closed { threads: 8 };
    order
}

fn drive_with(order: &Order, workers: u32) -> Done {
    let (clients, connected) = connect(order, &drive::slots(order, workers).unwrap()).unwrap();
    assert_eq!(
        (connected.server.as_str(), &connected.nodes),
        ("5.0.5", &order.contacts)
    );
    assert_eq!(connected.connections, workers * order.contacts.len() as u32);
    let mut out = Vec::new();
    drive::run(clients, order, Clock::start(), &AtomicBool::new(false), &mut out).unwrap();
    last_done(&out)
}

fn load(order: &Order) -> Done {
    drive_with(order, 1)
}

#[test]
fn every_kind_of_operation_arrives_and_is_answered() {
    let server = Server::start(Wish::default());
    let mut order = order(&[&server], 1000);
    order.work.ycsb_mut().unwrap().proportions = Proportions {
        read: 0.2,
        update: 0.2,
        insert: 0.2,
        scan: 0.2,
        read_modify_write: 0.2,
    };
    order.work.ycsb_mut().unwrap().scan_length_distribution = steelyard_wire::LengthDistribution::Uniform;
    let done = load(&order);
    assert_eq!(
        (done.operations, done.errors, done.not_found, done.reconnections),
        (1000, 0, 0, 0)
    );
    assert!(done.rows > 300 && done.rows % 3 == 0, "{}", done.rows);
    // Read, ten updates, insert, scan.
    assert_eq!(server.wish.prepared.load(Ordering::Relaxed), 13);
    let executed = server.wish.executed.load(Ordering::Relaxed);
    assert!((1100..1300).contains(&executed), "{executed}");
    assert!(
        server
            .wish
            .keys
            .lock()
            .unwrap()
            .iter()
            .all(|key| key.starts_with(b"user"))
    );
}

#[test]
fn several_workers_populate_every_record_once() {
    let server = Server::start(Wish::default());
    let mut order = order(&[&server], 0);
    order.action = Action::Populate;
    order.stop = Stop::default();
    order.work.ycsb_mut().unwrap().records = 5000;
    let done = drive_with(&order, 2);
    assert_eq!(
        (done.phase.as_str(), done.operations, done.errors),
        ("populate", 5000, 0)
    );
    let mut keys = std::mem::take(&mut *server.wish.keys.lock().unwrap());
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 5000);
}

#[test]
fn a_load_goes_on_without_contacts_that_are_away() {
    let server = Server::start(Wish::default());
    let mut order = order(&[&server], 500);
    order.contacts.insert(0, "127.0.0.1:1".to_owned());
    order.contacts.push("nobody.invalid:9042".to_owned());
    let slots = drive::slots(&order, 2).unwrap();
    let refused = connect(&order, &slots).err().unwrap().to_string();
    assert_eq!(refused, "127.0.0.1:1 refused the connection");

    order.some_contacts = true;
    let (clients, connected) = connect(&order, &slots).unwrap();
    assert_eq!(
        (connected.nodes, connected.connections),
        (vec![server.address.clone()], 2)
    );
    assert_eq!(connected.absent.len(), 2);
    assert_eq!(connected.absent[0], "127.0.0.1:1 refused the connection");
    assert!(connected.absent[1].starts_with("no address is known for nobody.invalid ("));
    let mut out = Vec::new();
    drive::run(clients, &order, Clock::start(), &AtomicBool::new(false), &mut out).unwrap();
    assert_eq!(last_done(&out).operations, 500);
}

#[test]
fn round_robin_goes_to_every_node_in_turn() {
    let servers = [Server::start(Wish::default()), Server::start(Wish::default())];
    let mut order = order(&[&servers[0], &servers[1]], 1000);
    order.target.cql_mut().unwrap().routing = Routing::RoundRobin;
    assert_eq!(load(&order).operations, 1000);
    assert_eq!(
        servers
            .each_ref()
            .map(|server| server.wish.executed.load(Ordering::Relaxed)),
        [500, 500]
    );
}

#[test]
fn token_routing_goes_to_the_owner_of_the_key() {
    let wish = |mine, other| Wish {
        tokens: [mine, other],
        ..Wish::default()
    };
    // The second node owns the half ring that ends at 2^62, the first the rest.
    let servers = [
        Server::start(wish(-(1 << 62), 1 << 62)),
        Server::start(wish(1 << 62, -(1 << 62))),
    ];
    assert_eq!(load(&order(&[&servers[0], &servers[1]], 1000)).operations, 1000);
    let keys = servers
        .each_ref()
        .map(|server| std::mem::take(&mut *server.wish.keys.lock().unwrap()));
    let second = |key: &Vec<u8>| (-(1 << 62) + 1..=1 << 62).contains(&steelyard_workload::murmur3::token(key));
    assert!(keys[1].iter().all(second) && !keys[0].iter().any(second));
    assert!(
        keys[0].len() > 400 && keys[1].len() > 400,
        "{} {}",
        keys[0].len(),
        keys[1].len()
    );
}

#[test]
fn a_forgotten_statement_is_prepared_again_without_an_error() {
    let server = Server::start(Wish {
        error_at: Some((100, code::UNPREPARED)),
        ..Wish::default()
    });
    let done = load(&order(&[&server], 1000));
    assert_eq!((done.operations, done.errors), (1000, 0));
    assert_eq!(server.wish.prepared.load(Ordering::Relaxed), 2);
    assert_eq!(server.wish.executed.load(Ordering::Relaxed), 1001);
}

#[test]
fn errors_are_counted_by_kind() {
    let cases = [
        (code::OVERLOADED, "overloaded"),
        (code::UNAVAILABLE, "unavailable"),
        (code::IS_BOOTSTRAPPING, "unavailable"),
        (code::READ_TIMEOUT, "read-timeout"),
        (code::WRITE_TIMEOUT, "write-timeout"),
        (code::INVALID, "server"),
    ];
    for (code, kind) in cases {
        let server = Server::start(Wish {
            error_at: Some((10, code)),
            ..Wish::default()
        });
        let done = load(&order(&[&server], 100));
        assert_eq!(
            (done.operations, done.errors_by_kind),
            (99, [(kind.to_owned(), 1)].into()),
            "{kind}"
        );
    }
}

#[test]
fn a_lost_connection_ends_what_was_in_flight_and_the_load_goes_on() {
    let server = Server::start(Wish {
        close_at: Some(200),
        ..Wish::default()
    });
    let done = load(&order(&[&server], 1000));
    assert_eq!((done.operations + done.errors, done.reconnections), (1000, 1));
    assert_eq!(done.errors_by_kind.keys().collect::<Vec<_>>(), ["connection"]);
    assert!((1..=8).contains(&done.errors), "{}", done.errors);
}

#[test]
fn a_node_that_stays_away_leaves_the_load_to_the_others() {
    let gone = Server::start(Wish {
        close_at: Some(10),
        accepts: Some(1),
        ..Wish::default()
    });
    let stays = Server::start(Wish::default());
    let mut order = order(&[&gone, &stays], 20_000);
    order.target.cql_mut().unwrap().routing = Routing::RoundRobin;
    let done = load(&order);
    assert_eq!(done.operations + done.errors, 20_000);
    assert!((1..=8).contains(&done.errors) && done.reconnections == 0, "{done:?}");
    assert!(stays.wish.executed.load(Ordering::Relaxed) > 10_000);
}

#[test]
fn an_answer_that_never_comes_is_a_time_out() {
    let server = Server::start(Wish {
        swallow_at: Some(50),
        ..Wish::default()
    });
    let mut order = order(&[&server], 1000);
    // Longer than a busy machine keeps any of the others waiting.
    order.timeout_ms = 500;
    let done = load(&order);
    assert_eq!(
        (done.operations, done.errors_by_kind),
        (999, [("timeout".to_owned(), 1)].into())
    );
}

#[test]
fn passwords_are_sent_where_they_are_wanted() {
    let server = Server::start(Wish {
        password: Some("secret"),
        ..Wish::default()
    });
    let open = |password: Option<&str>| {
        let credentials = password.map(|password| Credentials {
            user: "me".into(),
            password: password.into(),
        });
        let access = Access {
            credentials,
            ..Access::default()
        };
        BlockingConnection::open(&server.address, &access, Duration::from_secs(5))
    };
    assert!(
        open(Some("secret"))
            .unwrap()
            .query("SELECT", Consistency::One)
            .unwrap()
            .is_some()
    );
    assert!(matches!(
        open(Some("wrong")),
        Err(ConnectionError::Server {
            code: code::BAD_CREDENTIALS,
            ..
        })
    ));
    assert!(matches!(open(None), Err(ConnectionError::NoCredentials { .. })));
}

#[test]
fn what_cannot_be_reached_is_named() {
    let server = Server::start(Wish::default());
    let mut order = order(&[&server], 1);
    order.contacts.push("127.0.0.1:1".into());
    let Err(error) = connect(&order, &[1]) else { panic!() };
    assert!(matches!(&error, ConnectError::Connection(_)));
    assert_eq!(error.to_string(), "127.0.0.1:1 refused the connection");
    order.contacts = vec!["127.0.0.1".into()];
    assert!(matches!(
        connect(&order, &[1]),
        Err(ConnectError::Connection(ConnectionError::Contact(
            ContactError::Address { .. }
        )))
    ));
    order.target.cql_mut().unwrap().read_consistency = "MOST".into();
    let Err(ConnectError::Order(error)) = connect(&order, &[1]) else {
        panic!()
    };
    assert_eq!(error.field, "target.read_consistency");
}

#[test]
fn a_server_that_speaks_something_else_is_no_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let error = BlockingConnection::open(&address, &Access::default(), Duration::from_secs(5))
        .err()
        .unwrap();
    assert!(
        matches!(
            error,
            ConnectionError::Protocol { .. } | ConnectionError::Unexpected { .. }
        ),
        "{error}"
    );
    server.join().unwrap();
}
