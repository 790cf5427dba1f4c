//! The driving loop against a client that answers by rule, on a clock that is moved by hand: exact, and without waiting.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use steelyard_load::client::{Client, Completion};
use steelyard_load::clock::{Clock, Nanos};
use steelyard_load::drive;
use steelyard_load::outcome::Outcome;
use steelyard_wire::{Action, Done, Interval, Order, Proportions, Record, Schedule, Share, Stop};
use steelyard_workload::operation::Operation;
use steelyard_workload::ycsb::Kind;

use crate::{intervals_and_done, records};

pub const MS: Nanos = 1_000_000;
pub const S: Nanos = 1_000 * MS;

pub type Rule = Box<dyn Fn(&Operation, Nanos) -> Answer + Send>;

/// What the fake does with an operation sent at an instant.
pub enum Answer {
    At(Nanos, Outcome),
    Never,
    /// It is not even sent.
    Held,
}

type Promise = Option<(Nanos, Outcome)>;

/// Answers after a time, moving the clock's hand to the next thing that happens.
pub struct Fake {
    hand: &'static AtomicU64,
    rule: Rule,
    unsent: Vec<(u32, Operation)>,
    /// Slot, when it was sent, and its answer if there will be one.
    flying: Vec<(u32, Nanos, Promise)>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
pub struct Seen {
    pub operations: Vec<Operation>,
    most_in_flight: usize,
}

impl Fake {
    pub fn new(hand: &'static AtomicU64, rule: Rule, seen: &Arc<Mutex<Seen>>) -> Fake {
        Fake {
            hand,
            rule,
            unsent: Vec::new(),
            flying: Vec::new(),
            seen: Arc::clone(seen),
        }
    }
}

impl Client for Fake {
    fn submit(&mut self, slot: u32, operation: &Operation) {
        self.unsent.push((slot, *operation));
        self.seen.lock().unwrap().operations.push(*operation);
    }

    fn abandon(&mut self, slot: u32) -> Option<Nanos> {
        self.unsent.retain(|(other, _)| *other != slot);
        let place = self.flying.iter().position(|(other, ..)| *other == slot)?;
        Some(self.flying.remove(place).1)
    }

    fn poll(&mut self, clock: &Clock, until: Nanos, completions: &mut Vec<Completion>) -> io::Result<()> {
        let now = clock.now();
        let mut held = Vec::new();
        for (slot, operation) in self.unsent.drain(..) {
            match (self.rule)(&operation, now) {
                Answer::At(at, outcome) => self.flying.push((slot, now, Some((at, outcome)))),
                Answer::Never => self.flying.push((slot, now, None)),
                Answer::Held => held.push((slot, operation)),
            }
        }
        self.unsent = held;
        let mut seen = self.seen.lock().unwrap();
        seen.most_in_flight = seen.most_in_flight.max(self.flying.len());
        let next = self
            .flying
            .iter()
            .filter_map(|(_, _, answer)| answer.map(|(at, _)| at))
            .min();
        let done = next.unwrap_or(Nanos::MAX).min(until).max(now);
        self.hand.store(done, Ordering::Relaxed);
        self.flying.retain(|(slot, sent, answer)| match answer {
            Some((at, outcome)) if *at <= done => {
                let rows = if outcome.is_error() { 0 } else { 1 };
                completions.push(Completion {
                    slot: *slot,
                    outcome: *outcome,
                    rows,
                    sent: Some(*sent),
                    ready: 0,
                    done,
                });
                false
            }
            _ => true,
        });
        Ok(())
    }

    fn reconnections(&self) -> u64 {
        0
    }
}

pub fn order(schedule: Schedule, stop: Stop) -> Order {
    let mut order: Order = serde_json::from_str(include_str!("../../../schema/order.example.json")).unwrap();
    order.schedule = schedule;
    order.stop = stop;
    order.work.ycsb_mut().unwrap().proportions = Proportions {
        read: 1.0,
        ..Proportions::default()
    };
    order
}

pub fn constant(rate_per_s: f64, in_flight: u32) -> Schedule {
    Schedule::Constant { rate_per_s, in_flight }
}

pub fn operations(operations: u64) -> Stop {
    Stop {
        keys: None,
        operations: Some(operations),
        duration_s: None,
    }
}

pub fn seconds(duration_s: f64) -> Stop {
    Stop {
        keys: None,
        operations: None,
        duration_s: Some(duration_s),
    }
}

pub struct Run {
    pub intervals: Vec<Interval>,
    pub done: Vec<Done>,
    pub seen: Arc<Mutex<Seen>>,
}

impl Run {
    /// (nanoseconds, count) of one measure over all intervals, kinds and outcomes of the measured phase.
    fn measure(&self, name: &str) -> Vec<(u64, u64)> {
        let counts = self
            .intervals
            .iter()
            .filter(|interval| interval.phase != "warm-up")
            .flat_map(|i| &i.counts);
        let buckets = counts
            .filter(|counts| counts.measure == name)
            .flat_map(|counts| &counts.buckets);
        buckets.map(|(low, _, count)| (*low, *count)).collect()
    }

    fn count(&self, name: &str, keep: impl Fn(u64) -> bool) -> u64 {
        self.measure(name)
            .into_iter()
            .filter(|(ns, _)| keep(*ns))
            .map(|(_, count)| count)
            .sum()
    }
}

fn drive(order: &Order, rule: impl Fn(&Operation, Nanos) -> Answer + Send + 'static) -> Run {
    let hand: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(S)));
    let seen = Arc::new(Mutex::new(Seen::default()));
    let fake = Fake::new(hand, Box::new(rule), &seen);
    let mut out = Vec::new();
    drive::run(
        vec![fake],
        order,
        Clock::by_hand(hand),
        &AtomicBool::new(false),
        &mut out,
    )
    .unwrap();
    let (intervals, done) = intervals_and_done(&out);
    Run { intervals, done, seen }
}

pub fn after(service: Nanos) -> impl Fn(&Operation, Nanos) -> Answer + Send {
    move |_, sent| Answer::At(sent + service, Outcome::Ok)
}

#[test]
fn a_closed_loop_keeps_its_threads_in_flight_and_nothing_is_late() {
    let run = drive(&order(Schedule::Closed { threads: 8 }, operations(1000)), after(MS));
    let seen = run.seen.lock().unwrap();
    assert_eq!((seen.most_in_flight, seen.operations.len()), (8, 1000));
    assert!(seen.operations.iter().map(|operation| operation.index).eq(0..1000));
    assert_eq!((run.done[0].operations, run.done[0].execution_ns), (1000, 125 * MS));
    assert_eq!(run.count("lag", |ns| ns > 1), 0);
    assert_eq!(run.measure("response"), run.measure("service"));
}

#[test]
fn an_open_loop_sends_on_time_and_counts_intervals_exactly() {
    let run = drive(&order(constant(2000.0, 16), seconds(2.0)), after(MS));
    assert_eq!(run.done[0].operations, 4000);
    assert_eq!(run.count("lag", |ns| ns > 1), 0);
    let sent: Vec<u64> = run.intervals.iter().map(|interval| interval.sent).collect();
    let done: u64 = run.intervals.iter().map(|interval| interval.done).sum();
    assert_eq!((sent[0], sent.iter().sum::<u64>(), done), (2000, 4000, 4000));
    assert_eq!(run.intervals[0].seconds, 1.0);
}

/// The proof against coordinated omission: during a stall of 2 s of a load of 1,000/s for 20 s, nothing is skipped, the
/// response time shows the stall, and the service time only of what was in flight when it began.
#[test]
fn a_stall_is_seen_in_response_but_not_in_service_time() {
    let stall = |_: &Operation, sent: Nanos| {
        let end = if (6 * S..8 * S).contains(&sent) { 8 * S } else { 0 };
        Answer::At((sent + MS).max(end), Outcome::Ok)
    };
    let run = drive(&order(constant(1000.0, 4), seconds(20.0)), stall);
    assert_eq!((run.done[0].operations, run.done[0].errors), (20_000, 0));
    assert_eq!(run.count("service", |ns| ns > 2 * MS), 4);
    let late = run.count("response", |ns| ns > 100 * MS);
    // 2,000 were due in the stall; what they held up is worked off at 4,000/s.
    assert!((1900..=2700).contains(&late), "{late}");
    assert_eq!(run.count("response", |ns| ns > 2100 * MS), 0);
    // The generator was ready all the time: waiting for a place in flight is not its delay.
    assert_eq!(run.count("pacing", |ns| ns > MS), 0);
    let backlogs: Vec<u64> = run.intervals.iter().map(|interval| interval.backlog).collect();
    assert!(
        backlogs[5] > 900 && backlogs[3] == 0 && backlogs[19] == 0,
        "{backlogs:?}"
    );
}

#[test]
fn an_operation_without_an_answer_times_out_and_the_load_goes_on() {
    let mut order = order(Schedule::Closed { threads: 2 }, operations(100));
    order.timeout_ms = 50;
    let run = drive(&order, |operation, sent| match operation.index {
        7 => Answer::Never,
        _ => Answer::At(sent + MS, Outcome::Ok),
    });
    let done = &run.done[0];
    assert_eq!((done.operations, done.errors), (99, 1));
    assert_eq!(done.errors_by_kind, [("timeout".to_owned(), 1)].into());
    assert_eq!(run.count("response", |ns| ns > 40 * MS), 1);
}

#[test]
fn a_request_is_tried_again_until_its_answer_is_no_error_and_counts_once() {
    let mut order = order(constant(10.0, 4), operations(5));
    order.tries = 3;
    order.timeout_ms = 50;
    let failures = [0_u32, 2, 3, 9, 8].map(AtomicU32::new);
    let run = drive(&order, move |operation, now| {
        let left = &failures[operation.index as usize];
        match left.load(Ordering::Relaxed) {
            0 => Answer::At(now + MS, Outcome::Ok),
            // A row that is not what was written stays so, however often it is read.
            9 => Answer::At(now + MS, Outcome::Invalid),
            // No connection for a whole time-out: it is not waited for three times.
            8 => Answer::Held,
            more => {
                left.store(more - 1, Ordering::Relaxed);
                if more == 2 {
                    Answer::Never
                } else {
                    Answer::At(now + MS, Outcome::Server)
                }
            }
        }
    });
    let done = &run.done[0];
    assert_eq!((done.operations, done.errors), (2, 3));
    assert_eq!(done.errors_by_kind.get("connection"), Some(&1));
    assert_eq!(done.errors_by_kind.get("server"), Some(&1));
    assert_eq!(done.errors_by_kind.get("invalid"), Some(&1));
    assert_eq!(run.seen.lock().unwrap().operations.len(), 1 + 3 + 3 + 1 + 1);
    // From the first to the last: a time-out of 50 ms, and twice 1 ms.
    assert_eq!(run.count("service", |ns| ns.abs_diff(52 * MS) < MS), 2);
}

#[test]
fn what_finds_no_connection_ends_as_such_and_has_no_service_time() {
    let mut order = order(Schedule::Closed { threads: 1 }, operations(3));
    order.timeout_ms = 50;
    let run = drive(&order, |_, _| Answer::Held);
    assert_eq!(run.done[0].errors_by_kind, [("connection".to_owned(), 3)].into());
    assert_eq!(
        (run.count("response", |_| true), run.count("service", |_| true)),
        (3, 0)
    );
}

#[test]
fn a_hopeless_backlog_is_given_up_a_phases_length_after_its_end_and_counted() {
    let mut order = order(constant(1000.0, 1), seconds(1.0));
    order.timeout_ms = 100;
    let run = drive(&order, after(10 * MS));
    let done = &run.done[0];
    assert_eq!((done.operations + done.unsent, done.errors), (1000, 0));
    assert!((795..=800).contains(&done.unsent), "{}", done.unsent);
    assert_eq!(run.count("response", |_| true), done.operations);
}

#[test]
fn an_order_says_how_long_a_backlog_is_sent_after_the_end() {
    for (drain_s, sent) in [(0.0, 100..=102), (0.25, 124..=127), (5.0, 600..=602)] {
        let mut order = order(constant(700.0, 1), seconds(1.0));
        order.drain_s = Some(drain_s);
        let run = drive(&order, after(10 * MS));
        let done = &run.done[0];
        assert!(sent.contains(&done.operations), "{drain_s}: {}", done.operations);
        assert_eq!((done.operations + done.unsent, done.errors), (700, 0));
        assert!(done.execution_ns <= (1.02e9 + drain_s * 1e9) as u64);
    }
}

#[test]
fn a_read_modify_write_is_one_operation_of_two_parts() {
    let mut order = order(Schedule::Closed { threads: 1 }, operations(10));
    order.work.ycsb_mut().unwrap().proportions = Proportions {
        read_modify_write: 1.0,
        ..Proportions::default()
    };
    let run = drive(&order, |operation, sent| match (operation.step, operation.index) {
        (0, 3) => Answer::At(sent + MS, Outcome::NotFound),
        (1, 4) => Answer::At(sent + 2 * MS, Outcome::WriteTimeout),
        (1, _) => Answer::At(sent + 2 * MS, Outcome::Ok),
        _ => Answer::At(sent + MS, Outcome::Ok),
    });
    let done = &run.done[0];
    assert_eq!(
        (done.operations, done.errors, done.not_found, done.execution_ns),
        (9, 1, 1, 30 * MS)
    );
    let of = |kind: &str, measure: &str| -> u64 {
        let counts = run.intervals.iter().flat_map(|interval| &interval.counts);
        let mine = counts.filter(|counts| counts.operation == kind && counts.measure == measure);
        mine.flat_map(|counts| &counts.buckets).map(|(_, _, count)| count).sum()
    };
    assert_eq!(
        (of("read-modify-write", "response"), of("read-modify-write", "service")),
        (10, 10)
    );
    assert_eq!(
        (of("read", "part"), of("update", "part"), of("read", "service")),
        (10, 10, 0)
    );
    assert_eq!(run.count("service", |ns| ns > 29 * MS / 10), 10);
}

#[test]
fn the_warm_up_is_a_phase_of_its_own_and_the_indices_go_on() {
    let mut order = order(Schedule::Closed { threads: 1 }, operations(50));
    order.warm_up_s = 0.1;
    let run = drive(&order, after(MS));
    let phases: Vec<(&str, u64)> = run
        .done
        .iter()
        .map(|done| (done.phase.as_str(), done.operations))
        .collect();
    assert_eq!(phases, [("warm-up", 100), ("measure", 50)]);
    assert!(
        run.seen
            .lock()
            .unwrap()
            .operations
            .iter()
            .map(|operation| operation.index)
            .eq(0..150)
    );
}

#[test]
fn populate_inserts_its_share_of_the_records_once() {
    let mut order = order(Schedule::Closed { threads: 4 }, Stop::default());
    order.action = Action::Populate;
    order.work.ycsb_mut().unwrap().records = 100;
    order.share = Share { index: 1, of: 3 };
    let run = drive(&order, after(MS));
    assert_eq!((run.done[0].phase.as_str(), run.done[0].operations), ("populate", 33));
    let seen = run.seen.lock().unwrap();
    assert!(
        seen.operations
            .iter()
            .all(|operation| operation.kind == Kind::Insert as u16)
    );
    assert!(
        seen.operations
            .iter()
            .map(|operation| operation.key)
            .eq((1..100).step_by(3))
    );
}

/// What a store of rows has been told, and what it makes of it.
#[derive(Default)]
struct Store {
    /// By key and field: the version that it holds, the last that it acknowledged, and those of which it said nothing.
    rows: HashMap<(u64, u32), (u64, u64, Vec<u64>)>,
    /// Rows that were asked for, with the first version that was expected, and whether they are shown late.
    asked: HashMap<(u64, u32), (u64, bool)>,
    lost: u64,
    late: u64,
}

impl Store {
    /// It forgets every thirteenth write, and says nothing of every seventeenth.
    fn write(&mut self, row: (u64, u32), version: u64) -> bool {
        let (holds, last, unsaid) = self.rows.entry(row).or_default();
        if version % 13 != 0 {
            *holds = version;
        }
        if version % 17 == 0 {
            unsaid.push(version);
            return false;
        }
        *last = version;
        true
    }

    /// Every seventh row is shown only when it is asked for a second time.
    fn read(&mut self, row: (u64, u32), expects: u64) -> Outcome {
        let (holds, last, unsaid) = &self.rows[&row];
        let lost = holds != last && !unsaid.contains(holds);
        let late = !lost && row.0 % 7 == 0;
        let again = self.asked.get(&row).is_some_and(|(first, _)| *first == expects);
        if let Entry::Vacant(asked) = self.asked.entry(row) {
            asked.insert((expects, late));
            (self.lost, self.late) = (self.lost + u64::from(lost), self.late + u64::from(late));
        } else if again {
            self.asked.insert(row, (expects, false));
        }
        match self.asked[&row].1 {
            true => Outcome::NotFound,
            false if *holds == expects => Outcome::Ok,
            false => Outcome::Invalid,
        }
    }
}

#[test]
fn acknowledged_writes_that_are_not_there_are_found_and_no_others() {
    let mut order = order(Schedule::Closed { threads: 1 }, operations(4000));
    (order.timeout_ms, order.read_again_s) = (50, Some(0.2));
    let ycsb = order.work.ycsb_mut().unwrap();
    ycsb.records = 1000;
    ycsb.proportions = serde_json::from_str(r#"{"update": 0.9, "read_modify_write": 0.1}"#).unwrap();
    let store = Arc::new(Mutex::new(Store::default()));
    let kept = Arc::clone(&store);
    let run = drive(&order, move |operation, sent| {
        let (row, mut store) = ((operation.key, operation.field), kept.lock().unwrap());
        match Kind::of(operation) {
            Kind::Update if !store.write(row, operation.version(Action::Load)) => Answer::Never,
            Kind::Read if operation.expects > 0 => Answer::At(sent + MS, store.read(row, operation.expects)),
            _ => Answer::At(sent + MS, Outcome::Ok),
        }
    });
    let names: Vec<&str> = run.done.iter().map(|done| done.phase.as_str()).collect();
    assert_eq!(names, ["measure", "read-back", "read-again"]);
    let wrong = |done: &Done| done.not_found + done.errors_by_kind.get("invalid").copied().unwrap_or(0);
    let store = store.lock().unwrap();
    assert!(store.lost > 10 && store.late > 10, "{} {}", store.lost, store.late);
    assert_eq!(
        (wrong(&run.done[1]), wrong(&run.done[2])),
        (store.lost + store.late, store.lost)
    );
    let rows = store.rows.values().filter(|(_, last, _)| *last > 0).count() as u64;
    assert_eq!(run.done[1].operations + run.done[1].errors, rows);
    assert!(run.done[2].error_texts["invalid"][0].contains("none of the versions"));
}

/// Sends 1 ms after it could have, and says of second steps that they had to wait for a connection.
struct Late {
    hand: &'static AtomicU64,
    unsent: Vec<(u32, u16)>,
}

impl Client for Late {
    fn submit(&mut self, slot: u32, operation: &Operation) {
        self.unsent.push((slot, operation.step));
    }

    fn abandon(&mut self, _slot: u32) -> Option<Nanos> {
        None
    }

    fn poll(&mut self, clock: &Clock, until: Nanos, completions: &mut Vec<Completion>) -> io::Result<()> {
        if self.unsent.is_empty() {
            self.hand.fetch_max(until, Ordering::Relaxed);
        }
        for (slot, step) in self.unsent.drain(..) {
            let sent = clock.now() + MS;
            self.hand.store(sent + MS, Ordering::Relaxed);
            completions.push(Completion {
                slot,
                outcome: Outcome::Ok,
                rows: 1,
                sent: Some(sent),
                ready: if step == 0 { 0 } else { sent },
                done: sent + MS,
            });
        }
        Ok(())
    }

    fn reconnections(&self) -> u64 {
        0
    }
}

#[test]
fn what_a_later_step_waits_for_does_not_excuse_the_first() {
    let mut order = order(Schedule::Closed { threads: 1 }, operations(10));
    order.work.ycsb_mut().unwrap().proportions = Proportions {
        read_modify_write: 1.0,
        ..Proportions::default()
    };
    let hand: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    let late = Late {
        hand,
        unsent: Vec::new(),
    };
    let mut out = Vec::new();
    let stop = AtomicBool::new(false);
    drive::run(vec![late], &order, Clock::by_hand(hand), &stop, &mut out).unwrap();
    let pacing: Vec<(u64, u64, u64)> = records(&out)
        .into_iter()
        .filter_map(|record| match record {
            Record::Interval(interval) => Some(interval.counts),
            _ => None,
        })
        .flatten()
        .filter(|counts| counts.measure == "pacing")
        .flat_map(|counts| counts.buckets)
        .collect();
    assert!(
        matches!(pacing[..], [(low, high, 10)] if (low..=high).contains(&MS)),
        "{pacing:?}"
    );
}

#[test]
fn a_stop_ends_the_load_with_its_done() {
    let stop = Arc::new(AtomicBool::new(false));
    let hand: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    let ring = Arc::clone(&stop);
    let rule = move |operation: &Operation, sent: Nanos| {
        ring.fetch_or(operation.index == 20, Ordering::Relaxed);
        if operation.index == 20 {
            Answer::Never
        } else {
            Answer::At(sent + MS, Outcome::Ok)
        }
    };
    let fake = Fake {
        hand,
        rule: Box::new(rule),
        unsent: Vec::new(),
        flying: Vec::new(),
        seen: Arc::default(),
    };
    let mut out = Vec::new();
    let mut order = order(constant(1000.0, 8), seconds(3600.0));
    order.timeout_ms = 3_600_000;
    drive::run(vec![fake], &order, Clock::by_hand(hand), &stop, &mut out).unwrap();
    let Some(Record::Done(done)) = records(&out).pop() else {
        panic!()
    };
    assert_eq!((done.operations, done.errors), (20, 1));
}
