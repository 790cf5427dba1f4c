//! A primary and its replicas, hand-written: who is asked for what, and what a promotion changes.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use steelyard_testing::scenarios::paced;
use steelyard_wire::{Proportions, ReadFrom, Stop};

use crate::server::{Server, WELCOME, done, start_at};
use crate::{drive, order, refused, target};

/// A node that counts the reads and the writes that it is asked for.
struct Node {
    server: Server,
    is_replica: Arc<AtomicBool>,
    asked: Arc<[AtomicU64; 2]>,
}

impl Node {
    fn start(is_replica: bool) -> Self {
        let (is_replica, asked) = (Arc::new(AtomicBool::new(is_replica)), Arc::<[AtomicU64; 2]>::default());
        let counts = Arc::clone(&asked);
        let address = "127.0.0.1:0".parse().unwrap();
        let server = start_at(address, WELCOME, Arc::clone(&is_replica), move |name, out| {
            counts[usize::from(name == "s1")].fetch_add(1, Ordering::Relaxed);
            done(name, out);
            true
        });
        Self {
            server,
            is_replica,
            asked,
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
