//! The loop of one worker thread: which operation when, its instants, its time-out.
//!
//! Closed loop: every slot is a thread of YCSB's; its next operation is due the instant that its last was answered. Open
//! loop: the schedule says when; an operation that finds no free slot waits and is sent late. Nothing is locked or
//! allocated for an operation.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use steelyard_wire::Share;

use crate::client::{Client, Clock, Completion, Nanos, Outcome};
use crate::schedule::{Constant, Poisson, Schedule};
use crate::tally::{Tally, Timing};
use crate::ycsb::{Kind, Operation, Stream};

/// Longest wait without looking whether to stop.
const STOP_CHECK_NS: Nanos = 100_000_000;
/// Longest wait for answers after a stop was asked for.
const STOP_DRAIN_NS: Nanos = 2_000_000_000;
const NONE: u32 = u32::MAX;

/// What decides when operations are due.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    Closed,
    Constant(Constant),
    Poisson(Poisson),
}

impl Pace {
    /// Nanoseconds since the phase's start; `None` when the schedule is over.
    fn due(&mut self, index: u64) -> Option<Nanos> {
        match self {
            Self::Closed => Some(0),
            Self::Constant(schedule) => schedule.due(index),
            Self::Poisson(schedule) => schedule.due(index),
        }
    }
}

/// One phase as a worker sees it.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub pace: Pace,
    pub start: Nanos,
    /// Operations over all shares; this worker's part follows from its share.
    pub operations: Option<u64>,
    pub duration: Option<Nanos>,
    pub timeout: Nanos,
    pub interval: Nanos,
}

impl Phase {
    /// When a backlog is no longer sent: a phase's length (at least a time-out) after the phase's end. A system that is
    /// asked for ten times what it can do would otherwise hold the phase for ten times its length.
    fn gives_up_at(&self) -> Option<Nanos> {
        let duration = self.duration.filter(|_| !matches!(self.pace, Pace::Closed))?;
        Some(self.start + duration + duration.max(self.timeout))
    }
}

/// What a worker hands to the reporter at the end of an interval.
pub(crate) struct Report {
    pub worker: usize,
    /// Number of the interval within the phase, from 0.
    pub number: u64,
    /// Its end; the last one of a phase may be shorter than the others.
    pub end: Nanos,
    pub tally: Box<Tally>,
    pub last: bool,
}

/// A worker's way to the reporter, and the emptied tallies' way back.
pub(crate) struct Desk {
    pub worker: usize,
    pub reports: Sender<Report>,
    pub emptied: Receiver<Box<Tally>>,
}

/// Which half of a read-modify-write is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    Read,
    /// With what the read found.
    Write(Outcome),
}

struct Slot {
    operation: Operation,
    part: Part,
    due: Nanos,
    /// When this place in flight became free.
    free: Nanos,
    /// When the operation's first half was sent.
    first_sent: Option<Nanos>,
    submitted: Nanos,
    busy: bool,
    /// Neighbours in the list of busy slots, oldest first.
    older: u32,
    newer: u32,
}

/// One thread's client, operations and slots; lives through all phases.
pub(crate) struct Worker<C> {
    client: C,
    stream: Stream,
    share: Share,
    slots: Vec<Slot>,
    /// Longest free first, so that `pacing` is never flattered.
    free: VecDeque<u32>,
    oldest: u32,
    newest: u32,
    busy: u32,
    completions: Vec<Completion>,
}

/// The state of one phase.
struct Progress<'a> {
    phase: Phase,
    /// This worker's operations sent so far in the phase.
    count: u64,
    next_due: Option<Nanos>,
    interval_number: u64,
    interval_end: Nanos,
    tally: Box<Tally>,
    desk: &'a Desk,
}

impl<C: Client> Worker<C> {
    pub fn new(client: C, stream: Stream, share: Share, slots: u32) -> Self {
        let empty = Operation {
            index: 0,
            kind: Kind::Read,
            key: 0,
            field: 0,
            scan_length: 0,
        };
        let slot = |_| Slot {
            operation: empty,
            part: Part::Whole,
            due: 0,
            free: 0,
            first_sent: None,
            submitted: 0,
            busy: false,
            older: NONE,
            newer: NONE,
        };
        Self {
            client,
            stream,
            share,
            slots: (0..slots).map(slot).collect(),
            free: (0..slots).collect(),
            oldest: NONE,
            newest: NONE,
            busy: 0,
            completions: Vec::with_capacity(slots as usize),
        }
    }

    pub fn reconnections(&self) -> u64 {
        self.client.reconnections()
    }

    /// Carries out one phase: sends what is due, drains, hands over the last interval. Errors: see `Client::poll`.
    pub fn run(
        &mut self,
        phase: Phase,
        clock: Clock,
        stop: &AtomicBool,
        desk: &Desk,
        tally: Box<Tally>,
    ) -> io::Result<()> {
        for slot in &mut self.slots {
            slot.free = phase.start;
        }
        let interval_end = phase.start + phase.interval;
        let mut progress = Progress {
            phase,
            count: 0,
            next_due: None,
            interval_number: 0,
            interval_end,
            tally,
            desk,
        };
        progress.schedule_next(self.share);
        let mut stopped_at = None;
        loop {
            let now = clock.now();
            progress.turn_interval(now, self.share);
            if stopped_at.is_none() && stop.load(Ordering::Relaxed) {
                stopped_at = Some(now);
                progress.next_due = None;
            }
            self.expire(&mut progress, now, stopped_at);
            self.admit(&mut progress, now);
            if self.busy == 0 && progress.next_due.is_none() {
                break;
            }
            let until = self.wake_up(&progress, now);
            self.client.poll(&clock, until, &mut self.completions)?;
            self.settle(&mut progress);
        }
        progress.finish(clock.now());
        Ok(())
    }

    /// When there is something to do at the latest.
    fn wake_up(&self, progress: &Progress<'_>, now: Nanos) -> Nanos {
        let mut until = progress.interval_end.min(now + STOP_CHECK_NS);
        if let (Some(due), false) = (progress.next_due, self.free.is_empty()) {
            until = until.min(due);
        }
        if self.oldest != NONE {
            until = until.min(self.slots[self.oldest as usize].submitted + progress.phase.timeout);
        }
        until
    }

    /// Starts every operation that is due and has a place.
    fn admit(&mut self, progress: &mut Progress<'_>, now: Nanos) {
        if progress.phase.gives_up_at().is_some_and(|end| now > end) {
            return self.give_up_backlog(progress, now);
        }
        while let Some(due) = progress.next_due {
            let Some(&slot) = self.free.front() else { return };
            let due = match progress.phase.pace {
                Pace::Closed => self.slots[slot as usize].free,
                _ => due,
            };
            if due > now {
                return;
            }
            if matches!(progress.phase.pace, Pace::Closed) && progress.is_over(due) {
                progress.next_due = None;
                return;
            }
            self.free.pop_front();
            self.begin(slot, due, now);
            progress.tally.sent += 1;
            progress.count += 1;
            progress.schedule_next(self.share);
        }
    }

    /// Operations that a hopeless backlog leaves over are counted as timed out, with the response time they have had.
    #[cold]
    fn give_up_backlog(&mut self, progress: &mut Progress<'_>, now: Nanos) {
        while let Some(due) = progress.next_due {
            let operation = self.stream.next();
            let timing = Timing {
                due,
                free: due,
                sent: None,
                done: now,
            };
            progress.tally.operation(operation.kind, Outcome::Timeout, 0, &timing);
            progress.count += 1;
            progress.schedule_next(self.share);
        }
    }

    fn begin(&mut self, number: u32, due: Nanos, now: Nanos) {
        let operation = self.stream.next();
        let slot = &mut self.slots[number as usize];
        slot.operation = operation;
        slot.due = due;
        slot.first_sent = None;
        slot.busy = true;
        slot.part = if operation.kind == Kind::ReadModifyWrite {
            Part::Read
        } else {
            Part::Whole
        };
        self.busy += 1;
        self.submit(number, now);
    }

    fn submit(&mut self, number: u32, now: Nanos) {
        let slot = &mut self.slots[number as usize];
        slot.submitted = now;
        let kind = match slot.part {
            Part::Whole => slot.operation.kind,
            Part::Read => Kind::Read,
            Part::Write(_) => Kind::Update,
        };
        let operation = Operation { kind, ..slot.operation };
        self.append(number);
        self.client.submit(number, &operation);
    }

    /// Takes what `poll` brought.
    fn settle(&mut self, progress: &mut Progress<'_>) {
        let mut completions = std::mem::take(&mut self.completions);
        for completion in completions.drain(..) {
            if self.slots[completion.slot as usize].busy {
                self.complete(progress, &completion);
            }
        }
        self.completions = completions;
    }

    fn complete(&mut self, progress: &mut Progress<'_>, completion: &Completion) {
        progress.turn_interval(completion.done, self.share);
        self.unlink(completion.slot);
        let slot = &mut self.slots[completion.slot as usize];
        let outcome = match slot.part {
            Part::Whole => completion.outcome,
            Part::Read => {
                progress.part(Kind::Read, completion);
                slot.first_sent = completion.sent;
                if !completion.outcome.is_error() {
                    slot.part = Part::Write(completion.outcome);
                    return self.submit(completion.slot, completion.done);
                }
                completion.outcome
            }
            Part::Write(read) => {
                progress.part(Kind::Update, completion);
                if completion.outcome.is_error() {
                    completion.outcome
                } else {
                    read
                }
            }
        };
        let sent = slot.first_sent.or(completion.sent);
        let timing = Timing {
            due: slot.due,
            free: slot.free.max(completion.ready),
            sent,
            done: completion.done,
        };
        progress
            .tally
            .operation(slot.operation.kind, outcome, completion.rows, &timing);
        if outcome == Outcome::NotFound && self.stream.is_new(slot.operation.key) {
            progress.tally.early += 1;
        }
        slot.free = completion.done;
        slot.busy = false;
        self.busy -= 1;
        self.free.push_back(completion.slot);
    }

    /// Ends operations that have waited for the time-out; after a stop, for `STOP_DRAIN_NS` at most.
    fn expire(&mut self, progress: &mut Progress<'_>, now: Nanos, stopped_at: Option<Nanos>) {
        let given_up = stopped_at.is_some_and(|at| now >= at + STOP_DRAIN_NS);
        while self.oldest != NONE {
            let number = self.oldest;
            if !given_up && now < self.slots[number as usize].submitted + progress.phase.timeout {
                return;
            }
            let sent = self.client.abandon(number);
            let outcome = if sent.is_some() {
                Outcome::Timeout
            } else {
                Outcome::Connection
            };
            self.complete(
                progress,
                &Completion {
                    slot: number,
                    outcome,
                    rows: 0,
                    sent,
                    ready: 0,
                    done: now,
                },
            );
        }
    }

    fn append(&mut self, number: u32) {
        let newest = self.newest;
        let slot = &mut self.slots[number as usize];
        (slot.older, slot.newer) = (newest, NONE);
        match newest {
            NONE => self.oldest = number,
            newest => self.slots[newest as usize].newer = number,
        }
        self.newest = number;
    }

    fn unlink(&mut self, number: u32) {
        let slot = &self.slots[number as usize];
        let (older, newer) = (slot.older, slot.newer);
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
    }
}

impl Progress<'_> {
    /// When this worker's next operation is due; `None` after the last.
    fn schedule_next(&mut self, share: Share) {
        self.next_due = self.due_of(self.count, share);
    }

    fn due_of(&mut self, count: u64, share: Share) -> Option<Nanos> {
        let index = share.index + count * share.of;
        if self.phase.operations.is_some_and(|operations| index >= operations) {
            return None;
        }
        self.phase.pace.due(index).map(|due| self.phase.start + due)
    }

    fn is_over(&self, now: Nanos) -> bool {
        self.phase
            .duration
            .is_some_and(|duration| now >= self.phase.start + duration)
    }

    fn part(&mut self, kind: Kind, completion: &Completion) {
        if let Some(sent) = completion.sent {
            self.tally
                .part(kind, completion.outcome, completion.done.saturating_sub(sent));
        }
    }

    /// Hands over the interval if `now` is beyond its end.
    #[inline]
    fn turn_interval(&mut self, now: Nanos, share: Share) {
        while now >= self.interval_end {
            self.tally.backlog = self.backlog(self.interval_end, share);
            self.hand_over(self.interval_end, false);
            self.interval_end += self.phase.interval;
        }
    }

    /// Operations due before `now` and not sent. Looked for only where the next one is late.
    #[cold]
    fn backlog(&mut self, now: Nanos, share: Share) -> u64 {
        if matches!(self.phase.pace, Pace::Closed) || self.next_due.is_none_or(|due| due >= now) {
            return 0;
        }
        let pace = self.phase.pace.clone();
        let late = (self.count..)
            .take_while(|count| self.due_of(*count, share).is_some_and(|due| due < now))
            .count();
        self.phase.pace = pace;
        late as u64
    }

    #[cold]
    fn hand_over(&mut self, end: Nanos, last: bool) {
        // A tally comes back from the reporter cleared; if the reporter is behind, a new one is made of the old.
        let fresh = match self.desk.emptied.try_recv() {
            Ok(tally) => tally,
            Err(_) => Box::new(self.tally.sibling()),
        };
        let tally = std::mem::replace(&mut self.tally, fresh);
        let report = Report {
            worker: self.desk.worker,
            number: self.interval_number,
            end,
            tally,
            last,
        };
        self.interval_number += 1;
        // The reporter is gone only if it has failed; its error is the one that is told.
        let _ = self.desk.reports.send(report);
    }

    fn finish(&mut self, now: Nanos) {
        self.tally.backlog = 0;
        self.hand_over(now.max(self.phase.start), true);
    }
}
