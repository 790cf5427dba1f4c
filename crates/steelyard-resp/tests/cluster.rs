//! Clusters of hand-written nodes: keys go to their nodes, also while hash slots move, nodes join, and masters are replaced.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use steelyard_resp::hash_slot;
use steelyard_resp::protocol::{put_array, put_bulk};
use steelyard_wire::{Action, Order, Proportions, Resp, Stop, Target};

use crate::server::{Server, start};
use crate::{drive, drive_until, order, refused};

type Hash = BTreeMap<Vec<u8>, Vec<u8>>;

thread_local! {
    /// Whether the command before was ASKING: a connection has a thread of its own.
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// What the nodes of a cluster share.
#[derive(Default)]
struct State {
    addresses: Vec<String>,
    /// The node of each hash slot.
    owners: Vec<usize>,
    /// Hash slots on their way, and where to; what is asked there is there already.
    moving: HashMap<u16, usize>,
    rows: HashMap<Vec<u8>, Hash>,
    index: Vec<(i64, Vec<u8>)>,
}

#[derive(Default)]
struct Cluster {
    state: Mutex<State>,
    /// Commands that were carried out, by node.
    served: [AtomicU64; 4],
    moved: AtomicU64,
    asked: AtomicU64,
    /// Nodes that take commands and answer none.
    silent: [AtomicBool; 4],
    /// Nodes that say that the cluster is down.
    down: [AtomicBool; 4],
    /// How often they said so.
    refused: AtomicU64,
    /// Commands that were left without an answer.
    unanswered: AtomicU64,
}

impl Cluster {
    /// `nodes` nodes, of which the first `owners` have the hash slots in turn.
    fn start(nodes: usize, owners: usize) -> (Arc<Self>, Vec<Server>) {
        let cluster = Arc::new(Self::default());
        cluster.own(|slot| slot % owners);
        let servers: Vec<Server> = (0..nodes).map(|node| cluster.serve(node)).collect();
        cluster.state.lock().unwrap().addresses = servers.iter().map(Server::contact).collect();
        (cluster, servers)
    }

    fn serve(self: &Arc<Self>, node: usize) -> Server {
        let cluster = Arc::clone(self);
        start(move |parts, out| {
            let asking = ASKING.replace(parts[0] == b"ASKING");
            if cluster.silent[node].load(Ordering::Relaxed) {
                cluster.unanswered.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            match parts[0] {
                b"ASKING" => out.extend_from_slice(b"+OK\r\n"),
                _ => cluster.answer(node, asking, parts, out),
            }
            true
        })
    }

    /// All hash slots are where they belong.
    fn own(&self, of: impl Fn(usize) -> usize) {
        let mut state = self.state.lock().unwrap();
        state.owners = (0..16_384).map(of).collect();
        state.moving.clear();
    }

    fn answer(&self, node: usize, asking: bool, parts: &[&[u8]], out: &mut Vec<u8>) {
        let mut state = self.state.lock().unwrap();
        match parts[0] {
            b"PING" => return out.extend_from_slice(b"+PONG\r\n"),
            b"INFO" => return put_bulk(b"redis_version:7.0\r\n", out),
            b"CLUSTER" => return state.put_slots(out),
            _ if self.down[node].load(Ordering::Relaxed) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return out.extend_from_slice(b"-CLUSTERDOWN The cluster is down\r\n");
            }
            _ => {}
        }
        let slot = hash_slot(parts[1]);
        let owner = state.owners[usize::from(slot)];
        let moving_to = state.moving.get(&slot).copied();
        let redirect = match moving_to {
            Some(to) if owner == node => Some(("ASK", to)),
            Some(to) if asking && to == node => None,
            _ if owner == node => None,
            _ => Some(("MOVED", owner)),
        };
        if let Some((word, to)) = redirect {
            let count = if word == "ASK" { &self.asked } else { &self.moved };
            count.fetch_add(1, Ordering::Relaxed);
            return out.extend_from_slice(format!("-{word} {slot} {}\r\n", state.addresses[to]).as_bytes());
        }
        self.served[node].fetch_add(1, Ordering::Relaxed);
        state.carry_out(parts, out);
    }

    fn served(&self) -> [u64; 4] {
        self.served.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

impl State {
    /// As Redis: a range of hash slots with its master. Here a range for each, which is allowed.
    fn put_slots(&self, out: &mut Vec<u8>) {
        put_array(self.owners.len(), out);
        for (slot, owner) in self.owners.iter().enumerate() {
            let (host, port) = self.addresses[*owner].rsplit_once(':').unwrap();
            out.extend_from_slice(format!("*3\r\n:{slot}\r\n:{slot}\r\n*3\r\n").as_bytes());
            put_bulk(host.as_bytes(), out);
            out.extend_from_slice(format!(":{port}\r\n$1\r\ni\r\n").as_bytes());
        }
    }

    fn carry_out(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) {
        match (parts[0], &parts[1..]) {
            (b"HMSET", [key, fields @ ..]) => {
                let row = self.rows.entry(key.to_vec()).or_default();
                row.extend(fields.chunks(2).map(|pair| (pair[0].to_vec(), pair[1].to_vec())));
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"HGETALL", [key]) => {
                let row = self.rows.get(*key).cloned().unwrap_or_default();
                put_array(2 * row.len(), out);
                row.iter()
                    .flat_map(|(field, value)| [field, value])
                    .for_each(|bytes| put_bulk(bytes, out));
            }
            (b"ZADD", [_, score, key]) => {
                let score = std::str::from_utf8(score).unwrap().parse().unwrap();
                self.index.push((score, key.to_vec()));
                out.extend_from_slice(b":1\r\n");
            }
            (b"ZRANGEBYSCORE", [_, score, b"+inf", b"LIMIT", b"0", count]) => {
                let number = |text: &[u8]| std::str::from_utf8(text).unwrap().parse::<i64>().unwrap();
                let (score, count) = (number(score), number(count) as usize);
                self.index.sort();
                let found: Vec<_> = self.index.iter().filter(|(at, _)| *at >= score).take(count).collect();
                put_array(found.len(), out);
                found.iter().for_each(|(_, key)| put_bulk(key, out));
            }
            (other, _) => panic!("{}", String::from_utf8_lossy(other)),
        }
    }
}

fn fill(contacts: &[String], change: impl FnOnce(&mut Order)) {
    let mut order = order(contacts, 0);
    order.action = Action::Populate;
    order.stop = Stop::default();
    order.work.ycsb_mut().unwrap().records = 1_000;
    change(&mut order);
    let done = drive(&order, 2).done;
    assert_eq!((done.operations, done.errors), (1_000, 0), "{done:?}");
}

/// Reads of what was filled, for that long at most.
fn reads(contacts: &[String]) -> Order {
    let mut order = order(contacts, 0);
    order.work.ycsb_mut().unwrap().records = 1_000;
    order.stop = Stop {
        duration_s: Some(60.0),
        ..Stop::default()
    };
    order
}

#[test]
fn keys_go_to_their_nodes_though_one_contact_is_given() {
    let (cluster, servers) = Cluster::start(3, 3);
    let contacts = [servers[0].contact()];
    fill(&contacts, |_| {});
    let mut order = reads(&contacts);
    order.stop = Stop {
        operations: Some(3_000),
        ..Stop::default()
    };
    let driven = drive(&order, 2);
    assert_eq!((driven.done.operations, driven.done.not_found), (3_000, 0));
    assert_eq!((driven.connected.nodes.len(), driven.connected.connections), (3, 6));
    assert_eq!(cluster.moved.load(Ordering::Relaxed), 0);
    assert!(
        cluster.served()[..3].iter().all(|served| *served > 1_000),
        "{:?}",
        cluster.served()
    );
}

#[test]
fn slots_move_to_a_node_that_joins_and_every_row_is_found() {
    let (cluster, servers) = Cluster::start(3, 2);
    let contacts: Vec<String> = servers[..2].iter().map(Server::contact).collect();
    fill(&contacts, |_| {});
    let (order, stop) = (reads(&contacts), AtomicBool::new(false));
    let driven = thread::scope(|scope| {
        let driving = scope.spawn(|| drive_until(&order, 2, &stop));
        let wait_for = |count: &AtomicU64, more: u64| {
            let before = count.load(Ordering::Relaxed);
            while count.load(Ordering::Relaxed) < before + more {
                thread::sleep(Duration::from_millis(5));
            }
        };
        wait_for(&cluster.served[0], 100);
        cluster.state.lock().unwrap().moving = (0..16_384).step_by(3).map(|slot| (slot, 2)).collect();
        wait_for(&cluster.served[2], 100);
        assert_eq!(cluster.moved.load(Ordering::Relaxed), 0);
        cluster.own(|slot| if slot % 3 == 0 { 2 } else { slot % 2 });
        wait_for(&cluster.served[2], 1_000);
        stop.store(true, Ordering::Relaxed);
        driving.join().unwrap()
    });
    assert_eq!((driven.done.errors, driven.done.not_found), (0, 0), "{:?}", driven.done);
    assert_eq!(driven.routed, [servers[2].contact()]);
    assert!(cluster.asked.load(Ordering::Relaxed) > 100);
    // Each worker is told once a slot at most, but for those that were on their way at that moment.
    let moved = cluster.moved.load(Ordering::Relaxed);
    assert!((100..2 * 1_000 + 16).contains(&moved), "{moved}");
    driven.nothing_is_lost();
}

#[test]
fn another_master_takes_over_from_one_that_died() {
    let (cluster, mut servers) = Cluster::start(3, 2);
    let contacts: Vec<String> = servers.iter().map(Server::contact).collect();
    fill(&contacts, |_| {});
    let (order, stop) = (reads(&contacts), AtomicBool::new(false));
    let driven = thread::scope(|scope| {
        let driving = scope.spawn(|| drive_until(&order, 1, &stop));
        thread::sleep(Duration::from_millis(200));
        // It stops answering before it dies: sooner or later each of the eight waits for it.
        cluster.silent[1].store(true, Ordering::Relaxed);
        while cluster.unanswered.load(Ordering::Relaxed) < 8 {
            thread::sleep(Duration::from_millis(5));
        }
        drop(servers.remove(1));
        thread::sleep(Duration::from_millis(300));
        // Until now what it had could not be read.
        cluster.own(|slot| if slot % 2 == 1 { 2 } else { 0 });
        while cluster.served()[2] < 1_000 {
            thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Ordering::Relaxed);
        driving.join().unwrap()
    });
    // Those in flight; the others waited for the new master.
    assert_eq!(driven.done.errors, 8, "{:?}", driven.done);
    assert_eq!(driven.done.not_found, 0);
    driven.nothing_is_lost();
}

#[test]
fn another_node_is_asked_once_if_one_serves_nothing() {
    let (cluster, servers) = Cluster::start(3, 2);
    let contacts: Vec<String> = servers.iter().map(Server::contact).collect();
    fill(&contacts, |_| {});
    let mut order = reads(&contacts);
    order.stop = Stop {
        operations: Some(3_000),
        ..Stop::default()
    };
    // The second master is cut off, and the others have put the third in its place; clients only hear of it from these.
    let (before, cut) = (cluster.served(), Arc::clone(&cluster));
    let driven = thread::scope(|scope| {
        let driving = scope.spawn(|| drive(&order, 1));
        while cut.served()[1] < before[1] + 100 {
            thread::yield_now();
        }
        let mut state = cut.state.lock().unwrap();
        state
            .owners
            .iter_mut()
            .filter(|owner| **owner == 1)
            .for_each(|owner| *owner = 2);
        cut.down[1].store(true, Ordering::Relaxed);
        drop(state);
        driving.join().unwrap()
    });
    assert_eq!(
        (driven.done.operations, driven.done.not_found),
        (3_000, 0),
        "{:?}",
        driven.done
    );
    assert!(cluster.refused.load(Ordering::Relaxed) > 0);
    // It is asked once for each slot: half of a thousand.
    assert!(cluster.refused.load(Ordering::Relaxed) < 600);
    driven.nothing_is_lost();
    cluster.down.iter().for_each(|down| down.store(true, Ordering::Relaxed));
    cluster.refused.store(0, Ordering::Relaxed);
    order.stop.operations = Some(20);
    let done = drive(&order, 1).done;
    assert_eq!((done.operations, done.errors_by_kind["unavailable"]), (0, 20));
    assert_eq!(cluster.refused.load(Ordering::Relaxed), 40);
}

#[test]
fn scans_read_the_index_and_then_the_rows() {
    let (cluster, servers) = Cluster::start(2, 2);
    let contacts = [servers[0].contact()];
    let index = Target::Resp(Resp {
        index: Some("_indices".to_owned()),
    });
    fill(&contacts, |order| order.target = index.clone());
    assert_eq!(cluster.state.lock().unwrap().index.len(), 1_000);
    let mut order = reads(&contacts);
    order.work.ycsb_mut().unwrap().proportions = Proportions {
        scan: 1.0,
        ..Proportions::default()
    };
    order.stop = Stop {
        operations: Some(50),
        ..Stop::default()
    };
    assert!(
        refused(&order)
            .to_string()
            .contains("work.proportions.scan: not possible over resp")
    );
    order.target = index;
    order.work.ycsb_mut().unwrap().validate_fraction = 1.0;
    let done = drive(&order, 1).done;
    assert_eq!((done.operations, done.errors), (50, 0));
    // Lengths are uniform from 1 to 100, and shorter at the end of the index.
    assert!((1_000..4_000).contains(&done.rows), "{}", done.rows);
    for row in cluster.state.lock().unwrap().rows.values_mut() {
        row.values_mut().next().unwrap()[0] ^= 1;
    }
    let wrong = drive(&order, 1).done;
    assert_eq!((wrong.operations, wrong.errors_by_kind["invalid"]), (0, 50));
}

#[test]
fn a_node_that_sends_in_circles_is_an_error_and_no_hang() {
    let (cluster, servers) = Cluster::start(2, 2);
    // Each says that the other has it.
    let contacts: Vec<String> = servers.iter().map(Server::contact).collect();
    let swapped = contacts.iter().rev().cloned().collect();
    let mut order = order(&contacts, 20);
    order.timeout_ms = 500;
    cluster.own(|_| 0);
    cluster.state.lock().unwrap().addresses = swapped;
    let done = drive(&order, 1).done;
    assert_eq!(
        (done.operations, done.errors_by_kind),
        (0, [("server".to_owned(), 20)].into())
    );
    assert!(done.error_texts["server"][0].starts_with("MOVED "));
}
