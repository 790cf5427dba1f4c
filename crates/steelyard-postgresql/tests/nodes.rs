//! A primary and its replicas, hand-written: who is asked for what, and what a promotion changes.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use steelyard_testing::scenarios::paced;
use steelyard_wire::{Proportions, ReadFrom, Stop};

use crate::server::{REPLICAS, Server, WELCOME, done, row, start_at};
use crate::{drive, drive_until, order, refused, target};

/// A node that counts the reads and the writes that it is asked for.
struct Node {
    server: Server,
    is_replica: Arc<AtomicBool>,
    asked: Arc<[AtomicU64; 2]>,
    /// Names of its replicas; None: it does not show them.
    replicas: Arc<Mutex<Option<String>>>,
}

impl Node {
    fn start(is_replica: bool) -> Self {
        let (is_replica, asked) = (Arc::new(AtomicBool::new(is_replica)), Arc::<[AtomicU64; 2]>::default());
        let replicas = Arc::<Mutex<Option<String>>>::default();
        let (counts, named) = (Arc::clone(&asked), Arc::clone(&replicas));
        let address = "127.0.0.1:0".parse().unwrap();
        let server = start_at(address, WELCOME, Arc::clone(&is_replica), move |name, out| {
            if name == REPLICAS {
                row(named.lock().unwrap().as_deref(), out);
                return true;
            }
            counts[usize::from(name == "s1")].fetch_add(1, Ordering::Relaxed);
            done(name, out);
            true
        });
        Self {
            server,
            is_replica,
            asked,
            replicas,
        }
    }

    /// Names its replicas from now on; names that are no addresses are among them.
    fn sends_to(&self, replicas: &[&Node]) {
        let contacts = replicas.iter().map(|node| node.server.contact());
        let names: Vec<String> = contacts.chain(["pg_basebackup".to_owned(), String::new()]).collect();
        *self.replicas.lock().unwrap() = Some(names.join(" "));
    }

    /// Waits until it has answered more reads.
    fn is_read_from(&self) {
        let before = self.asked()[0];
        while self.asked()[0] < before + 50 {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until it answers no more reads.
    fn is_left_alone(&self) {
        let mut before = 0;
        while before < self.asked()[0] {
            before = self.asked()[0];
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Reads and writes.
    fn asked(&self) -> [u64; 2] {
        self.asked.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

fn contacts(nodes: &[Node]) -> Vec<String> {
    nodes.iter().map(|node| node.server.contact()).collect()
}

#[test]
fn writes_go_to_the_primary_and_reads_where_the_order_says() {
    for (read_from, shares) in [
        (ReadFrom::Primary, [0, 1_000, 0]),
        (ReadFrom::Replicas, [500, 0, 500]),
        (ReadFrom::Any, [333, 333, 333]),
    ] {
        let nodes = [true, false, true].map(Node::start);
        let mut order = order(&contacts(&nodes), 3_000);
        order.target = target(read_from);
        order.work.ycsb_mut().unwrap().proportions = Proportions {
            read: 1.0,
            update: 1.0,
            read_modify_write: 1.0,
            ..Proportions::default()
        };
        let driven = drive(&order, 1);
        assert_eq!((driven.done.operations, driven.done.errors), (3_000, 0));
        let asked: Vec<[u64; 2]> = nodes.iter().map(Node::asked).collect();
        let wrote = asked[1][1];
        assert_eq!((asked[0][1], asked[2][1]), (0, 0));
        assert!((1_850..2_150).contains(&wrote), "{asked:?}");
        // The reads of read-modify-writes are the primary's.
        for (number, share) in shares.into_iter().enumerate() {
            let (reads, wanted) = (asked[number][0], share + if number == 1 { 1_000 } else { 0 });
            assert!(reads.abs_diff(wanted) <= 130, "{read_from:?}: {asked:?}");
        }
        driven.nothing_is_lost();
    }
}

#[test]
fn replicas_that_come_and_go_are_read_from_as_long_as_they_stream() {
    for read_from in [ReadFrom::Replicas, ReadFrom::Any] {
        let [first, second] = [true, true].map(Node::start);
        let primary = Node::start(false);
        primary.sends_to(&[&first]);
        let mut order = order(&[primary.server.contact(), first.server.contact()], 0);
        (order.target, order.discover) = (target(read_from), true);
        let (order, stop) = (paced(order, 2_000.0, 60.0), AtomicBool::new(false));
        let driven = thread::scope(|scope| {
            let driving = scope.spawn(|| drive_until(&order, 2, &stop));
            first.is_read_from();
            assert_eq!(second.server.accepted(), 0);
            primary.sends_to(&[&first, &second]);
            second.is_read_from();
            first.is_read_from();
            // Its connections stand.
            primary.sends_to(&[&first]);
            second.is_left_alone();
            first.is_read_from();
            primary.sends_to(&[&second]);
            second.is_read_from();
            first.is_left_alone();
            stop.store(true, Ordering::Relaxed);
            driving.join().unwrap()
        });
        assert_eq!((driven.done.errors, driven.done.reconnections), (0, 0));
        let contact = second.server.contact();
        assert_eq!(driven.routed, [contact.clone(), contact], "each time that it joins");
        assert_eq!((second.server.accepted(), second.asked()[1]), (2, 0));
        driven.nothing_is_lost();
    }
}

#[test]
fn a_promoted_replica_says_who_joins_next() {
    let [replica, joined] = [true, true].map(Node::start);
    let primary = Node::start(false);
    primary.sends_to(&[&replica]);
    replica.sends_to(&[&joined]);
    let mut order = order(&[primary.server.contact(), replica.server.contact()], 0);
    (order.target, order.discover) = (target(ReadFrom::Any), true);
    let (order, stop) = (paced(order, 500.0, 60.0), AtomicBool::new(false));
    let driven = thread::scope(|scope| {
        let driving = scope.spawn(|| drive_until(&order, 1, &stop));
        replica.is_read_from();
        drop(primary);
        replica.is_read_from();
        assert_eq!(joined.server.accepted(), 0);
        replica.is_replica.store(false, Ordering::Relaxed);
        joined.is_read_from();
        replica.is_read_from();
        stop.store(true, Ordering::Relaxed);
        driving.join().unwrap()
    });
    assert_eq!(driven.routed, [joined.server.contact()]);
    driven.nothing_is_lost();
}

#[test]
fn what_reads_from_the_primary_or_does_not_discover_asks_for_no_replicas() {
    let [primary, replica] = [false, true].map(Node::start);
    let mut order = order(&[primary.server.contact()], 500);
    for (read_from, discover) in [(ReadFrom::Primary, true), (ReadFrom::Any, false)] {
        (order.target, order.discover) = (target(read_from), discover);
        primary.sends_to(&[&replica]);
        assert_eq!(drive(&order, 1).done.operations, 500);
    }
    assert_eq!((primary.server.accepted(), replica.server.accepted()), (2, 0));
}

#[test]
fn a_promotion_is_followed_without_being_announced() {
    let [primary, replica] = [false, true].map(Node::start);
    let mut order = order(&[primary.server.contact(), replica.server.contact()], 0);
    order.work.ycsb_mut().unwrap().proportions = Proportions {
        update: 1.0,
        ..Proportions::default()
    };
    let (is_replica, asked) = (Arc::clone(&replica.is_replica), Arc::clone(&replica.asked));
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        drop(primary);
        thread::sleep(Duration::from_millis(300));
        is_replica.store(false, Ordering::Relaxed);
    });
    let driven = drive(&paced(order, 500.0, 2.0), 1);
    killer.join().unwrap();
    let (done, asked) = (
        &driven.done,
        asked.each_ref().map(|count| count.load(Ordering::Relaxed)),
    );
    // What was in flight; the others waited for the new primary, as long as places in flight were left.
    assert!(done.errors <= 64 && done.operations >= 900, "{done:?}");
    assert!(asked[0] == 0 && asked[1] >= 500, "{asked:?}");
    // What waited when the replica took over waited for it 300 ms and no more than a moment longer.
    assert!(driven.later_than(700) == 0, "{}", driven.later_than(700));
    driven.nothing_is_lost();
}

#[test]
fn what_is_not_there_is_refused_in_words() {
    let nodes = [true, true].map(Node::start);
    let none = order(&contacts(&nodes), 1);
    assert!(refused(&none).to_string().contains("is a primary"));
    let two = [false, false].map(Node::start);
    assert!(
        refused(&order(&contacts(&two), 1))
            .to_string()
            .contains("are primaries")
    );
    let primary = Node::start(false);
    let mut alone = order(&[primary.server.contact()], 1);
    alone.target = target(ReadFrom::Replicas);
    assert!(
        refused(&alone)
            .to_string()
            .starts_with("target.read_from: replicas, but")
    );
    alone.target = target(ReadFrom::Any);
    alone.discover = true;
    let said = refused(&alone).to_string();
    assert!(said.ends_with("does not show its replicas to steelyard"), "{said}");
    alone.discover = false;
    alone.contacts.push("127.0.0.1:1".to_owned());
    assert_eq!(refused(&alone).to_string(), "127.0.0.1:1 refused the connection");
    alone.some_contacts = true;
    alone.stop = Stop {
        operations: Some(10),
        ..Stop::default()
    };
    let driven = drive(&alone, 1);
    assert_eq!((driven.done.operations, driven.connected.absent.len()), (10, 1));
}
