//! A cluster that changes under load: events reach the routing table.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use steelyard_client::connect::connect;
use steelyard_cql::request::Request;
use steelyard_cql::response::{self, Columns};
use steelyard_cql::{ColumnSpec, ColumnType, Header, V4, Value, code};
use steelyard_load::clock::Clock;
use steelyard_load::drive;
use steelyard_wire::{Done, Order, Proportions, Record, Routing, Schedule, Stop};
use steelyard_workload::murmur3;

use crate::last_done;
use crate::server::{Listening, column, start};

const LIMIT: Duration = Duration::from_secs(20);

/// The cluster as its nodes describe it, and what they have seen.
#[derive(Default)]
struct Cluster {
    /// Address and token of each member.
    members: Mutex<Vec<(SocketAddr, i64)>>,
    listening: Mutex<Vec<Listening>>,
    /// Connections that want events.
    registered: Mutex<Vec<TcpStream>>,
    /// Address of the node, and token of the key, of each operation.
    executed: Mutex<Vec<(SocketAddr, i64)>>,
    /// Whether `system.peers_v2` is there.
    has_ports: bool,
}

impl Cluster {
    fn start(self: &Arc<Self>) -> SocketAddr {
        let cluster = Arc::clone(self);
        // It listens until the program ends: server and cluster hold each other.
        let mut listening = self.listening.lock().unwrap();
        listening.push(start(usize::MAX, move |stream, header, request, out| {
            if matches!(request, Request::Register(_)) {
                cluster.registered.lock().unwrap().push(stream.try_clone().unwrap());
            }
            cluster.answer(stream.local_addr().unwrap(), header, request, out);
            true
        }));
        listening[listening.len() - 1].address
    }

    /// Changes the members, and sends the event.
    fn change(&self, members: Vec<(SocketAddr, i64)>) {
        *self.members.lock().unwrap() = members;
        let mut event = Vec::new();
        let node = SocketAddr::from(([127, 0, 0, 1], 0));
        response::event(&mut event, V4, "TOPOLOGY_CHANGE", "NEW_NODE", node);
        for stream in self.registered.lock().unwrap().iter_mut() {
            stream.write_all(&event).unwrap();
        }
    }

    fn answer(&self, own: SocketAddr, header: &Header, request: &Request<'_>, out: &mut Vec<u8>) {
        let (version, stream) = (header.version, header.stream);
        match request {
            Request::Options => response::supported(out, version, stream, &[]),
            Request::Startup(_) | Request::Register(_) => response::ready(out, version, stream),
            Request::Prepare { statement } => {
                response::prepared(out, version, stream, statement.as_bytes(), &[], &[0], &[]);
            }
            Request::Query { statement, .. } => self.system_table(own, statement, (version, stream), out),
            Request::Execute { parameters, .. } => {
                let key = { parameters.values }.next().unwrap().unwrap();
                self.executed.lock().unwrap().push((own, murmur3::token(key)));
                response::rows(out, version, stream, Columns::Counted(1), 1, |cells| {
                    Value::put_text(cells, "cell");
                });
            }
            other => panic!("{other:?}"),
        }
    }

    fn system_table(&self, own: SocketAddr, statement: &str, (version, stream): (u8, i16), out: &mut Vec<u8>) {
        if statement.contains("peers_v2") && !self.has_ports {
            return response::error(
                out,
                version,
                stream,
                code::INVALID,
                "no such table",
                &response::Detail::None,
            );
        }
        let text = || Box::new(ColumnType::Text);
        let map = ColumnType::Map(text(), text());
        let mut kinds = vec![
            ("release_version", ColumnType::Text),
            ("host_id", ColumnType::Uuid),
            ("data_center", ColumnType::Text),
            ("rack", ColumnType::Text),
            ("tokens", ColumnType::Set(text())),
            ("replication", map),
        ];
        if statement.contains("peers_v2") {
            kinds.extend([("native_address", ColumnType::Inet), ("native_port", ColumnType::Int)]);
        }
        let columns: Vec<ColumnSpec> = kinds.into_iter().map(|(name, kind)| column(name, kind)).collect();
        let peers = statement.contains("peers");
        let members = self.members.lock().unwrap();
        let rows: Vec<_> = members
            .iter()
            .filter(|(address, _)| (*address == own) != peers)
            .collect();
        response::rows(
            out,
            version,
            stream,
            Columns::Named(&columns),
            rows.len() as u32,
            |cells| {
                for (address, token) in &rows {
                    Value::Text("5.0.5").put(cells);
                    Value::Uuid(u128::from(address.port()).to_be_bytes()).put(cells);
                    Value::Text("dc1").put(cells);
                    Value::Text("r1").put(cells);
                    Value::List(vec![Value::Text(&token.to_string())]).put(cells);
                    Value::Map(vec![(Value::Text("class"), Value::Text("SimpleStrategy"))]).put(cells);
                    if columns.len() == 8 {
                        Value::Inet(IpAddr::from([127, 0, 0, 1])).put(cells);
                        Value::Int(address.port().into()).put(cells);
                    }
                }
            },
        );
    }

    /// Waits until the last 200 operations are such as `right` says of node and token.
    fn wait_until(&self, what: &str, right: impl Fn(SocketAddr, i64) -> bool, of_all: &[SocketAddr]) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let executed = self.executed.lock().unwrap();
            let last = &executed[executed.len().saturating_sub(200)..];
            let all = of_all
                .iter()
                .all(|node| last.iter().any(|(address, _)| address == node));
            if last.len() == 200 && all && last.iter().all(|(address, token)| right(*address, *token)) {
                return;
            }
            drop(executed);
            assert!(Instant::now() < deadline, "{what}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn order(contacts: &[SocketAddr], discover: bool) -> Order {
    let mut order: Order = serde_json::from_str(include_str!("../../../schema/order.example.json")).unwrap();
    order.contacts = contacts.iter().map(SocketAddr::to_string).collect();
    order.discover = discover;
    order.stop = Stop {
        keys: None,
        operations: None,
        duration_s: Some(120.0),
    };
    order.work.ycsb_mut().unwrap().proportions = Proportions {
        read: 1.0,
        ..Proportions::default()
    };
    order.schedule = Schedule::Closed { threads: 4 };
    order
}

/// Drives reads while `meanwhile` does something, then ends them. The load's end, and nodes with operations of their own later
/// than the others.
fn under_load(order: &Order, meanwhile: impl FnOnce()) -> (Done, Vec<String>) {
    let stop = AtomicBool::new(false);
    let (clients, _) = connect(order, &drive::slots(order, 2).unwrap()).unwrap();
    let mut out = Vec::new();
    thread::scope(|scope| {
        let driving = scope.spawn(|| drive::run(clients, order, Clock::start(), &stop, &mut out).unwrap());
        // Ended even if an assertion fails, so that the scope can.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(meanwhile));
        stop.store(true, Ordering::Relaxed);
        driving.join().unwrap();
        ended.unwrap();
    });
    let records = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let routed = records.filter_map(|line| match serde_json::from_slice(line).unwrap() {
        Record::Routed(routed) => Some(routed.contact),
        _ => None,
    });
    (last_done(&out), routed.collect())
}

#[test]
fn tokens_that_move_are_followed() {
    let cluster = Arc::new(Cluster::default());
    let nodes = [cluster.start(), cluster.start()];
    let tokens = [i64::MAX / 2, i64::MIN / 2];
    let first_owns = |token: i64| token > tokens[1] && token <= tokens[0];
    cluster.change(vec![(nodes[0], tokens[0]), (nodes[1], tokens[1])]);
    let (done, routed) = under_load(&order(&nodes, false), || {
        cluster.wait_until("before", |node, token| (node == nodes[0]) == first_owns(token), &nodes);
        cluster.change(vec![(nodes[0], tokens[1]), (nodes[1], tokens[0])]);
        cluster.wait_until("after", |node, token| (node == nodes[1]) == first_owns(token), &nodes);
    });
    assert_eq!((done.errors, done.reconnections, routed), (0, 0, vec![]));
}

#[test]
fn nodes_that_join_get_their_share_if_that_is_wished() {
    for (has_ports, discover) in [(true, true), (true, false)] {
        let cluster = Arc::new(Cluster {
            has_ports,
            ..Cluster::default()
        });
        let nodes = [cluster.start(), cluster.start()];
        cluster.change(vec![(nodes[0], 0)]);
        let (done, routed) = under_load(&order(&nodes[..1], discover), || {
            cluster.wait_until("before", |node, _| node == nodes[0], &nodes[..1]);
            cluster.change(vec![(nodes[0], 0), (nodes[1], i64::MAX)]);
            if discover {
                cluster.wait_until("after", |node, token| (node == nodes[1]) == (token > 0), &nodes);
            } else {
                // The other's keys go to whoever is there; so much later than the event they still do.
                thread::sleep(Duration::from_millis(600));
            }
        });
        assert_eq!((done.errors, done.reconnections), (0, 0));
        let joined = cluster
            .executed
            .lock()
            .unwrap()
            .iter()
            .any(|(node, _)| *node == nodes[1]);
        assert_eq!(joined, discover);
        let expected: Vec<String> = discover.then(|| nodes[1].to_string()).into_iter().collect();
        assert_eq!(routed, expected, "once, however many workers there are");
    }
}

#[test]
fn nothing_is_sent_to_a_node_that_has_left_until_it_is_back() {
    for routing in [Routing::Token, Routing::RoundRobin] {
        let cluster = Arc::new(Cluster::default());
        let nodes = [cluster.start(), cluster.start()];
        let both = vec![(nodes[0], 0), (nodes[1], i64::MAX)];
        cluster.change(both.clone());
        let mut order = order(&nodes, true);
        order.target.cql_mut().unwrap().routing = routing;
        // It answers all the time, as a node does that is on its way out: only the cluster's list says that it is gone.
        let (done, routed) = under_load(&order, || {
            cluster.wait_until("before", |_, _| true, &nodes);
            cluster.change(both[..1].to_vec());
            cluster.wait_until("left", |node, _| node == nodes[0], &nodes[..1]);
            cluster.change(both.clone());
            cluster.wait_until("back", |_, _| true, &nodes);
        });
        assert_eq!((done.errors, done.reconnections), (0, 0));
        assert_eq!(routed, [nodes[1].to_string()], "as one that has joined");
    }
}
