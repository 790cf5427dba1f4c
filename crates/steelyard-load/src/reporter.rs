//! Reporter: merges the workers' intervals, prints them in order, and sums up each phase.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use rustix::time::ClockId;
use steelyard_wire::{Done, Interval, Record, Routed, Summary};

use crate::clock::cpu_time;
use crate::clock::{Clock, Nanos};
use crate::histogram::Histogram;
use crate::output::write_record;
use crate::phase_sequence::Report;
use crate::tally::{Measure, Tally};
use steelyard_workload::OrderError;
use steelyard_workload::operation::Kinds;

/// A phase as the reporter knows it.
pub(crate) struct PhaseInfo {
    pub name: String,
    pub start: Nanos,
    /// Operations that this process may have in flight, if it does not wait for answers.
    pub in_flight: Option<u32>,
}

/// Sums of one phase.
struct PhaseTotal {
    tally: Tally,
    /// Sum of the service times, and their number.
    service_ns: f64,
    served: u64,
    /// End of the last interval that was printed.
    printed_to: Nanos,
    /// The latest end of an interval of any worker.
    end: Nanos,
    /// CPU time of the busiest thread.
    busiest: Nanos,
    /// Workers that have ended the phase.
    ended: usize,
    done: bool,
}

/// What is known of one worker.
#[derive(Clone, Default)]
struct WorkerState {
    /// Its last interval of the phase that it ended last.
    last: Option<(usize, u64)>,
    /// Whether it has ended the phase sequence.
    over: bool,
    /// CPU time of its thread when it ended a phase last.
    cpu: Nanos,
}

/// An interval that some workers have handed in.
struct OpenInterval {
    /// How many of them.
    count: usize,
    end: Nanos,
    tally: Box<Tally>,
    /// Whose tally it is. It goes back to that worker and no other: one that got more than it gave would keep them all.
    owner: usize,
}

pub(crate) struct Reporter<'a, W> {
    phases: Vec<PhaseInfo>,
    totals: Vec<PhaseTotal>,
    clock: Clock,
    returns: Vec<Sender<Box<Tally>>>,
    out: &'a mut W,
    /// Intervals that not every worker has handed in yet, by phase and number.
    open: BTreeMap<(usize, u64), OpenInterval>,
    workers: Vec<WorkerState>,
    scratch: Histogram,
    /// CPU time of the process when the last phase ended, and when the last interval was printed.
    cpu_at_start: Nanos,
    cpu_at_last: Nanos,
    dropped: u64,
}

impl<'a, W: Write> Reporter<'a, W> {
    pub fn new(
        phases: Vec<PhaseInfo>,
        kinds: &Arc<Kinds>,
        clock: Clock,
        returns: Vec<Sender<Box<Tally>>>,
        out: &'a mut W,
    ) -> Result<Self, OrderError> {
        let cpu_now = cpu_time(ClockId::ProcessCPUTime);
        let total = |phase: &PhaseInfo| {
            Ok(PhaseTotal {
                tally: Tally::new(kinds)?,
                service_ns: 0.0,
                served: 0,
                printed_to: phase.start,
                end: phase.start,
                busiest: 0,
                ended: 0,
                done: false,
            })
        };
        Ok(Self {
            totals: phases.iter().map(total).collect::<Result<_, OrderError>>()?,
            workers: vec![WorkerState::default(); returns.len()],
            phases,
            clock,
            returns,
            out,
            open: BTreeMap::new(),
            scratch: Histogram::new()?,
            cpu_at_start: cpu_now,
            cpu_at_last: cpu_now,
            dropped: 0,
        })
    }

    /// Until every worker has ended; the last phase's `Done` is left to `finish`. If a line cannot be written the load is
    /// stopped, and the first error kept.
    pub fn collect(&mut self, inbox: &Receiver<Report>, stop: &AtomicBool) -> io::Result<()> {
        let mut outcome = Ok(());
        while let Ok(report) = inbox.recv() {
            let worker = report.worker;
            self.note(&report);
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

    fn note(&mut self, report: &Report) {
        let total = &mut self.totals[report.phase];
        total.end = total.end.max(report.end);
        let worker = &mut self.workers[report.worker];
        worker.over |= report.over;
        if report.last {
            worker.last = Some((report.phase, report.number));
            total.ended += 1;
            total.busiest = total.busiest.max(report.cpu - worker.cpu);
            worker.cpu = report.cpu;
        }
    }

    /// Puts a worker's interval to the others'; gives back the tally that is no longer needed.
    fn add(&mut self, report: Report) -> Option<Box<Tally>> {
        self.totals[report.phase].tally.merge_counts(&report.tally);
        match self.open.get_mut(&(report.phase, report.number)) {
            Some(open) => {
                open.count += 1;
                open.end = open.end.max(report.end);
                open.tally.merge(&report.tally);
                Some(report.tally)
            }
            None => {
                let open = OpenInterval {
                    count: 1,
                    end: report.end,
                    tally: report.tally,
                    owner: report.worker,
                };
                self.open.insert((report.phase, report.number), open);
                None
            }
        }
    }

    /// Whether a worker has nothing to say of an interval, now or later.
    fn passes(worker: &WorkerState, phase: usize, number: u64) -> bool {
        match worker.last {
            Some((ended, last)) if ended == phase => last < number,
            Some((ended, _)) => ended < phase && worker.over,
            None => false,
        }
    }

    /// Prints the intervals that every worker has handed in, or ended before, and the ends of phases that are not the last.
    fn print_complete(&mut self) -> io::Result<()> {
        while let Some(open) = self.open.first_entry() {
            let (phase, number) = *open.key();
            let passed = self.workers.iter().filter(|worker| Self::passes(worker, phase, number));
            if open.get().count + passed.count() < self.returns.len() {
                break;
            }
            let OpenInterval {
                end, mut tally, owner, ..
            } = open.remove();
            self.end_before(phase)?;
            let record = self.interval(phase, &tally, end);
            let printed = self.print_routed(&tally).and_then(|()| self.print(&record));
            tally.clear();
            // A worker that has ended takes nothing back.
            let _ = self.returns[owner].send(tally);
            printed?;
        }
        Ok(())
    }

    /// The ends of the phases before that one, whose intervals are all printed.
    fn end_before(&mut self, phase: usize) -> io::Result<()> {
        for earlier in 0..phase {
            if !self.totals[earlier].done {
                self.done(earlier, 0)?;
            }
        }
        Ok(())
    }

    fn interval(&mut self, phase: usize, tally: &Tally, end: Nanos) -> Record {
        let total = &mut self.totals[phase];
        let begin = std::mem::replace(&mut total.printed_to, end);
        let seconds = end.saturating_sub(begin) as f64 / 1e9;
        let cpu_now = cpu_time(ClockId::ProcessCPUTime);
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
            if measure == Measure::Service {
                total.service_ns += self.scratch.mean() * self.scratch.count() as f64;
                total.served += self.scratch.count();
            }
        }
        Record::Interval(Interval {
            phase: self.phases[phase].name.clone(),
            t_s: self.clock.wall_s(begin),
            seconds,
            sent: tally.sent,
            done: tally.done,
            errors: tally.errors(),
            unsent: tally.unsent,
            rows: tally.rows_by_name(),
            keys: tally.keys_by_name(),
            backlog: tally.backlog,
            cpu_fraction: per_second(used, seconds) / 1e9,
            summary,
            counts: tally.counts(),
        })
    }

    /// The ends of the phases that have begun, the last of them with the connections that were lost in the phase sequence.
    pub fn finish(&mut self, reconnections: u64) -> io::Result<()> {
        let reached = self.totals.iter().rposition(|total| total.ended > 0).unwrap_or(0);
        self.end_before(reached)?;
        self.done(reached, reconnections)
    }

    fn done(&mut self, phase: usize, reconnections: u64) -> io::Result<()> {
        let (about, sums) = (&self.phases[phase], &mut self.totals[phase]);
        sums.done = true;
        let total = &sums.tally;
        // An operation that was sent in the phase before and answered in this one has taken no time of this one before it began.
        let first_sent = total.first_sent.unwrap_or(about.start).max(about.start);
        let last_done = total.last_done.unwrap_or(first_sent);
        let length = sums.end.saturating_sub(about.start).max(1);
        let mean_s = sums.service_ns / sums.served as f64 / 1e9;
        let cpu_now = cpu_time(ClockId::ProcessCPUTime);
        let record = Record::Done(Done {
            phase: about.name.clone(),
            first_sent_s: self.clock.wall_s(first_sent),
            last_done_s: self.clock.wall_s(last_done),
            execution_ns: last_done.saturating_sub(first_sent),
            operations: total.done - total.errors(),
            errors: total.errors(),
            errors_by_kind: total.errors_by_kind(),
            unsent: total.unsent,
            error_texts: total.error_samples.by_kind(),
            not_found: total.not_found(),
            rows: total.rows,
            cpu_ns: cpu_now - std::mem::replace(&mut self.cpu_at_start, cpu_now),
            busiest_thread_fraction: sums.busiest as f64 / length as f64,
            dropped: self.dropped,
            reconnections,
            carries_per_s: about
                .in_flight
                .filter(|_| mean_s > 0.0)
                .map(|in_flight| f64::from(in_flight) / mean_s),
        });
        self.print(&record)
    }

    fn print_routed(&mut self, tally: &Tally) -> io::Result<()> {
        tally.routed.iter().try_for_each(|first| {
            self.print(&Record::Routed(Routed {
                t_s: self.clock.wall_s(first.at),
                contact: first.contact.clone(),
            }))
        })
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use steelyard_workload::ycsb;

    #[test]
    fn every_worker_gets_back_as_many_tallies_as_it_hands_in() {
        let kinds = Arc::new(ycsb::kinds());
        let phase = PhaseInfo {
            name: "measure".to_owned(),
            start: 0,
            in_flight: None,
        };
        let (returns, emptied): (Vec<_>, Vec<_>) = (0..3).map(|_| mpsc::channel()).unzip();
        let (reports, inbox) = mpsc::channel();
        for number in 0..20 {
            // The last worker is the first to hand in, and so on.
            for worker in (0..3).rev() {
                let report = Report {
                    worker,
                    phase: 0,
                    number,
                    end: number + 1,
                    tally: Box::new(Tally::new(&kinds).unwrap()),
                    last: false,
                    over: false,
                    cpu: 0,
                };
                reports.send(report).unwrap();
            }
        }
        drop(reports);
        let mut out = Vec::new();
        let mut reporter = Reporter::new(vec![phase], &kinds, Clock::start(), returns, &mut out).unwrap();
        reporter.collect(&inbox, &AtomicBool::new(false)).unwrap();
        let counts: Vec<usize> = emptied.iter().map(|emptied| emptied.try_iter().count()).collect();
        assert_eq!(counts, [20; 3]);
    }
}
