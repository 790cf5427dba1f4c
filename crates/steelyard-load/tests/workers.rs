//! Workers on the real clock: shares of the operations, merged counts, early ends, and orders that are refused.
#![allow(clippy::unwrap_used)]

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use steelyard_load::client::{Client, Completion};
use steelyard_load::clock::{Clock, Nanos};
use steelyard_load::drive::{self, DriveError};
use steelyard_load::outcome::Outcome;
use steelyard_load::schedule::expected_operations;
use steelyard_wire::{Order, Proportions, Record, RequestDistribution, Schedule, Stop};
use steelyard_workload::operation::Operation;
use steelyard_workload::stream::Stream;

use crate::drive::{constant, operations, order, seconds};
use crate::records;

/// Answers after a nap, on the real clock.
struct Napping(Vec<u32>, Arc<Mutex<Vec<Operation>>>);

impl Client for Napping {
    fn submit(&mut self, slot: u32, operation: &Operation) {
        self.0.push(slot);
        self.1.lock().unwrap().push(*operation);
    }

    fn abandon(&mut self, _slot: u32) -> Option<Nanos> {
        None
    }

    fn poll(&mut self, clock: &Clock, _until: Nanos, completions: &mut Vec<Completion>) -> io::Result<()> {
        std::thread::sleep(std::time::Duration::from_micros(100));
        let now = clock.now();
        let end = |slot| Completion {
            slot,
            outcome: Outcome::Ok,
            rows: 1,
            sent: Some(now),
            ready: 0,
            done: now,
        };
        completions.extend(self.0.drain(..).map(end));
        Ok(())
    }

    fn reconnections(&self) -> u64 {
        1
    }
}

#[test]
fn several_workers_share_the_operations_and_their_counts_are_merged() {
    let mut order = order(Schedule::Closed { threads: 5 }, operations(6_000));
    order.interval_s = 0.1;
    assert_eq!(drive::slots(&order, 3).unwrap(), [2, 2, 1]);
    assert_eq!(drive::slots(&order, 9).unwrap().len(), 5);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let clients = (0..3).map(|_| Napping(Vec::new(), Arc::clone(&seen))).collect();
    let mut out = Vec::new();
    drive::run(clients, &order, Clock::start(), &AtomicBool::new(false), &mut out).unwrap();
    let mut operations = std::mem::take(&mut *seen.lock().unwrap());
    operations.sort_unstable_by_key(|operation| operation.index);
    assert!(operations.iter().map(|operation| operation.index).eq(0..6_000));
    let records = records(&out);
    let Some(Record::Done(done)) = records.last() else {
        panic!()
    };
    assert_eq!((done.operations, done.dropped), (6_000, 0));
    let counted: u64 = records
        .iter()
        .map(|record| if let Record::Interval(i) = record { i.done } else { 0 })
        .sum();
    assert_eq!(counted, 6_000);
    assert!(records.len() > 2, "several intervals");
}

#[test]
fn operations_do_not_depend_on_the_number_of_workers() {
    let mut order = order(Schedule::Closed { threads: 6 }, operations(3_000));
    let ycsb = order.work.ycsb_mut().unwrap();
    (ycsb.request_distribution, ycsb.insert_lag) = (RequestDistribution::Latest, None);
    ycsb.proportions = Proportions {
        read: 0.5,
        insert: 0.5,
        ..Proportions::default()
    };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let clients = (0..3).map(|_| Napping(Vec::new(), Arc::clone(&seen))).collect();
    drive::run(
        clients,
        &order,
        Clock::start(),
        &AtomicBool::new(false),
        &mut Vec::new(),
    )
    .unwrap();
    let mut operations = std::mem::take(&mut *seen.lock().unwrap());
    operations.sort_unstable_by_key(|operation| operation.index);
    let mut whole = Stream::from_order(&order, expected_operations(&order), 0).unwrap();
    assert!(operations.into_iter().eq((0..3_000).map(|_| whole.next())));
}

/// Takes a number of lines, then is closed.
struct Closing(usize);

impl Write for Closing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_load() {
    let mut order = order(Schedule::Closed { threads: 1 }, seconds(3600.0));
    order.interval_s = 0.1;
    let client = Napping(Vec::new(), Arc::default());
    let ended = drive::run(
        vec![client],
        &order,
        Clock::start(),
        &AtomicBool::new(false),
        &mut Closing(1),
    );
    assert!(matches!(ended, Err(DriveError::Output(_))), "{ended:?}");
}

#[test]
fn orders_that_cannot_be_are_refused() {
    let none = order(Schedule::Closed { threads: 0 }, operations(1));
    assert_eq!(drive::slots(&none, 1).unwrap_err().field, "schedule.threads");
    let many = order(constant(1.0, 40_000), operations(1));
    assert_eq!(drive::slots(&many, 2).unwrap_err().field, "schedule.in_flight");
    assert!(drive::slots(&many, 3).is_ok());
    for (change, field) in [
        ((|order| order.interval_s = 0.05) as fn(&mut Order), "interval_s"),
        (|order| order.timeout_ms = 0, "timeout_ms"),
        (|order| order.tries = 0, "tries"),
        (|order| order.stop.duration_s = Some(f64::NAN), "stop.duration_s"),
    ] {
        let mut order = order(Schedule::Closed { threads: 1 }, operations(1));
        change(&mut order);
        let client = Napping(Vec::new(), Arc::default());
        let ended = drive::run(
            vec![client],
            &order,
            Clock::start(),
            &AtomicBool::new(false),
            &mut Vec::new(),
        );
        assert!(
            matches!(ended, Err(DriveError::Order(error)) if error.field == field),
            "{field}"
        );
    }
    let endless = order(Schedule::Closed { threads: 1 }, Stop::default());
    let client = Napping(Vec::new(), Arc::default());
    let ended = drive::run(
        vec![client],
        &endless,
        Clock::start(),
        &AtomicBool::new(false),
        &mut Vec::new(),
    );
    assert!(matches!(ended, Err(DriveError::Order(error)) if error.field == "stop"));
}
