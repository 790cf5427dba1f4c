//! Several nodes: each has its turn, and the others share evenly what one of them cannot take.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use steelyard_testing::scenarios::paced;

use crate::server::{Server, put, start};
use crate::{drive, order};

fn nodes(count: usize) -> (Vec<Server>, Vec<Arc<AtomicU64>>) {
    let served: Vec<Arc<AtomicU64>> = (0..count).map(|_| Arc::default()).collect();
    let server = |count: &Arc<AtomicU64>| {
        let count = Arc::clone(count);
        start(move |request, out| {
            count.fetch_add(1, Ordering::Relaxed);
            put("200 OK", b"abc", out);
            !request.contains("Connection: close")
        })
    };
    (served.iter().map(server).collect(), served)
}

fn counts(served: &[Arc<AtomicU64>]) -> Vec<u64> {
    served.iter().map(|count| count.load(Ordering::Relaxed)).collect()
}

#[test]
fn nodes_are_asked_evenly() {
    for keep_alive in [true, false] {
        let (servers, served) = nodes(3);
        let contacts: Vec<String> = servers.iter().map(Server::contact).collect();
        let driven = drive(&order(&contacts, keep_alive, 3, 900), 1);
        assert_eq!((driven.done.operations, driven.done.errors), (900, 0));
        assert_eq!(counts(&served), [300, 300, 300]);
        assert_eq!(driven.connected.connections, if keep_alive { 9 } else { 0 });
    }
}

#[test]
fn the_others_share_what_a_dead_node_cannot_take() {
    for keep_alive in [true, false] {
        let (mut servers, served) = nodes(3);
        let contacts: Vec<String> = servers.iter().map(Server::contact).collect();
        let order = paced(order(&contacts, keep_alive, 3, 0), 600.0, 1.5);
        let killer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(500));
            drop(servers.remove(1));
            thread::sleep(Duration::from_millis(1_500));
            drop(servers);
        });
        let driven = drive(&order, 1);
        killer.join().unwrap();
        let (done, counts) = (&driven.done, counts(&served));
        // Those in flight, and those that found out that it is dead.
        assert!(done.errors < 20, "{done:?}");
        assert!(counts[0].abs_diff(counts[2]) <= 15, "{counts:?}");
        assert!(counts[0] > 370 && counts[1] < 150, "{counts:?}");
        driven.nothing_is_lost();
    }
}
