//! Phase sequences: all workers carry out one, and what they count is merged and printed.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use steelyard_wire::{Order, Schedule};
use steelyard_workload::OrderError;
use steelyard_workload::operation::Kinds;
use thiserror::Error;

use crate::client::Client;
use crate::clock::{Clock, Nanos};
use crate::phase_sequence::{Phase, PhaseSequence, ReportChannel};
use crate::reporter::{PhaseInfo, Reporter};
use crate::schedule::Pace;
use crate::tally::Tally;
use crate::worker::Worker;

/// From the decision to start a phase to its first instant: time for threads to come up, so that the first operation is
/// not late by it.
pub const START_MARGIN_NS: Nanos = 2_000_000;
/// Longest wait for a word without looking whether to stop.
pub const STOP_CHECK: Duration = Duration::from_millis(100);
/// Phases in which rows that were written are read: all, and those that were not right, once more a while later.
pub const READ_BACK: [&str; 2] = ["read-back", "read-again"];

/// Why a load ended early. None of these is the system's fault.
#[derive(Debug, Error)]
pub enum DriveError {
    /// The order is not possible.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// What was said to the running load is not possible.
    #[error("{0}")]
    Word(String),
    /// This process is at fault, not the system.
    #[error("the generator failed: {0}")]
    Generator(#[source] io::Error),
    /// Nobody takes the records.
    #[error("records could not be written: {0}")]
    Output(#[source] io::Error),
}

/// The part of one worker.
pub fn share_of_worker(total: u32, workers: u32, worker: u32) -> u32 {
    total / workers + u32::from(worker < total % workers)
}

/// A phase before it starts.
pub struct PhasePlan {
    pub name: String,
    pace: Pace,
    operations: Option<u64>,
    duration_s: Option<f64>,
    in_flight: u32,
}

/// A phase under its schedule.
pub fn plan(
    name: &str,
    schedule: &Schedule,
    operations: Option<u64>,
    duration_s: Option<f64>,
    seed: u64,
) -> Result<PhasePlan, OrderError> {
    Ok(PhasePlan {
        name: name.to_owned(),
        pace: Pace::new(schedule, duration_s, seed)?,
        operations,
        duration_s,
        in_flight: schedule.in_flight().1,
    })
}

/// What all phase sequences of an order have in common.
#[derive(Clone, Copy)]
pub struct SequenceContext<'a> {
    pub order: &'a Order,
    pub kinds: &'a Arc<Kinds>,
    pub clock: Clock,
    pub stop: &'a AtomicBool,
}

/// Carries out one phase sequence: all workers, then the ends of its phases.
pub fn run_sequence<C: Client>(
    workers: &mut [Worker<C>],
    plans: Vec<PhasePlan>,
    begin: Nanos,
    context: SequenceContext<'_>,
    out: &mut impl Write,
) -> Result<(), DriveError> {
    let SequenceContext {
        order,
        kinds,
        clock,
        stop,
    } = context;
    let reconnections_before: u64 = workers.iter().map(Worker::reconnections).sum();
    let starts: Vec<Nanos> = plans
        .iter()
        .scan(begin, |next, plan| {
            let start = *next;
            *next += plan.duration_s.map_or(0, nanos);
            Some(start)
        })
        .collect();
    let (reports, inbox) = mpsc::channel();
    let mut jobs = Vec::new();
    let mut returns = Vec::new();
    let count = workers.len() as u32;
    for worker in 0..count {
        let (give_back, emptied) = mpsc::channel();
        returns.push(give_back);
        let channel = ReportChannel {
            worker: worker as usize,
            reports: reports.clone(),
            emptied,
        };
        let sequence = worker_sequence(&plans, &starts, order, worker, count);
        jobs.push((channel, sequence, Box::new(Tally::new(kinds)?)));
    }
    drop(reports);
    let reported = plans.into_iter().zip(starts).map(|(plan, start)| PhaseInfo {
        name: plan.name,
        start,
        in_flight: (!plan.pace.is_closed()).then_some(plan.in_flight),
    });
    let mut reporter = Reporter::new(reported.collect(), kinds, clock, returns, out)?;
    let (reported, ended) = thread::scope(|scope| {
        let threads: Vec<_> = workers
            .iter_mut()
            .zip(jobs)
            .map(|(worker, (channel, sequence, tally))| {
                scope.spawn(move || {
                    sharpen_timers();
                    let ended = worker.run(sequence, clock, stop, &channel, tally);
                    if ended.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    ended
                })
            })
            .collect();
        let reported = reporter.collect(&inbox, stop);
        let joined: Vec<io::Result<()>> = threads.into_iter().map(join).collect();
        (reported, joined.into_iter().collect::<io::Result<()>>())
    });
    ended.map_err(DriveError::Generator)?;
    reported.map_err(DriveError::Output)?;
    let reconnections = workers.iter().map(Worker::reconnections).sum::<u64>() - reconnections_before;
    reporter.finish(reconnections).map_err(DriveError::Output)
}

/// The phase sequence as one of `count` workers carries it out.
fn worker_sequence(plans: &[PhasePlan], starts: &[Nanos], order: &Order, worker: u32, count: u32) -> PhaseSequence {
    let phase = |(plan, start): (&PhasePlan, &Nanos)| Phase {
        pace: plan.pace.clone(),
        start: *start,
        duration: plan.duration_s.map(nanos),
        operations: plan.operations,
        in_flight: share_of_worker(plan.in_flight, count, worker),
    };
    let (limit, count, worker) = (order.backlog_limit, u64::from(count), u64::from(worker));
    PhaseSequence {
        phases: plans.iter().zip(starts).map(phase).collect(),
        timeout: order.timeout_ms * 1_000_000,
        tries: order.tries,
        interval: nanos(order.interval_s),
        backlog_limit: limit / count + u64::from(worker < limit % count),
        drain: order.drain_s.map(nanos),
    }
}

fn join(thread: thread::ScopedJoinHandle<'_, io::Result<()>>) -> io::Result<()> {
    thread
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("a worker thread panicked")))
}

/// The kernel may fire timers up to 50 us late to save wake-ups; this thread wants them on time. A kernel that refuses
/// leaves the pacing as it is, which is measured anyway.
fn sharpen_timers() {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

pub fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}
