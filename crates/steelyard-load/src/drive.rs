//! The phases of an order: starts the workers, merges what they count, prints the records.
//!
//! Numbers of an order that has shares: `stop.operations`, `stop.duration_s` and a schedule's rate are over all shares;
//! `threads` and `in_flight` are this process's. Within a process each worker thread takes a share of the share.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use rustix::time::{ClockId, clock_gettime};
use steelyard_wire::{Action, Done, Interval, Order, Record, Schedule, Share, Summary};
use thiserror::Error;

use crate::client::{Client, Clock, Nanos};
use crate::histogram::Histogram;
use crate::schedule::{Constant, Poisson};
use crate::tally::{Measure, Tally};
use crate::worker::{Desk, Pace, Phase, Report, Worker};
use crate::ycsb::{LoadError, Stream};

/// Most operations that one worker keeps in flight: leaves half of a connection's 32,768 streams for answers that are
/// still to come after their time-out.
pub const MAX_SLOTS_PER_WORKER: u32 = 16_384;
/// Shortest interval: handing over and printing one takes about a millisecond.
const MIN_INTERVAL_S: f64 = 0.1;
/// From the decision to start a phase to its first instant: time for threads to come up, so that the first operation is
/// not late by it.
const START_MARGIN_NS: Nanos = 2_000_000;

/// Why a load ended early. None of these is the system's fault.
#[derive(Debug, Error)]
pub enum DriveError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("the generator failed: {0}")]
    Generator(#[source] io::Error),
    #[error("records could not be written: {0}")]
    Output(#[source] io::Error),
}

/// Slots of each worker: the order's threads or places in flight, spread over at most `workers` threads.
///
/// Errors: no place in flight at all, or more than `MAX_SLOTS_PER_WORKER` on a worker.
pub fn slots(order: &Order, workers: u32) -> Result<Vec<u32>, LoadError> {
    let (field, total) = match order.schedule {
        Schedule::Closed { threads } => ("schedule.threads", threads),
        Schedule::Constant { in_flight, .. } | Schedule::Poisson { in_flight, .. } => ("schedule.in_flight", in_flight),
    };
    let workers = workers.clamp(1, total.max(1));
    if total == 0 || total.div_ceil(workers) > MAX_SLOTS_PER_WORKER {
        return Err(LoadError::new(field, total, "1 to 16384 for each worker thread"));
    }
    Ok((0..workers)
        .map(|worker| total / workers + u32::from(worker < total % workers))
        .collect())
}

/// Carries out an order with one client a worker; `clients` and `slots(order, ...)` have the same length. Prints the
/// intervals and ends of all phases to `out`. Setting `stop` ends it early, with its `Done`.
pub fn run<C: Client>(
    clients: Vec<C>,
    order: &Order,
    clock: Clock,
    stop: &AtomicBool,
    out: &mut impl Write,
) -> Result<(), DriveError> {
    let plans = plans(order)?;
    let slots = slots(order, clients.len() as u32)?;
    let count = slots.len() as u64;
    let mut workers = Vec::new();
    for (number, (client, slots)) in clients.into_iter().zip(slots).enumerate() {
        let share = Share {
            index: order.share.index + number as u64 * order.share.of,
            of: order.share.of * count,
        };
        let stream = Stream::from_order(&Order { share, ..order.clone() }, 0)?;
        workers.push(Worker::new(client, stream, share, slots));
    }
    for plan in plans {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        phase(&mut workers, &plan, order, clock, stop, out)?;
    }
    Ok(())
}

/// A phase before it starts.
struct Plan {
    name: &'static str,
    pace: Pace,
    operations: Option<u64>,
    duration_s: Option<f64>,
}

fn plans(order: &Order) -> Result<Vec<Plan>, LoadError> {
    let stop = order.stop;
    if !(MIN_INTERVAL_S..=3600.0).contains(&order.interval_s) {
        return Err(LoadError::new("interval_s", order.interval_s, "0.1 to 3600"));
    }
    if order.timeout_ms == 0 || order.timeout_ms > 86_400_000 {
        return Err(LoadError::new("timeout_ms", order.timeout_ms, "1 to 86400000"));
    }
    if order.action == Action::Populate {
        let records = order.workload.records;
        let operations = Some(stop.operations.map_or(records, |operations| operations.min(records)));
        return Ok(vec![plan("populate", order, operations, stop.duration_s, 0)?]);
    }
    if stop.operations.is_none() && stop.duration_s.is_none() {
        return Err(LoadError::new("stop", "neither", "operations, duration_s or both"));
    }
    let mut plans = Vec::new();
    if order.warm_up_s > 0.0 {
        plans.push(plan("warm-up", order, None, Some(order.warm_up_s), 1)?);
    }
    plans.push(plan("measure", order, stop.operations, stop.duration_s, 0)?);
    Ok(plans)
}

fn plan(
    name: &'static str,
    order: &Order,
    operations: Option<u64>,
    duration_s: Option<f64>,
    salt: u64,
) -> Result<Plan, LoadError> {
    if let Some(seconds) = duration_s.filter(|seconds| !(seconds.is_finite() && *seconds > 0.0)) {
        return Err(LoadError::new("stop.duration_s", seconds, "a finite number above 0"));
    }
    let pace = match order.schedule {
        Schedule::Closed { .. } => Pace::Closed,
        Schedule::Constant { rate_per_s, .. } => Pace::Constant(Constant::new(rate_per_s, duration_s)?),
        // The warm-up has gaps of its own, so that the measured phase's do not depend on it.
        Schedule::Poisson { rate_per_s, .. } => {
            Pace::Poisson(Poisson::new(rate_per_s, duration_s, order.seed.wrapping_add(salt))?)
        }
    };
    Ok(Plan {
        name,
        pace,
        operations,
        duration_s,
    })
}

fn phase<C: Client>(
    workers: &mut [Worker<C>],
    plan: &Plan,
    order: &Order,
    clock: Clock,
    stop: &AtomicBool,
    out: &mut impl Write,
) -> Result<(), DriveError> {
    let phase = Phase {
        pace: plan.pace.clone(),
        start: clock.now() + START_MARGIN_NS,
        operations: plan.operations,
        duration: plan.duration_s.map(nanos),
        timeout: order.timeout_ms * 1_000_000,
        interval: nanos(order.interval_s),
    };
    let reconnections_before: u64 = workers.iter().map(Worker::reconnections).sum();
    let (reports, inbox) = mpsc::channel();
    let mut desks = Vec::new();
    let mut returns = Vec::new();
    for worker in 0..workers.len() {
        let (give_back, emptied) = mpsc::channel();
        returns.push(give_back);
        desks.push((
            Desk {
                worker,
                reports: reports.clone(),
                emptied,
            },
            Box::new(Tally::new()?),
        ));
    }
    drop(reports);
    let mut reporter = Reporter::new(plan.name, phase.start, clock, returns, out)?;
    let (reported, busiest) = thread::scope(|scope| {
        let threads: Vec<_> = workers
            .iter_mut()
            .zip(desks)
            .map(|(worker, (desk, tally))| {
                let phase = phase.clone();
                scope.spawn(move || {
                    sharpen_timers();
                    let ended = worker.run(phase, clock, stop, &desk, tally);
                    if ended.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    ended.map(|()| cpu(ClockId::ThreadCPUTime))
                })
            })
            .collect();
        let reported = reporter.collect(&inbox, stop);
        let joined: Vec<io::Result<Nanos>> = threads.into_iter().map(join).collect();
        (reported, joined.into_iter().collect::<io::Result<Vec<_>>>())
    });
    let busiest = busiest.map_err(DriveError::Generator)?.into_iter().max().unwrap_or(0);
    reported.map_err(DriveError::Output)?;
    let reconnections = workers.iter().map(Worker::reconnections).sum::<u64>() - reconnections_before;
    reporter.done(busiest, reconnections).map_err(DriveError::Output)
}

fn join(thread: thread::ScopedJoinHandle<'_, io::Result<Nanos>>) -> io::Result<Nanos> {
    thread
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("a worker thread panicked")))
}

/// The kernel may fire timers up to 50 us late to save wake-ups; this thread wants them on time. A kernel that refuses
/// leaves the pacing as it is, which is measured anyway.
fn sharpen_timers() {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

fn cpu(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}

/// Merges the workers' intervals and prints them in order; sums up the phase.
struct Reporter<'a, W> {
    phase: &'static str,
    start: Nanos,
    clock: Clock,
    returns: Vec<Sender<Box<Tally>>>,
    out: &'a mut W,
    /// Intervals that not every worker has handed in yet.
    open: BTreeMap<u64, (usize, Nanos, Box<Tally>)>,
    /// Number of the last interval of workers that have ended.
    ended: Vec<u64>,
    total: Tally,
    scratch: Histogram,
    cpu_at_start: Nanos,
    cpu_at_last: Nanos,
    begin: Nanos,
    dropped: u64,
}

impl<'a, W: Write> Reporter<'a, W> {
    fn new(
        phase: &'static str,
        start: Nanos,
        clock: Clock,
        returns: Vec<Sender<Box<Tally>>>,
        out: &'a mut W,
    ) -> Result<Self, LoadError> {
        let cpu_now = cpu(ClockId::ProcessCPUTime);
        Ok(Self {
            phase,
            start,
            clock,
            returns,
            out,
            open: BTreeMap::new(),
            ended: Vec::new(),
            total: Tally::new()?,
            scratch: Histogram::new()?,
            cpu_at_start: cpu_now,
            cpu_at_last: cpu_now,
            begin: start,
            dropped: 0,
        })
    }

    /// Until every worker has ended. If a line cannot be written the load is stopped, and the first error kept.
    fn collect(&mut self, inbox: &Receiver<Report>, stop: &AtomicBool) -> io::Result<()> {
        let mut outcome = Ok(());
        while let Ok(report) = inbox.recv() {
            if report.last {
                self.ended.push(report.number);
            }
            let worker = report.worker;
            let emptied = self.add(report);
            // A worker that has ended takes nothing back.
            if let Some(mut tally) = emptied {
                tally.clear();
                let _ = self.returns[worker].send(tally);
            }
            if let Err(error) = self.print_complete() {
                stop.store(true, Ordering::Relaxed);
                outcome = outcome.and(Err(error));
            }
        }
        outcome
    }

    /// Puts a worker's interval to the others'; gives back the tally that is no longer needed.
    fn add(&mut self, report: Report) -> Option<Box<Tally>> {
        self.total.merge_counts(&report.tally);
        match self.open.get_mut(&report.number) {
            Some((count, end, tally)) => {
                *count += 1;
                *end = (*end).max(report.end);
                tally.merge(&report.tally);
                Some(report.tally)
            }
            None => {
                self.open.insert(report.number, (1, report.end, report.tally));
                None
            }
        }
    }

    /// Prints the intervals that every worker has handed in, or ended before.
    fn print_complete(&mut self) -> io::Result<()> {
        while let Some((number, (count, end, _))) = self.open.first_key_value() {
            let (number, end) = (*number, *end);
            let ended_before = self.ended.iter().filter(|last| **last < number).count();
            if count + ended_before < self.returns.len() {
                return Ok(());
            }
            let Some((_, _, mut tally)) = self.open.remove(&number) else {
                return Ok(());
            };
            let record = self.interval(&tally, end);
            let printed = self.print(&record);
            tally.clear();
            // Only one worker fills a phase's tallies in the common case; the others make their own.
            let _ = self.returns[0].send(tally);
            printed?;
        }
        Ok(())
    }

    fn interval(&mut self, tally: &Tally, end: Nanos) -> Record {
        let begin = std::mem::replace(&mut self.begin, end);
        let seconds = (end - begin) as f64 / 1e9;
        let cpu_now = cpu(ClockId::ProcessCPUTime);
        let used = cpu_now - std::mem::replace(&mut self.cpu_at_last, cpu_now);
        let mut summary = Summary {
            rate_per_s: per_second(tally.done, seconds),
            ..Summary::default()
        };
        for (measure, p50, p99) in [
            (
                Measure::Response,
                Some(&mut summary.response_ms_p50),
                &mut summary.response_ms_p99,
            ),
            (
                Measure::Service,
                Some(&mut summary.service_ms_p50),
                &mut summary.service_ms_p99,
            ),
            (Measure::Pacing, None, &mut summary.pacing_ms_p99),
        ] {
            tally.collect(measure, &mut self.scratch);
            *p99 = self.scratch.value_at_quantile(0.99) as f64 / 1e6;
            if let Some(p50) = p50 {
                *p50 = self.scratch.value_at_quantile(0.5) as f64 / 1e6;
            }
        }
        Record::Interval(Interval {
            phase: self.phase.to_owned(),
            t_s: self.clock.wall_s(begin),
            seconds,
            sent: tally.sent,
            done: tally.done,
            errors: tally.errors(),
            backlog: tally.backlog,
            cpu_fraction: per_second(used, seconds) / 1e9,
            summary,
            counts: tally.counts(),
        })
    }

    /// The end of the phase, after its last interval.
    fn done(&mut self, busiest_thread: Nanos, reconnections: u64) -> io::Result<()> {
        let total = &self.total;
        let first_sent = total.first_sent.unwrap_or(self.start);
        let last_done = total.last_done.unwrap_or(first_sent);
        let length = self.clock.now().saturating_sub(self.start).max(1);
        let record = Record::Done(Done {
            phase: self.phase.to_owned(),
            first_sent_s: self.clock.wall_s(first_sent),
            last_done_s: self.clock.wall_s(last_done),
            execution_ns: last_done.saturating_sub(first_sent),
            operations: total.done - total.errors(),
            errors: total.errors(),
            errors_by_kind: total.errors_by_kind(),
            not_found: total.not_found(),
            rows: total.rows,
            cpu_ns: cpu(ClockId::ProcessCPUTime) - self.cpu_at_start,
            busiest_thread_fraction: busiest_thread as f64 / length as f64,
            dropped: self.dropped,
            reconnections,
        });
        self.print(&record)
    }

    fn print(&mut self, record: &Record) -> io::Result<()> {
        let printed = write_record(self.out, record);
        self.dropped += u64::from(printed.is_err());
        printed
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// Writes one record as a line of its own, in one piece.
pub fn write_record(out: &mut impl Write, record: &Record) -> io::Result<()> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}
