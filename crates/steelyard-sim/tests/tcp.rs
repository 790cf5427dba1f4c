//! The whole program over TCP: handshake, schema, operations, their times.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use steelyard_cql::response::{Response, Rows};
use steelyard_cql::{Consistency, Frame, HEADER_LENGTH, request};
use steelyard_sim::{Config, Distribution, Growth, Law, Stall, Timing, serve};

const LIMIT: Duration = Duration::from_secs(10);
const INSERT: &str = "INSERT INTO ks.t (k, a) VALUES (?, ?)";
const READ: &str = "SELECT a FROM ks.t WHERE k = ?";

fn timing(service_us: f64, stalls: Vec<Stall>) -> Timing {
    let law = Law {
        service_us,
        contention: 0.0,
        coherency: 0.0,
        distribution: Distribution::Constant,
    };
    Timing {
        law,
        servers: 1,
        start_cv: 0.0,
        trial_cv: 0.0,
        warm_up: None,
        stalls,
        seed: 1,
        spin_us: 60,
    }
}

fn begin(timing: Option<Timing>, remember: bool) -> SocketAddr {
    let (sender, receiver) = mpsc::channel();
    let listen = "127.0.0.1:0".parse().unwrap();
    std::thread::spawn(move || {
        let config = Config {
            timing,
            remember,
            ..Config::null(listen)
        };
        serve(&config, |address| sender.send(address).unwrap()).unwrap();
    });
    receiver.recv_timeout(LIMIT).unwrap()
}

struct Client(TcpStream);

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, LIMIT).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Self(stream);
        client.ask(|out| request::startup(out, 0, "test", "1", None));
        for text in [
            "CREATE KEYSPACE IF NOT EXISTS ks",
            "CREATE TABLE IF NOT EXISTS ks.t (k text PRIMARY KEY, a text)",
        ] {
            client.ask(|out| request::query(out, 0, text, Consistency::One));
        }
        client
    }

    fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        write(&mut out);
        self.0.write_all(&out).unwrap();
    }

    /// Stream number, whole body.
    fn receive(&mut self) -> (i16, Vec<u8>) {
        let mut frame = vec![0; HEADER_LENGTH];
        self.0.read_exact(&mut frame).unwrap();
        let header = Frame::header(&frame).unwrap().unwrap();
        frame.resize(header.frame_length(), 0);
        self.0.read_exact(&mut frame[HEADER_LENGTH..]).unwrap();
        (header.stream, frame)
    }

    fn ask(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        self.send(write);
        self.receive().1
    }

    fn prepare(&mut self, text: &str) -> Vec<u8> {
        let frame = self.ask(|out| request::prepare(out, 0, text));
        let Response::Prepared(prepared) = decode(&frame) else {
            panic!("{:?}", decode(&frame))
        };
        prepared.id
    }

    fn execute(&mut self, stream: i16, id: &[u8], values: &[&str]) {
        let count = u16::try_from(values.len()).unwrap();
        self.send(|out| {
            request::execute(out, stream, id, Consistency::One, count, |writer| {
                values.iter().for_each(|value| writer.bytes(value.as_bytes()));
            });
        });
    }
}

fn decode(frame: &[u8]) -> Response<'_> {
    let header = Frame::header(frame).unwrap().unwrap();
    Response::decode(&header, &frame[HEADER_LENGTH..]).unwrap()
}

fn rows(frame: &[u8]) -> Rows<'_> {
    match decode(frame) {
        Response::Rows(rows) => rows,
        other => panic!("{other:?}"),
    }
}

#[test]
fn remembered_rows_are_truthful() {
    let mut client = Client::connect(begin(Some(timing(20.0, vec![])), true));
    let (insert, read) = (client.prepare(INSERT), client.prepare(READ));
    client.execute(1, &insert, &["x", "value"]);
    let (stream, frame) = client.receive();
    assert_eq!((stream, decode(&frame)), (1, Response::Void));
    client.execute(2, &read, &["x"]);
    let (_, frame) = client.receive();
    let mut answer = rows(&frame);
    assert_eq!((answer.count, answer.cell()), (1, Ok(Some(&b"value"[..]))));
    client.execute(3, &read, &["y"]);
    assert_eq!(rows(&client.receive().1).count, 0);
    client.execute(4, b"no such id", &[]);
    let (_, frame) = client.receive();
    assert!(matches!(decode(&frame), Response::Error(error) if error.code == steelyard_cql::code::UNPREPARED));
}

#[test]
fn one_server_takes_one_operation_at_a_time() {
    let mut client = Client::connect(begin(Some(timing(2_000.0, vec![])), false));
    let read = client.prepare(READ);
    let began = Instant::now();
    for stream in 0..25 {
        client.execute(stream, &read, &["x"]);
    }
    for stream in 0..25 {
        assert_eq!(client.receive().0, stream, "in order");
    }
    // 25 operations of 2 ms on one server: never sooner than 50 ms; how much later is the machine's business.
    assert!(began.elapsed() >= Duration::from_millis(50), "{:?}", began.elapsed());
}

#[test]
fn a_stall_holds_answers_back() {
    let stall = Stall {
        at_ns: 0,
        for_ns: 500_000_000,
    };
    let mut client = Client::connect(begin(Some(timing(100.0, vec![stall])), false));
    let read = client.prepare(READ);
    let began = Instant::now();
    client.execute(1, &read, &["x"]);
    client.receive();
    assert!(began.elapsed() >= Duration::from_millis(500), "{:?}", began.elapsed());
    let began = Instant::now();
    client.execute(2, &read, &["x"]);
    client.receive();
    assert!(began.elapsed() < Duration::from_millis(490), "{:?}", began.elapsed());
}

#[test]
fn the_null_server_answers_whatever_is_whole() {
    let mut client = Client::connect(begin(None, false));
    let read = client.prepare(READ);
    let mut all = Vec::new();
    for stream in 0..500 {
        request::execute(&mut all, stream, &read, Consistency::One, 1, |writer| {
            writer.bytes(b"x")
        });
    }
    // In pieces that end within frames.
    for piece in all.chunks(1000) {
        client.0.write_all(piece).unwrap();
    }
    for stream in 0..500 {
        let (got, frame) = client.receive();
        assert_eq!((got, rows(&frame).count), (stream, 1));
    }
}

#[test]
fn a_client_that_talks_nonsense_is_cut_off() {
    let address = begin(None, false);
    let mut client = Client::connect(address);
    client.0.write_all(&[4, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff]).unwrap();
    assert_eq!(client.0.read(&mut [0; 16]).unwrap(), 0, "closed");
    Client::connect(address);
}

/// A node of a cluster that grows, and where its end is reported.
struct Member {
    address: SocketAddr,
    ended: mpsc::Receiver<Result<(), String>>,
}

impl Member {
    fn start(address: SocketAddr, peers: &[SocketAddr], join: Option<SocketAddr>, growth: Growth) -> Self {
        let (listening, is_listening) = mpsc::channel();
        let (ending, ended) = mpsc::channel();
        let config = Config {
            peers: peers.to_vec(),
            join,
            growth,
            timing: Some(timing(100.0, vec![])),
            ..Config::null(address)
        };
        std::thread::spawn(move || {
            // Nobody waits for most of these.
            let end = serve(&config, |_| {
                let _ = listening.send(());
            });
            let _ = ending.send(end.map_err(|error| error.to_string()));
        });
        if join.is_none() {
            is_listening.recv_timeout(LIMIT).unwrap();
        }
        Self { address, ended }
    }

    /// Nodes in the ring that it sees, itself included, and in its law.
    fn sees(&self) -> Option<(u32, i32)> {
        let mut client = Client(TcpStream::connect_timeout(&self.address, LIMIT).ok()?);
        client.ask(|out| request::startup(out, 0, "test", "1", None));
        let peers = client.query("SELECT peer FROM system.peers_v2");
        let nodes = client.query("SELECT nodes FROM system_views.simulated_load");
        let row = rows(&nodes).row().unwrap();
        let steelyard_cql::Value::Int(nodes) = row[0] else {
            panic!("{row:?}")
        };
        Some((rows(&peers).count + 1, nodes))
    }
}

impl Client {
    fn query(&mut self, text: &str) -> Vec<u8> {
        self.ask(|out| request::query(out, 0, text, Consistency::One))
    }

    fn event(&mut self) -> (String, String, SocketAddr) {
        let (stream, frame) = self.receive();
        let Response::Event(kind, fields) = decode(&frame) else {
            panic!("{:?}", decode(&frame))
        };
        let mut fields = steelyard_cql::Reader::new(fields);
        let change = fields.string().unwrap().to_owned();
        let (address, port) = fields.inet().unwrap();
        assert_eq!(stream, -1);
        (
            kind.to_owned(),
            change,
            SocketAddr::new(address, u16::try_from(port).unwrap()),
        )
    }
}

fn error(frame: &[u8]) -> Option<String> {
    match decode(frame) {
        Response::Error(error) => Some(error.message.to_owned()),
        _ => None,
    }
}

fn free_addresses<const COUNT: usize>() -> [SocketAddr; COUNT] {
    let held = [(); COUNT].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let mut addresses = held.map(|listener| listener.local_addr().unwrap());
    addresses.sort_unstable();
    addresses
}

#[test]
fn a_node_joins_a_running_cluster_and_leaves_it() {
    let [first, second, third, fourth] = free_addresses();
    let growth = Growth {
        boot: Duration::from_millis(30),
        ring_delay: Duration::from_millis(1000),
        data_bytes: 9e6,
        stream_bytes_per_s: 30e6,
        stream_cost: 1.5,
        ..Growth::default()
    };
    let mut members = vec![
        Member::start(first, &[second], None, growth),
        Member::start(second, &[first], None, growth),
    ];
    let mut watching = Client::connect(first);
    watching.ask(|out| request::register(out, 0, &["TOPOLOGY_CHANGE", "STATUS_CHANGE"]));
    let began = Instant::now();
    members.push(Member::start(third, &[], Some(second), growth));
    // Another is refused meanwhile.
    std::thread::sleep(Duration::from_millis(150));
    let other = Member::start(fourth, &[], Some(second), growth);
    let refusal = other.ended.recv_timeout(LIMIT).unwrap().unwrap_err();
    assert!(
        refusal.contains("Other bootstrapping/leaving/moving nodes detected"),
        "{refusal}"
    );
    let leaver = Client::connect(second).query("LEAVE");
    assert!(error(&leaver).unwrap().contains(&format!("{third} joins")));
    assert_eq!((members[0].sees(), members[2].sees()), (Some((2, 2)), None), "not yet");
    for change in [("TOPOLOGY_CHANGE", "NEW_NODE"), ("STATUS_CHANGE", "UP")] {
        assert_eq!(watching.event(), (change.0.to_owned(), change.1.to_owned(), third));
    }
    // 30 + 1000 ms, and 9 MB / (3 nodes * 30 MB/s) = 100 ms.
    assert!(began.elapsed() >= Duration::from_millis(1130), "{:?}", began.elapsed());
    assert_eq!([0, 1, 2].map(|at| members[at].sees()), [Some((3, 3)); 3]);
    let mut joined = Client(TcpStream::connect(third).unwrap());
    joined.ask(|out| request::startup(out, 0, "test", "1", None));
    let read = joined.prepare(READ);
    joined.execute(1, &read, &["x"]);
    assert_eq!(rows(&joined.receive().1).count, 1, "it has the schema, and answers");

    assert_eq!(error(&joined.query("LEAVE")), None);
    assert_eq!(
        watching.event(),
        ("TOPOLOGY_CHANGE".into(), "REMOVED_NODE".into(), third)
    );
    assert_eq!([0, 1].map(|at| members[at].sees()), [Some((2, 2)); 2]);
    joined.execute(2, &read, &["x"]);
    assert_eq!(rows(&joined.receive().1).count, 1, "it answers for a while");
    assert_eq!(
        members[2].ended.recv_timeout(LIMIT).unwrap(),
        Ok(()),
        "it ends by itself"
    );
    let again = Member::start(third, &[], Some(first), Growth::default());
    assert_eq!(watching.event().1, "NEW_NODE");
    assert_eq!(again.sees(), Some((3, 3)));
}

#[test]
fn a_node_that_cannot_join_says_why() {
    let [nobody, own] = free_addresses();
    let alone = Member::start(own, &[], Some(nobody), Growth::default());
    let refusal = alone.ended.recv_timeout(LIMIT).unwrap().unwrap_err();
    assert!(
        refusal.starts_with(&format!("{own} could not join the cluster: the contact {nobody}: ")),
        "{refusal}"
    );
}
