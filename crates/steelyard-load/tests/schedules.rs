//! Schedules, phases, the bounded backlog and the common start in the driving loop, on a clock that is moved by hand: exact,
//! and without waiting.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use steelyard_load::client::{Client, Completion};
use steelyard_load::clock::{Clock, Nanos};
use steelyard_load::drive::{self, DriveError};
use steelyard_load::outcome::Outcome;
use steelyard_wire::{Arrivals, Done, Interval, LoadPhase, Order, Record, Schedule, Share, Stop};
use steelyard_workload::operation::Operation;

use crate::{intervals_and_done, records};

const MS: Nanos = 1_000_000;
const S: Nanos = 1_000 * MS;

/// Answers each operation after a time that depends on when it was sent, moving the clock's hand to what happens next.
struct Fake<F> {
    hand: &'static AtomicU64,
    service: F,
    unsent: Vec<u32>,
    flying: Vec<(u32, Nanos, Nanos)>,
    /// Every instant of sending, and how many were in flight then.
    sent: Arc<Mutex<Vec<(Nanos, usize)>>>,
}

impl<F: Fn(Nanos) -> Nanos + Send> Client for Fake<F> {
    fn submit(&mut self, slot: u32, _: &Operation) {
        self.unsent.push(slot);
    }

    fn abandon(&mut self, slot: u32) -> Option<Nanos> {
        let place = self.flying.iter().position(|(other, ..)| *other == slot)?;
        Some(self.flying.remove(place).1)
    }

    fn poll(&mut self, clock: &Clock, until: Nanos, completions: &mut Vec<Completion>) -> io::Result<()> {
        let now = clock.now();
        for slot in self.unsent.drain(..) {
            self.flying.push((slot, now, now + (self.service)(now)));
            self.sent.lock().unwrap().push((now, self.flying.len()));
        }
        let next = self.flying.iter().map(|(_, _, at)| *at).min();
        let done = next.unwrap_or(Nanos::MAX).min(until).max(now);
        self.hand.store(done, Ordering::Relaxed);
        let (answered, flying): (Vec<_>, Vec<_>) = self.flying.drain(..).partition(|(_, _, at)| *at <= done);
        self.flying = flying;
        completions.extend(answered.into_iter().map(|(slot, sent, _)| Completion {
            slot,
            outcome: Outcome::Ok,
            rows: 1,
            sent: Some(sent),
            ready: 0,
            done,
        }));
        Ok(())
    }

    fn reconnections(&self) -> u64 {
        0
    }
}

/// What came out of a load.
struct Run {
    intervals: Vec<Interval>,
    done: Vec<Done>,
    sent: Vec<(Nanos, usize)>,
}

impl Run {
    fn sum(&self, of: impl Fn(&Interval) -> u64) -> u64 {
        self.intervals.iter().map(of).sum()
    }

    fn sent(&self) -> u64 {
        self.sum(|interval| interval.sent)
    }

    /// Due and never sent.
    fn unsent(&self) -> u64 {
        let unsent = self.done.iter().map(|done| done.unsent).sum();
        assert_eq!(self.sum(|interval| interval.unsent), unsent);
        unsent
    }

    fn errors(&self) -> u64 {
        self.done.iter().map(|done| done.errors).sum()
    }

    /// Sent, or due and never sent.
    fn accounted(&self) -> u64 {
        self.sent() + self.unsent()
    }

    /// How many of a measure are at least so long.
    fn count(&self, measure: &str, least: Nanos) -> u64 {
        let counts = self.intervals.iter().flat_map(|interval| &interval.counts);
        let buckets = counts
            .filter(|counts| counts.measure == measure)
            .flat_map(|counts| &counts.buckets);
        buckets
            .filter(|(low, ..)| *low >= least)
            .map(|(_, _, count)| count)
            .sum()
    }

    fn sent_by_phase(&self) -> BTreeMap<&str, u64> {
        let mut sent = BTreeMap::new();
        for interval in &self.intervals {
            *sent.entry(interval.phase.as_str()).or_default() += interval.sent;
        }
        sent
    }
}

fn order(schedule: Schedule, duration_s: Option<f64>) -> Order {
    let mut order: Order = serde_json::from_str(include_str!("../../../schema/order.example.json")).unwrap();
    order.schedule = schedule;
    order.stop = Stop {
        keys: None,
        operations: None,
        duration_s,
    };
    order
}

fn phased(phases: &[(&str, Schedule, f64)]) -> Order {
    let mut order = order(phases[0].1.clone(), None);
    order.phases = phases
        .iter()
        .map(|(name, schedule, duration_s)| LoadPhase {
            name: (*name).to_owned(),
            schedule: schedule.clone(),
            duration_s: *duration_s,
        })
        .collect();
    order
}

fn constant(rate_per_s: f64, in_flight: u32) -> Schedule {
    Schedule::Constant { rate_per_s, in_flight }
}

fn closed(threads: u32) -> Schedule {
    Schedule::Closed { threads }
}

fn attempt(order: &Order, service: impl Fn(Nanos) -> Nanos + Send, stop: &AtomicBool) -> Result<Run, DriveError> {
    let hand: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(S)));
    let sent: Arc<Mutex<Vec<_>>> = Arc::default();
    let fake = Fake {
        hand,
        service,
        unsent: Vec::new(),
        flying: Vec::new(),
        sent: Arc::clone(&sent),
    };
    let mut out = Vec::new();
    drive::run(vec![fake], order, Clock::by_hand(hand), stop, &mut out)?;
    let (intervals, done) = intervals_and_done(&out);
    let sent = std::mem::take(&mut *sent.lock().unwrap());
    Ok(Run { intervals, done, sent })
}

fn drive(order: &Order, service: impl Fn(Nanos) -> Nanos + Send) -> Run {
    attempt(order, service, &AtomicBool::new(false)).unwrap()
}

#[test]
fn the_rate_follows_the_shape_and_nothing_is_late() {
    let ramp = Schedule::Ramp {
        from_per_s: 0.0,
        to_per_s: 1000.0,
        ramp_s: 10.0,
        in_flight: 64,
        arrivals: Arrivals::Even,
    };
    let run = drive(&order(ramp, Some(12.0)), |_| MS);
    let sent: Vec<u64> = run.intervals.iter().map(|interval| interval.sent).collect();
    for (second, sent) in (0..12u64).zip(&sent) {
        let whole = if second < 10 { 100 * second + 50 } else { 1000 };
        assert!(sent.abs_diff(whole) <= 1, "{second}: {sent} of {whole}");
    }
    assert_eq!((run.sent(), run.count("lag", 2), run.count("pacing", 2)), (7000, 0, 0));
    // 64 places at 1 ms.
    let carries = run.done[0].carries_per_s.unwrap();
    assert!((63_900.0..64_100.0).contains(&carries), "{carries}");
}

#[test]
fn a_trace_needs_no_end_but_its_own() {
    let path = std::env::temp_dir().join(format!("steelyard-schedules-{}", std::process::id()));
    std::fs::write(&path, "100\n100.5\n100.5\n102\n").unwrap();
    let trace = Schedule::Trace {
        file: path.display().to_string(),
        speed: 2.0,
        in_flight: 1,
    };
    let run = drive(&order(trace, None), |_| MS);
    std::fs::remove_file(path).unwrap();
    let start = run.sent[0].0;
    let sent: Vec<Nanos> = run.sent.iter().map(|(at, _)| at - start).collect();
    assert_eq!(sent, [0, 250 * MS, 251 * MS, S]);
}

#[test]
fn what_becomes_due_beyond_the_backlogs_limit_is_never_sent_and_is_counted() {
    let mut order = order(constant(1000.0, 1), Some(10.0));
    order.backlog_limit = 50;
    let run = drive(&order, |_| 10 * MS);
    // 100 a second are carried; the backlog is full after 56 ms.
    assert_eq!((run.accounted(), run.errors()), (10_000, 0));
    assert!((1040..=1060).contains(&run.sent()), "{}", run.sent());
    let backlogs: Vec<u64> = run.intervals.iter().map(|interval| interval.backlog).collect();
    assert!(
        backlogs[..9].iter().all(|backlog| (49..=50).contains(backlog)),
        "{backlogs:?}"
    );
    // What is sent has waited for the 50 before it, no longer and no shorter.
    assert_eq!(run.count("lag", 520 * MS), 0);
    assert!(run.count("lag", 480 * MS) > 900);
    assert_eq!(run.count("pacing", MS), 0);
    // Each is counted when it becomes due, not at the end.
    assert!(
        run.intervals[..9]
            .iter()
            .skip(1)
            .all(|interval| interval.unsent.abs_diff(900) <= 10)
    );
}

#[test]
fn a_backlog_of_none_means_that_nothing_is_sent_late() {
    let mut order = order(constant(1000.0, 2), Some(2.0));
    order.backlog_limit = 0;
    let run = drive(&order, |_| 10 * MS);
    assert_eq!((run.accounted(), run.errors()), (2000, 0));
    assert_eq!(run.count("lag", MS), 0);
    assert!((399..=402).contains(&run.sent()), "{}", run.sent());
}

#[test]
fn phases_follow_each_other_without_a_pause() {
    let order = phased(&[
        ("saturate", closed(8), 1.0),
        ("calm", constant(1900.0, 2), 2.0),
        ("again", closed(3), 0.5),
        ("busy", constant(4000.0, 6), 1.5),
    ]);
    let run = drive(&order, |_| MS);
    let names: Vec<&str> = run.done.iter().map(|done| done.phase.as_str()).collect();
    assert_eq!(names, ["saturate", "calm", "again", "busy"]);
    let expected = [("saturate", 8000), ("calm", 3800), ("again", 1500), ("busy", 6000)];
    assert_eq!(run.sent_by_phase(), BTreeMap::from(expected));
    assert_eq!((run.accounted(), run.count("pacing", 2)), (19_300, 0));
    // Intervals make up the time without gap or overlap.
    for pair in run.intervals.windows(2) {
        assert!((pair[0].t_s + pair[0].seconds - pair[1].t_s).abs() < 1e-6, "{pair:?}");
    }
    let start = run.sent[0].0;
    let most = |from: Nanos, to: Nanos| {
        let within = run
            .sent
            .iter()
            .filter(|(at, _)| (start + from..start + to).contains(at));
        within.map(|(_, flying)| *flying).max().unwrap()
    };
    assert_eq!(
        (most(0, S), most(S + 2 * MS, 3 * S), most(3 * S + 2 * MS, 3500 * MS)),
        (8, 2, 3)
    );
    assert_eq!(most(3502 * MS, 5 * S), 4);
}

#[test]
fn a_backlog_is_carried_into_the_next_phase_and_blames_nobody() {
    let order = phased(&[("flood", constant(2000.0, 1), 1.0), ("calm", constant(100.0, 1), 3.0)]);
    let run = drive(&order, |_| MS);
    assert_eq!(run.accounted(), 2300);
    let sent = run.sent_by_phase();
    assert!((999..=1001).contains(&sent["flood"]), "{sent:?}");
    assert_eq!(sent["flood"] + sent["calm"], 2300);
    assert_eq!(run.intervals[0].backlog + sent["flood"], 2000);
    assert_eq!(run.count("pacing", MS), 0);
    // The last of the flood is due at 1 s and sent at 2 s; the calm's first wait behind it.
    assert!(run.count("lag", 950 * MS) > 100);
    assert_eq!(run.intervals.last().unwrap().backlog, 0);
}

#[test]
fn a_stall_through_a_closed_phase_leaves_nothing_out() {
    let order = phased(&[
        ("before", constant(1000.0, 4), 1.0),
        ("closed", closed(4), 1.0),
        ("after", constant(1000.0, 8), 1.0),
    ]);
    // From 0.5 s to 2.5 s nothing is answered: the closed phase passes by, unused.
    let run = drive(&order, |now| {
        let stall = 1500 * MS..3500 * MS;
        if stall.contains(&now) { stall.end - now } else { MS / 10 }
    });
    let closed = run.sent_by_phase()["closed"];
    assert_eq!(run.accounted(), 2000 + closed);
    assert_eq!(run.sent(), 2000 + closed);
    assert_eq!(run.done.len(), 3);
}

#[test]
fn a_stop_ends_with_the_phase_that_it_finds() {
    let stop = Arc::new(AtomicBool::new(false));
    let ring = Arc::clone(&stop);
    let order = phased(&[("one", constant(10.0, 1), 1.0), ("two", constant(10.0, 1), 1.0)]);
    let run = attempt(
        &order,
        move |now| {
            ring.fetch_or(now >= 1500 * MS, Ordering::Relaxed);
            MS
        },
        &stop,
    )
    .unwrap();
    let ends: Vec<(&str, u64)> = run
        .done
        .iter()
        .map(|done| (done.phase.as_str(), done.operations))
        .collect();
    assert_eq!(ends, [("one", 6)]);
}

/// For many loads that overtax a system in many ways: every operation that was due was sent, refused or given up.
#[test]
fn sent_and_refused_and_given_up_are_what_was_due() {
    let arrivals = Arrivals::Poisson;
    let shapes = |in_flight: u32| -> [(Schedule, u64); 3] {
        [
            (constant(700.0, in_flight), 700),
            (
                Schedule::Steps {
                    rates_per_s: vec![100.0, 1500.0],
                    step_s: 0.5,
                    in_flight,
                    arrivals: Arrivals::Even,
                },
                800,
            ),
            (
                Schedule::Sine {
                    mean_per_s: 600.0,
                    amplitude_per_s: 600.0,
                    period_s: 0.5,
                    in_flight,
                    arrivals,
                },
                0,
            ),
        ]
    };
    for in_flight in [1, 3] {
        for limit in [0, 40, 1_000_000] {
            for (service_ms, share) in [(5, 0), (90, 2)] {
                for (schedule, whole) in shapes(in_flight) {
                    let mut order = phased(&[
                        ("a", schedule.clone(), 1.0),
                        ("b", closed(2), 0.3),
                        ("c", schedule, 1.0),
                    ]);
                    order.backlog_limit = limit;
                    order.share = Share { index: share, of: 3 };
                    order.timeout_ms = 60;
                    let run = drive(&order, move |_| service_ms * MS);
                    let closed = run.sent_by_phase()["b"];
                    let due = run.accounted();
                    let case = format!("{in_flight} {limit} {service_ms} {:?}", order.schedule);
                    if whole > 0 {
                        let (index, of) = (share, 3);
                        let mine = (whole + of - 1 - index) / of;
                        // The closed phase sends as it may, which is within what `closed` counts or beyond it by the backlog.
                        assert!(due >= 2 * mine && due <= 2 * mine + closed, "{case}: {due} of {mine}");
                    }
                    assert!(run.intervals.iter().all(|interval| interval.backlog <= limit), "{case}");
                    let ended: u64 = run.sum(|interval| interval.done);
                    assert_eq!(ended, run.sent(), "{case}");
                }
            }
        }
    }
}

#[test]
fn processes_that_should_start_together_do() {
    let mut order = order(constant(100.0, 1), Some(1.0));
    order.warm_up_s = 1.0;
    order.start_at_s = Some(4.5);
    let run = drive(&order, |_| MS);
    assert_eq!(run.done[0].first_sent_s, 4.5);
    // The measured phase starts at a time of its own, whenever the warm-up was answered.
    assert_eq!(run.done[1].first_sent_s, 5.75);
    // The clock stands at 1 s. What is late by less than a second keeps to the instant.
    order.start_at_s = Some(0.5);
    order.warm_up_s = 0.0;
    let run = drive(&order, |_| MS);
    assert_eq!((run.sent(), run.count("lag", 450 * MS)), (100, 6));
    for wrong in [-0.1, 3700.0, f64::NAN] {
        order.start_at_s = Some(wrong);
        let refused = attempt(&order, |_| MS, &AtomicBool::new(false));
        assert!(
            matches!(refused, Err(DriveError::Order(error)) if error.field == "start_at_s"),
            "{wrong}"
        );
    }
}

#[test]
fn phases_that_cannot_be_are_refused() {
    let two = [("a", closed(2), 1.0), ("b", constant(1.0, 9), 1.0)];
    assert_eq!(
        drive::slots(&phased(&two), 8).unwrap(),
        [5, 4],
        "as many workers as the least phase has places"
    );
    for (change, field) in [
        (
            (|order| order.phases[1].name = "a".into()) as fn(&mut Order),
            "phases.name",
        ),
        (|order| order.phases[0].name = "warm-up".into(), "phases.name"),
        (|order| order.phases[0].name = String::new(), "phases.name"),
        (|order| order.phases[1].duration_s = 0.0, "stop.duration_s"),
        (|order| order.stop.operations = Some(1), "stop"),
        (
            |order| order.phases[1].schedule = constant(1.0, 0),
            "schedule.in_flight",
        ),
    ] {
        let mut order = phased(&two);
        change(&mut order);
        let refused = attempt(&order, |_| MS, &AtomicBool::new(false));
        assert!(
            matches!(refused, Err(DriveError::Order(error)) if error.field == field),
            "{field}"
        );
    }
}

/// Answers at the next poll, on the real clock.
#[derive(Default)]
struct Prompt(Vec<u32>);

impl Client for Prompt {
    fn submit(&mut self, slot: u32, _: &Operation) {
        self.0.push(slot);
    }

    fn abandon(&mut self, _: u32) -> Option<Nanos> {
        None
    }

    fn poll(&mut self, clock: &Clock, until: Nanos, completions: &mut Vec<Completion>) -> io::Result<()> {
        if self.0.is_empty() {
            let nap = until.saturating_sub(clock.now()).min(MS);
            std::thread::sleep(std::time::Duration::from_nanos(nap));
        }
        let now = clock.now();
        completions.extend(self.0.drain(..).map(|slot| Completion {
            slot,
            outcome: Outcome::Ok,
            rows: 1,
            sent: Some(now),
            ready: 0,
            done: now,
        }));
        Ok(())
    }

    fn reconnections(&self) -> u64 {
        0
    }
}

#[test]
fn workers_that_end_a_phase_at_different_times_are_put_together() {
    let mut order = phased(&[
        ("one", constant(500.0, 3), 0.25),
        ("two", constant(2000.0, 5), 0.2),
        ("three", constant(300.0, 4), 0.15),
    ]);
    order.interval_s = 0.1;
    let slots = drive::slots(&order, 3).unwrap();
    assert_eq!(slots, [2, 2, 1]);
    let clients = slots.iter().map(|_| Prompt::default()).collect();
    let mut out = Vec::new();
    drive::run(clients, &order, Clock::start(), &AtomicBool::new(false), &mut out).unwrap();
    let mut lines = Vec::new();
    let mut sent = BTreeMap::new();
    for record in records(&out) {
        match record {
            Record::Interval(interval) => {
                *sent.entry(interval.phase.clone()).or_insert(0) += interval.sent;
                lines.push((interval.phase, interval.seconds));
            }
            Record::Done(done) => lines.push((format!("end of {}", done.phase), 0.0)),
            other => panic!("{other:?}"),
        }
    }
    // Late operations may be sent in the next phase; none is lost.
    assert_eq!(sent.values().sum::<u64>(), 125 + 400 + 45);
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    let first = ["one", "one", "one", "end of one", "two", "two", "end of two", "three"];
    assert_eq!(names[..8], first);
    assert_eq!(names.last(), Some(&"end of three"));
    let whole: f64 = lines[..8].iter().map(|(_, seconds)| seconds).sum();
    assert!((whole - 0.55).abs() < 0.051, "{lines:?}");
}
