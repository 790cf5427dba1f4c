//! Scenarios that the client of any protocol must pass, against hand-written servers of that protocol.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{io, thread};

use steelyard_wire::{Action, Order, Proportions, Schedule, Stop};

use crate::driven::Driven;
use crate::server::Server;

/// What a server does when it is asked to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It answers with a row.
    Row,
    /// It answers that there is none.
    NoRow,
    /// It closes the connection without an answer.
    Close,
}

/// Says what is done with each read in turn, and when: it may wait.
pub type Replying = Arc<dyn Fn() -> Reply + Send + Sync>;

/// A protocol with its client.
pub struct Protocol {
    /// A server of it.
    pub serve: fn(SocketAddr, Replying) -> Server,
    /// Reads from those contacts, as many, in a closed loop of eight.
    pub order: fn(&[String], u64) -> Order,
    /// The load of an order, with one worker.
    pub drive: fn(&Order) -> Driven,
}

impl Protocol {
    fn start(&self, replying: impl Fn() -> Reply + Send + Sync + 'static) -> Server {
        (self.serve)("127.0.0.1:0".parse().unwrap(), Arc::new(replying))
    }

    /// Operations due during a stall of the server are late by what was left of it, and all are sent. Other programs may
    /// make more of them late, so one run of three must have no others.
    pub fn sees_a_planted_stall_as_the_schedule_says(&self) {
        assert!(
            (0..3).any(|_| self.late_without_the_stall() <= 30),
            "operations were late without a stall, three times"
        );
    }

    /// The most operations of a run that were later than a planted stall made them.
    fn late_without_the_stall(&self) -> u64 {
        const STALL_MS: u64 = 600;
        let reads = AtomicU64::new(0);
        let server = self.start(move || {
            if reads.fetch_add(1, Ordering::Relaxed) == 300 {
                thread::sleep(Duration::from_millis(STALL_MS));
            }
            Reply::Row
        });
        let driven = (self.drive)(&paced((self.order)(&[server.contact()], 0), 1_000.0, 1.5));
        assert_eq!(
            (driven.done.operations, driven.done.errors, driven.done.unsent),
            (1_500, 0, 0)
        );
        let more = [100, 300, 500].map(|ms| {
            let (late, wanted) = (driven.later_than(ms), STALL_MS - ms);
            assert!(late + 30 >= wanted, "{late} later than {ms} ms, not {wanted}");
            late.saturating_sub(wanted)
        });
        more.into_iter().max().unwrap_or(0)
    }

    /// A connection that is lost ends what was in flight, and is made again.
    pub fn survives_a_lost_connection(&self) {
        let reads = AtomicU64::new(0);
        let server = self.start(move || match reads.fetch_add(1, Ordering::Relaxed) {
            500 => Reply::Close,
            _ => Reply::Row,
        });
        let driven = (self.drive)(&(self.order)(&[server.contact()], 2_000));
        let done = &driven.done;
        assert_eq!(
            (done.operations + done.errors, done.reconnections),
            (2_000, 1),
            "{done:?}"
        );
        assert!((1..=8).contains(&done.errors), "{done:?}");
        assert_eq!(done.errors_by_kind.keys().collect::<Vec<_>>(), ["connection"]);
        driven.nothing_is_lost();
    }

    /// A killed server loses nothing and is found again.
    pub fn survives_a_killed_server(&self) {
        let server = self.start(|| Reply::Row);
        let (address, serve) = (server.address, self.serve);
        let mut order = paced((self.order)(&[server.contact()], 0), 500.0, 2.0);
        order.timeout_ms = 300;
        let killer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(500));
            drop(server);
            thread::sleep(Duration::from_millis(500));
            serve(address, Arc::new(|| Reply::Row))
        });
        let driven = (self.drive)(&order);
        drop(killer.join().unwrap());
        let done = &driven.done;
        assert!(
            done.operations > 300 && done.errors > 0 && done.reconnections == 1,
            "{done:?}"
        );
        driven.nothing_is_lost();
    }

    /// The answer to an operation that was given up is not taken for the next one's.
    pub fn drops_an_answer_that_comes_too_late(&self) {
        let reads = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&reads);
        let server = self.start(move || {
            if seen.fetch_add(1, Ordering::Relaxed) == 100 {
                thread::sleep(Duration::from_millis(1600));
                return Reply::NoRow;
            }
            Reply::Row
        });
        let mut order = (self.order)(&[server.contact()], 500);
        order.schedule = Schedule::Closed { threads: 1 };
        // Longer than a busy machine keeps any of the others waiting.
        order.timeout_ms = 400;
        let done = (self.drive)(&order).done;
        assert_eq!(
            (done.operations + done.errors, done.not_found, done.reconnections),
            (500, 0, 0),
            "{done:?}"
        );
        assert!((3..=5).contains(&done.errors_by_kind["timeout"]), "{done:?}");
        assert_eq!(reads.load(Ordering::Relaxed), 500);
    }
}

/// The contact of a null server, which serves until the test program ends.
pub fn null_server(serve: fn(SocketAddr, mpsc::Sender<SocketAddr>) -> io::Result<()>) -> String {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || serve("127.0.0.1:0".parse().unwrap(), sender));
    receiver.recv().unwrap().to_string()
}

/// 2,000 of YCSB's operations of every kind are answered by a null server over as many connections, and a fill is.
pub fn is_answered_by_the_null_server(mut order: Order, connections: u32, drive: impl Fn(&Order) -> Driven) {
    order.work.ycsb_mut().unwrap().proportions = Proportions {
        read: 0.2,
        update: 0.2,
        insert: 0.2,
        scan: 0.2,
        read_modify_write: 0.2,
    };
    let driven = drive(&order);
    let done = &driven.done;
    assert_eq!(
        (done.operations, done.errors, done.not_found),
        (2_000, 0, 0),
        "{done:?}"
    );
    // The null server finds one row for each scan.
    assert!((300..500).contains(&done.rows), "{}", done.rows);
    let connected = &driven.connected;
    assert_eq!(
        (connected.connections, connected.server.as_str()),
        (connections, "null")
    );
    assert_eq!(connected.nodes, order.contacts);
    driven.nothing_is_lost();
    order.action = Action::Populate;
    order.stop = Stop::default();
    order.work.ycsb_mut().unwrap().records = 3_000;
    let filled = drive(&order).done;
    assert_eq!(
        (filled.phase.as_str(), filled.operations, filled.errors),
        ("populate", 3_000, 0)
    );
}

/// As many operations a second, for that long.
pub fn paced(mut order: Order, rate_per_s: f64, duration_s: f64) -> Order {
    order.stop = Stop {
        duration_s: Some(duration_s),
        ..Stop::default()
    };
    order.schedule = Schedule::Constant {
        rate_per_s,
        in_flight: 64,
    };
    order
}
