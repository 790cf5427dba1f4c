//! Phase sequence of one worker: phases that follow each other without a pause. `Progress` keeps two positions in time: the
//! operation that is next to be sent, and the interval that is being counted.
//!
//! Phases have their times from the clock alone. What is due in one and late is sent in the next one, before what is due there;
//! an operation counts in the phase in which it is sent, and again in which it ends. The backlog is no queue: operations in it
//! are those between the next to send and the next to become due, but for the few ranges that found it full.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender};

use rustix::time::ClockId;
use steelyard_wire::Share;

use crate::clock::Nanos;
use crate::clock::cpu_time;
use crate::schedule::{Pace, Schedule};
use crate::tally::Tally;

/// One phase of a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub pace: Pace,
    pub start: Nanos,
    pub duration: Option<Nanos>,
    /// Operations over all shares; this worker's part follows from its share.
    pub operations: Option<u64>,
    /// Operations that this worker may have in flight.
    pub in_flight: u32,
}

impl Phase {
    fn end(&self) -> Option<Nanos> {
        Some(self.start + self.duration?)
    }
}

/// Phases that follow each other without a pause; all but the last have a duration.
#[derive(Clone, Debug)]
pub(crate) struct PhaseSequence {
    pub phases: Vec<Phase>,
    pub timeout: Nanos,
    /// How often a request is sent, at most.
    pub tries: u32,
    pub interval: Nanos,
    /// Operations of this worker that may be due and not yet sent.
    pub backlog_limit: u64,
    /// How long after the end a backlog is still sent, where the order says so.
    pub drain: Option<Nanos>,
}

impl PhaseSequence {
    /// When a backlog is no longer sent: the order's drain after the end, or else the sequence's length (at least a time-out). A
    /// system that is asked for ten times what it can do would otherwise hold the sequence for ten times its length.
    fn gives_up_at(&self) -> Option<Nanos> {
        let (first, last) = (self.phases.first()?, self.phases.last()?);
        if self.phases.iter().all(|phase| phase.pace.is_closed()) {
            return None;
        }
        let end = last.end()?;
        Some(end + self.drain.unwrap_or_else(|| (end - first.start).max(self.timeout)))
    }
}

/// What a worker hands to the reporter at the end of an interval.
pub(crate) struct Report {
    pub worker: usize,
    /// Number of the phase within the sequence, from 0.
    pub phase: usize,
    /// Number of the interval within the phase, from 0.
    pub number: u64,
    /// Its end; the last one of a phase may be shorter than the others.
    pub end: Nanos,
    pub tally: Box<Tally>,
    /// Whether it is the last of the phase.
    pub last: bool,
    /// Whether the worker has ended the sequence with it.
    pub over: bool,
    /// What the worker's thread has used of its processor so far.
    pub cpu: Nanos,
}

/// A worker's way to the reporter, and the emptied tallies' way back.
pub(crate) struct ReportChannel {
    pub worker: usize,
    pub reports: Sender<Report>,
    pub emptied: Receiver<Box<Tally>>,
}

/// An operation of this worker's share in the order in which they are due.
#[derive(Clone, Debug)]
struct Cursor {
    phase: usize,
    /// Operations of the share before it in its phase.
    count: u64,
    pace: Pace,
    /// When it is due; `None` after the last.
    due: Option<Nanos>,
}

impl Cursor {
    fn first(sequence: &PhaseSequence, share: Share) -> Self {
        let mut cursor = Self {
            phase: 0,
            count: 0,
            pace: sequence.phases[0].pace.clone(),
            due: None,
        };
        cursor.find(sequence, share);
        cursor
    }

    /// Moves ahead by this many operations within the phase, or to the next phase.
    #[inline]
    fn advance(&mut self, by: u64, sequence: &PhaseSequence, share: Share) {
        self.count += by;
        self.find(sequence, share);
    }

    #[inline]
    fn find(&mut self, sequence: &PhaseSequence, share: Share) {
        loop {
            let phase = &sequence.phases[self.phase];
            let index = share.index + self.count * share.of;
            let within = phase.operations.is_none_or(|operations| index < operations);
            self.due = within
                .then(|| self.pace.due(index))
                .flatten()
                .map(|due| phase.start + due);
            if self.due.is_some() || !self.enter_next(sequence) {
                return;
            }
        }
    }

    /// To the first operation of the next phase.
    fn skip_phase(&mut self, sequence: &PhaseSequence, share: Share) {
        self.due = None;
        if self.enter_next(sequence) {
            self.find(sequence, share);
        }
    }

    fn enter_next(&mut self, sequence: &PhaseSequence) -> bool {
        let Some(phase) = sequence.phases.get(self.phase + 1) else {
            return false;
        };
        (self.phase, self.count, self.pace) = (self.phase + 1, 0, phase.pace.clone());
        true
    }
}

/// Operations that found the backlog full: of one phase, in a row.
#[derive(Debug)]
struct Refused {
    phase: usize,
    first: u64,
    end: u64,
}

/// Where a worker is in a sequence.
pub(crate) struct Progress<'a> {
    pub sequence: PhaseSequence,
    pub tally: Box<Tally>,
    share: Share,
    next: Cursor,
    /// The next to become due. Only where `waiting` is above 0: then it is beyond `next`.
    arriving: Cursor,
    /// Operations in the backlog.
    waiting: u64,
    /// In the order of their due times, all of them between `next` and `arriving`.
    refused: VecDeque<Refused>,
    gives_up_at: Option<Nanos>,
    /// The phase whose interval is being counted.
    phase: usize,
    interval_number: u64,
    interval_end: Nanos,
    channel: &'a ReportChannel,
}

impl<'a> Progress<'a> {
    pub fn new(sequence: PhaseSequence, share: Share, channel: &'a ReportChannel, tally: Box<Tally>) -> Self {
        let next = Cursor::first(&sequence, share);
        let mut progress = Self {
            arriving: next.clone(),
            next,
            share,
            waiting: 0,
            refused: VecDeque::new(),
            gives_up_at: sequence.gives_up_at(),
            phase: 0,
            interval_number: 0,
            interval_end: sequence.phases[0].start,
            sequence,
            tally,
            channel,
        };
        progress.plan_interval();
        progress
    }

    /// When the next operation is due; a closed loop's says since when its phase lasts. `None` after the last.
    #[inline]
    pub fn next_due(&self) -> Option<Nanos> {
        self.next.due
    }

    /// The phase of the next operation.
    #[inline]
    pub fn next_phase(&self) -> (usize, &Phase) {
        (self.next.phase, &self.sequence.phases[self.next.phase])
    }

    pub fn interval_end(&self) -> Nanos {
        self.interval_end
    }

    /// Whether what is left of the backlog is given up by now.
    #[inline]
    pub fn gives_up(&self, now: Nanos) -> bool {
        self.gives_up_at.is_some_and(|at| now > at)
    }

    /// Nothing more is sent, whatever is due by now.
    pub fn stop(&mut self, now: Nanos) {
        self.tally.unsent += self.backlog(now);
        (self.next.due, self.waiting) = (None, 0);
        self.refused.clear();
    }

    /// The next operation is sent, or given up: on to the one after it.
    #[inline]
    pub fn taken(&mut self) {
        self.next.advance(1, &self.sequence, self.share);
        if self.waiting > 0 {
            self.waiting -= 1;
            self.pass_refused();
        }
    }

    /// Past operations that were refused when they became due.
    #[cold]
    fn pass_refused(&mut self) {
        while let Some(range) = self.refused.front() {
            if (range.phase, range.first) != (self.next.phase, self.next.count) {
                return;
            }
            self.next.advance(range.end - range.first, &self.sequence, self.share);
            self.refused.pop_front();
        }
    }

    /// A closed loop's phase has ended.
    pub fn skip_phase(&mut self) {
        self.next.skip_phase(&self.sequence, self.share);
    }

    /// Whether the phase of the next operation has ended by that time.
    pub fn is_over(&self, now: Nanos) -> bool {
        self.sequence.phases[self.next.phase]
            .end()
            .is_some_and(|end| now >= end)
    }

    /// Whether operations that became due before `free`, when a place in flight became free, have not been put to the backlog yet.
    #[inline]
    pub fn is_behind(&self, free: Nanos) -> bool {
        let cursor = if self.waiting > 0 { &self.arriving } else { &self.next };
        !cursor.pace.is_closed() && cursor.due.is_some_and(|due| due < free)
    }

    /// Puts what has become due by `now` to the backlog, which has no place in flight. Returns the due time of the first that
    /// finds it full, which is then never sent; `None` when all are in it. To be called until then.
    #[cold]
    pub fn overflow(&mut self, now: Nanos) -> Option<Nanos> {
        if self.waiting == 0 && self.refused.is_empty() {
            self.arriving = self.next.clone();
        }
        let refused = loop {
            let due = self
                .arriving
                .due
                .filter(|due| *due <= now && !self.arriving.pace.is_closed());
            let Some(due) = due else { break None };
            let (phase, first) = (self.arriving.phase, self.arriving.count);
            self.arriving.advance(1, &self.sequence, self.share);
            if self.waiting < self.sequence.backlog_limit {
                self.waiting += 1;
                continue;
            }
            match self.refused.back_mut() {
                Some(range) if (range.phase, range.end) == (phase, first) => range.end += 1,
                _ => self.refused.push_back(Refused {
                    phase,
                    first,
                    end: first + 1,
                }),
            }
            break Some(due);
        };
        if refused.is_none() {
            self.pass_refused();
        }
        refused
    }

    /// Hands over every interval that has ended by `now`.
    #[inline]
    pub fn turn_interval(&mut self, now: Nanos) {
        while now >= self.interval_end {
            self.turn();
        }
    }

    #[cold]
    fn turn(&mut self) {
        let end = self.interval_end;
        self.tally.backlog = self.backlog(end);
        let last = self.phase_end() == Some(end);
        self.hand_over(end, last, false);
        if last {
            (self.phase, self.interval_number) = (self.phase + 1, 0);
        }
        self.plan_interval();
    }

    /// The end of the phase that is being counted; `None` for the last one, which lasts until all is answered.
    fn phase_end(&self) -> Option<Nanos> {
        self.sequence.phases.get(self.phase + 1).map(|next| next.start)
    }

    fn plan_interval(&mut self) {
        let end = self.interval_end + self.sequence.interval;
        self.interval_end = self.phase_end().map_or(end, |phase_end| phase_end.min(end));
    }

    /// Operations due before `end` and not sent: those in the backlog, and those that were not yet looked at.
    fn backlog(&self, end: Nanos) -> u64 {
        let mut cursor = if self.waiting > 0 {
            self.arriving.clone()
        } else if self.next.due.is_some_and(|due| due < end) {
            self.next.clone()
        } else {
            return 0;
        };
        let mut late = self.waiting;
        while late < self.sequence.backlog_limit && !cursor.pace.is_closed() && cursor.due.is_some_and(|due| due < end)
        {
            late += 1;
            cursor.advance(1, &self.sequence, self.share);
        }
        late
    }

    fn hand_over(&mut self, end: Nanos, last: bool, over: bool) {
        // A tally comes back from the reporter cleared; if the reporter is behind, a new one is made of the old.
        let fresh = match self.channel.emptied.try_recv() {
            Ok(tally) => tally,
            Err(_) => Box::new(self.tally.sibling()),
        };
        let report = Report {
            worker: self.channel.worker,
            phase: self.phase,
            number: self.interval_number,
            end,
            tally: std::mem::replace(&mut self.tally, fresh),
            last,
            over,
            cpu: cpu_time(ClockId::ThreadCPUTime),
        };
        self.interval_number += 1;
        // The reporter is gone only if it has failed; that error is the one that is reported.
        let _ = self.channel.reports.send(report);
    }

    /// The sequence has ended.
    pub fn finish(&mut self, now: Nanos) {
        self.tally.backlog = 0;
        let start = self.sequence.phases[self.phase].start;
        self.hand_over(now.max(start), true, true);
    }
}
