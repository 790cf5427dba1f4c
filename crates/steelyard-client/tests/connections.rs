//! Compression, encryption, several connections and shards, over real sockets against the simulated server.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, KeyPair, date_time_ymd};
use steelyard_client::blocking_connection::{Access, BlockingConnection};
use steelyard_client::connect::connect;
use steelyard_client::error::ConnectionError;
use steelyard_cql::{Compression, Consistency};
use steelyard_load::clock::Clock;
use steelyard_load::drive;
use steelyard_sim::{Config, TlsFiles, serve};
use steelyard_wire::{Action, Connected, Done, Order, Proportions, Routing, Schedule, Stop, Tls, Verify};

use crate::last_done;

pub(crate) const LIMIT: Duration = Duration::from_secs(10);
pub(crate) const RECORDS: u64 = 300;
/// First byte of what a TLS client says.
const TLS_HANDSHAKE: u8 = 0x16;

/// A simulated node that remembers rows.
pub(crate) fn node(change: impl FnOnce(&mut Config)) -> SocketAddr {
    let mut config = Config::null("127.0.0.1:0".parse().unwrap());
    config.remember = true;
    change(&mut config);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        serve(&config, |address| sender.send(address).unwrap()).unwrap();
    });
    receiver.recv_timeout(LIMIT).unwrap()
}

pub(crate) fn order(address: SocketAddr, change: impl FnOnce(&mut Order)) -> Order {
    let mut order: Order = serde_json::from_str(include_str!("../../../schema/order.example.json")).unwrap();
    order.contacts = vec![address.to_string()];
    order.stop = Stop {
        keys: None,
        operations: Some(1_000),
        duration_s: None,
    };
    let ycsb = order.work.ycsb_mut().unwrap();
    ycsb.records = RECORDS;
    ycsb.field_length = 300;
    ycsb.proportions = Proportions {
        read: 0.5,
        update: 0.5,
        ..Proportions::default()
    };
    order.schedule = Schedule::Closed { threads: 8 };
    change(&mut order);
    order
}

fn create_table(order: &Order) {
    let access = Access::of_order(order, order.target.cql().unwrap()).unwrap();
    let mut connection = BlockingConnection::open(&order.contacts[0], &access, LIMIT).unwrap();
    let fields: Vec<String> = order
        .work
        .ycsb()
        .unwrap()
        .fields
        .iter()
        .map(|field| format!(", {field} text"))
        .collect();
    for statement in [
        "CREATE KEYSPACE ycsb WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}".to_owned(),
        format!("CREATE TABLE ycsb.usertable (y_id text PRIMARY KEY{})", fields.concat()),
    ] {
        connection.query(&statement, Consistency::One).unwrap();
    }
}

/// Creates the table, fills it, and drives the mix: every read must find its row.
pub(crate) fn fill_and_load(order: &Order) -> (Connected, Done) {
    create_table(order);
    let populate = Order {
        action: Action::Populate,
        stop: Stop::default(),
        ..order.clone()
    };
    let (_, filled) = drive_with(&populate);
    assert_eq!((filled.operations, filled.errors), (RECORDS, 0), "{filled:?}");
    let (connected, done) = drive_with(order);
    assert_eq!(
        (done.operations, done.errors, done.not_found),
        (1_000, 0, 0),
        "{done:?}"
    );
    (connected, done)
}

pub(crate) fn drive_with(order: &Order) -> (Connected, Done) {
    let (clients, connected) = connect(order, &drive::slots(order, 2).unwrap()).unwrap();
    let mut out = Vec::new();
    drive::run(clients, order, Clock::start(), &AtomicBool::new(false), &mut out).unwrap();
    (connected, last_done(&out))
}

#[test]
fn compressed_frames_carry_the_same_operations() {
    for kind in [steelyard_wire::Compression::Lz4, steelyard_wire::Compression::Snappy] {
        let address = node(|_| {});
        fill_and_load(&order(address, |order| {
            order.target.cql_mut().unwrap().compression = Some(kind)
        }));
        // Whoever does not compress reads the same rows.
        let mut connection = BlockingConnection::open(&address.to_string(), &Access::default(), LIMIT).unwrap();
        let mut count = 0;
        connection
            .rows("SELECT field0 FROM ycsb.usertable LIMIT 1000", |_| count += 1)
            .unwrap();
        assert_eq!(count, RECORDS);
    }
}

#[test]
fn several_connections_to_a_node_share_its_operations() {
    for routing in [Routing::Token, Routing::RoundRobin] {
        let (connected, _) = fill_and_load(&order(node(|_| {}), |order| {
            order.connections_per_node = 3;
            order.target.cql_mut().unwrap().routing = routing;
        }));
        // Two threads with three each.
        assert_eq!(connected.connections, 6);
    }
    let none = order(node(|_| {}), |order| order.connections_per_node = 0);
    let refused = connect(&none, &[1]).err().unwrap().to_string();
    assert!(
        refused.contains("connections_per_node") && refused.contains("1 to 1024"),
        "{refused}"
    );
}

/// The simulated shards refuse what belongs to another, so that no error means: every operation was at its shard.
#[test]
fn operations_go_to_the_shard_of_their_key() {
    for per_shard in [1, 2] {
        let address = node(|config| config.shards = 3);
        let (connected, _) = fill_and_load(&order(address, |order| order.connections_per_node = per_shard));
        assert_eq!(connected.connections, 2 * 3 * per_shard);
    }
    // Without tokens they go anywhere, and two of three are refused.
    let address = node(|config| config.shards = 3);
    let mut blind = order(address, |_| {});
    fill_and_load(&blind);
    blind.target.cql_mut().unwrap().routing = Routing::RoundRobin;
    let (_, done) = drive_with(&blind);
    assert!(done.errors_by_kind["server"] > 400, "{done:?}");
    // And it is told why.
    let texts = &done.error_texts["server"];
    assert!(!texts.is_empty() && texts.len() <= 3, "{texts:?}");
    assert!(
        texts.iter().all(|text| text.contains("shard") && text.ends_with(')')),
        "{texts:?}"
    );
}

/// A way to a node on which connections fall silent without an end: once so many bytes have passed, everything on those that
/// stand is lost.
fn black_hole(node: SocketAddr, after_bytes: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let passed = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for inside in listener.incoming() {
            let (inside, outside) = (inside.unwrap(), TcpStream::connect(node).unwrap());
            let doomed = passed.load(Ordering::SeqCst) < after_bytes;
            for (mut from, mut to) in [
                (inside.try_clone().unwrap(), outside.try_clone().unwrap()),
                (outside, inside),
            ] {
                let passed = Arc::clone(&passed);
                std::thread::spawn(move || {
                    let mut buffer = [0; 65_536];
                    while let Ok(count @ 1..) = from.read(&mut buffer) {
                        let before = passed.fetch_add(count, Ordering::SeqCst);
                        if !(doomed && before >= after_bytes) && to.write_all(&buffer[..count]).is_err() {
                            return;
                        }
                    }
                });
            }
        }
    });
    address
}

#[test]
fn a_connection_that_falls_silent_is_made_anew() {
    let real = node(|_| {});
    fill_and_load(&order(real, |_| {}));
    let silent = order(black_hole(real, 50_000), |order| {
        order.schedule = Schedule::Constant {
            rate_per_s: 100.0,
            in_flight: 1_000,
        };
        order.timeout_ms = 1_000;
        order.stop = Stop {
            keys: None,
            operations: Some(1_000),
            duration_s: None,
        };
    });
    let (_, done) = drive_with(&silent);
    assert_eq!(done.operations + done.errors, 1_000, "{done:?}");
    // Of ten seconds five are lost, and the time-out of what was sent in them.
    assert!((200..900).contains(&done.errors), "{done:?}");
    assert!((1..=2).contains(&done.reconnections), "{done:?}");
}

/// An authority and what it signs, as files.
struct Authority {
    folder: PathBuf,
    certificate: Certificate,
    key: KeyPair,
}

impl Authority {
    fn new(name: &str) -> Self {
        Self::named(name, name)
    }

    fn named(name: &str, common_name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("steelyard-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(folder.join("ca.pem"), certificate.pem()).unwrap();
        Self {
            folder,
            certificate,
            key,
        }
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    /// A certificate for `subject`, valid until the end of `year`.
    fn sign(&self, name: &str, subject: &str, year: i32) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![subject.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        let certificate = params.signed_by(&key, &self.certificate, &self.key).unwrap();
        std::fs::write(self.file(&format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.file(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    fn server(&self, name: &str, client_ca: Option<String>) -> TlsFiles {
        TlsFiles {
            certificate: self.file(&format!("{name}.pem")),
            key: self.file(&format!("{name}.key")),
            client_ca,
        }
    }

    fn trusted(&self) -> Tls {
        Tls {
            ca: Some(self.file("ca.pem")),
            ..Tls::default()
        }
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn open(address: SocketAddr, tls: Option<Tls>) -> Result<BlockingConnection, ConnectionError> {
    let order = order(address, |order| order.tls = tls);
    BlockingConnection::open(
        &order.contacts[0],
        &Access::of_order(&order, order.target.cql().unwrap())?,
        LIMIT,
    )
}

#[track_caller]
fn refused(address: SocketAddr, tls: Option<Tls>, problem: &str, hint: &str) {
    let error = match open(address, tls) {
        Err(error) => error,
        // Under TLS 1.3 a server looks at the client's certificate after the client's part is done.
        Ok(mut connection) => connection
            .query("SELECT key FROM system.local", Consistency::One)
            .err()
            .unwrap(),
    };
    let message = error.to_string();
    assert!(message.contains(problem), "{message}");
    assert!(error.hint().contains(hint), "{}", error.hint());
}

#[test]
fn encrypted_connections_carry_the_same_operations() {
    let authority = Authority::new("carry");
    authority.sign("node", "127.0.0.1", 2100);
    authority.sign("client", "somebody", 2100);
    let address = node(|config| {
        config.tls = Some(authority.server("node", Some(authority.file("ca.pem"))));
        config.shards = 2;
    });
    let (connected, _) = fill_and_load(&order(address, |order| {
        order.tls = Some(Tls {
            certificate: Some(authority.file("client.pem")),
            key: Some(authority.file("client.key")),
            ..authority.trusted()
        });
        order.target.cql_mut().unwrap().compression = Some(steelyard_wire::Compression::Lz4);
    }));
    assert_eq!(connected.connections, 4);
}

#[test]
fn what_is_wrong_with_a_certificate_is_said() {
    let (authority, other) = (Authority::new("own"), Authority::new("other"));
    authority.sign("node", "127.0.0.1", 2100);
    authority.sign("old", "127.0.0.1", 2020);
    authority.sign("named", "db.example.org", 2100);
    other.sign("stranger", "somebody", 2100);
    let serve = |name: &str, client_ca: Option<String>| {
        let files = authority.server(name, client_ca);
        node(|config| config.tls = Some(files))
    };
    let (good, old, named) = (serve("node", None), serve("old", None), serve("named", None));
    assert!(open(good, Some(authority.trusted())).is_ok());
    refused(good, Some(other.trusted()), "no trusted authority signed", "tls.ca");
    let anew = Authority::named("anew", "own");
    refused(
        good,
        Some(anew.trusted()),
        "not signed by the trusted authority of that name",
        "been replaced",
    );
    refused(old, Some(authority.trusted()), "expired", "valid now");
    refused(
        named,
        Some(authority.trusted()),
        "for db.example.org, not for 127.0.0.1",
        "tls.name",
    );
    let with = |change: fn(&mut Tls)| {
        let mut tls = authority.trusted();
        change(&mut tls);
        Some(tls)
    };
    assert!(open(named, with(|tls| tls.name = Some("db.example.org".into()))).is_ok());
    assert!(open(named, with(|tls| tls.verify = Verify::Chain)).is_ok());
    assert!(open(old, with(|tls| tls.verify = Verify::None)).is_ok());
    refused(old, with(|tls| tls.verify = Verify::Chain), "expired", "valid now");
    // Whoever wants a client's certificate says so.
    let strict = serve("node", Some(authority.file("ca.pem")));
    refused(
        strict,
        Some(authority.trusted()),
        "CertificateRequired",
        "tls.certificate",
    );
    let stranger = Tls {
        certificate: Some(other.file("stranger.pem")),
        key: Some(other.file("stranger.key")),
        ..authority.trusted()
    };
    refused(strict, Some(stranger), "refused the handshake", "trust store");
}

#[test]
fn tls_and_its_absence_are_told_apart() {
    let authority = Authority::new("apart");
    authority.sign("node", "127.0.0.1", 2100);
    let plain = node(|_| {});
    let encrypted = node(|config| config.tls = Some(authority.server("node", None)));
    refused(
        plain,
        Some(authority.trusted()),
        "answers without TLS",
        "client encryption enabled",
    );
    refused(encrypted, None, "speaks TLS", "set tls");
    // Java's servers say nothing to whoever does not speak TLS.
    refused(
        hangs_up_on(encrypted, |first| first != TLS_HANDSHAKE),
        None,
        "speaks TLS",
        "set tls",
    );
    refused(
        hangs_up_on(plain, |first| first == TLS_HANDSHAKE),
        Some(authority.trusted()),
        "answers without TLS",
        "leave out tls",
    );
    // Whoever hangs up on everybody shows nothing.
    refused(hangs_up_on(plain, |_| true), None, "127.0.0.1", "port for CQL");
    refused(
        hangs_up_on(plain, |_| true),
        Some(authority.trusted()),
        "during the TLS handshake",
        "client certificate",
    );
}

/// What tells them apart would be load of its own on a node that restarts.
#[test]
fn a_load_that_reconnects_does_not_try_tls() {
    let node = node(|_| {});
    create_table(&order(node, |_| {}));
    let (address, first_bytes) = gone_after(node, Duration::from_millis(300));
    let (_, done) = drive_with(&order(address, |order| {
        order.stop = Stop {
            keys: None,
            operations: None,
            duration_s: Some(1.5),
        };
        order.timeout_ms = 500;
    }));
    assert!(done.errors > 0, "{done:?}");
    let first_bytes: Vec<u8> = first_bytes.try_iter().collect();
    assert!(!first_bytes.is_empty());
    assert!(
        first_bytes.iter().all(|first| *first != TLS_HANDSHAKE),
        "{first_bytes:?}"
    );
}

/// Before a load it is told apart, though, for the connections of the load itself too.
#[test]
fn a_load_that_cannot_begin_says_that_the_server_speaks_tls() {
    let authority = Authority::new("begin");
    authority.sign("node", "127.0.0.1", 2100);
    let encrypted = node(|config| config.tls = Some(authority.server("node", None)));
    let address = hangs_up_on(encrypted, |first| first != TLS_HANDSHAKE);
    for contacts in [
        vec![address.to_string()],
        vec![address.to_string(), "127.0.0.1:1".into()],
    ] {
        let order = order(address, |order| {
            order.some_contacts = true;
            order.contacts = contacts;
        });
        let refused = connect(&order, &[1]).err().unwrap().to_string();
        assert!(refused.contains("speaks TLS"), "{refused}");
    }
}

/// A way to a node that goes away after `up`, and the first byte of what each later connection says before it is hung up on.
fn gone_after(node: SocketAddr, up: Duration) -> (SocketAddr, mpsc::Receiver<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = mpsc::channel();
    let gone_at = Instant::now() + up;
    std::thread::spawn(move || {
        for inside in listener.incoming() {
            let mut inside = inside.unwrap();
            let left = gone_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let mut first = [0];
                if inside.read_exact(&mut first).is_ok() && sender.send(first[0]).is_err() {
                    return;
                }
                continue;
            }
            let outside = TcpStream::connect(node).unwrap();
            pass(&inside, &outside);
            std::thread::spawn(move || {
                std::thread::sleep(left);
                let _ = inside.shutdown(Shutdown::Both);
            });
        }
    });
    (address, receiver)
}

/// Passes on what each of two sides says to the other.
fn pass(inside: &TcpStream, outside: &TcpStream) {
    for (from, to) in [(inside, outside), (outside, inside)] {
        let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    }
}

/// A way to a node that hangs up on connections by the first byte of what is said.
fn hangs_up_on(node: SocketAddr, refuses: fn(u8) -> bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for inside in listener.incoming() {
            let inside = inside.unwrap();
            let mut first = [0];
            // What is not read before the end makes it a reset.
            if inside.peek(&mut first).is_err() || refuses(first[0]) {
                continue;
            }
            pass(&inside, &TcpStream::connect(node).unwrap());
        }
    });
    address
}

#[test]
fn settings_that_cannot_be_met_are_refused_with_what_was_read() {
    let authority = Authority::new("settings");
    authority.sign("client", "somebody", 2100);
    authority.sign("second", "somebody", 2100);
    let anywhere: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let check = |tls: Tls, parts: [&str; 2]| {
        let message = open(anywhere, Some(tls)).err().unwrap().to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    let missing = Path::new("/nowhere/ca.pem").to_str().unwrap().to_owned();
    check(
        Tls {
            ca: Some(missing),
            ..Tls::default()
        },
        ["tls.ca: read /nowhere/ca.pem", "PEM"],
    );
    let key_as_ca = Some(authority.file("client.key"));
    check(
        Tls {
            ca: key_as_ca,
            ..Tls::default()
        },
        ["tls.ca", "no certificate in it"],
    );
    let lonely = Some(authority.file("client.pem"));
    check(
        Tls {
            certificate: lonely,
            ..authority.trusted()
        },
        ["tls.certificate", "needs tls.key"],
    );
    let strange = Tls {
        certificate: Some(authority.file("client.pem")),
        key: Some(authority.file("second.key")),
        ..authority.trusted()
    };
    check(strange, ["tls.key", "not the key of"]);
    check(
        Tls {
            name: Some("a b".into()),
            ..authority.trusted()
        },
        ["tls.name", "allowed"],
    );
}

#[test]
fn a_compression_that_a_node_does_not_offer_is_refused() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; steelyard_cql::HEADER_LENGTH]).unwrap();
        let mut out = Vec::new();
        let options: [(&str, &[&str]); 1] = [("COMPRESSION", &["snappy"])];
        steelyard_cql::response::supported(&mut out, 4, 0, &options);
        stream.write_all(&out).unwrap();
    });
    let access = Access {
        compression: Some(Compression::Lz4),
        ..Access::default()
    };
    let message = BlockingConnection::open(&address, &access, LIMIT)
        .err()
        .unwrap()
        .to_string();
    assert!(
        message.ends_with("does not compress with lz4; it offers: snappy"),
        "{message}"
    );
    server.join().unwrap();
}
