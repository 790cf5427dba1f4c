//! Worker: the loop of one thread, which starts operations, takes their instants and ends them by time-out.
//!
//! Closed loop: every slot is a thread of YCSB's; its next operation is due the instant that its last was answered. Open
//! loop: the schedule says when; an operation that finds no free slot waits and is sent late. Nothing is locked or
//! allocated for an operation.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steelyard_wire::{Action, Share};

use crate::client::{Client, Completion};
use crate::clock::{Clock, Nanos};
use crate::outcome::Outcome;
use crate::phase_sequence::{PhaseSequence, Progress, ReportChannel};
use crate::tally::{Tally, Timing};
use steelyard_workload::operation::{Kinds, Operation};
use steelyard_workload::read_back::{self, Row, Write, Written};
use steelyard_workload::stream::Stream;

/// Longest wait without looking whether to stop.
const STOP_CHECK_NS: Nanos = 100_000_000;
/// Longest wait for answers after a stop was asked for.
const STOP_DRAIN_NS: Nanos = 2_000_000_000;
const NONE: u32 = u32::MAX;

struct Slot {
    /// With the step that is in flight.
    operation: Operation,
    /// The first outcome of the steps before that was not `Ok`.
    earlier_outcome: Outcome,
    /// Rows of the steps before.
    rows: u32,
    /// How often the step in flight has been sent.
    tries: u32,
    due: Nanos,
    /// When this place in flight became free, and there was a connection to send its operation on.
    free: Nanos,
    /// When the operation's first step was sent.
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
    kinds: Arc<Kinds>,
    share: Share,
    /// Whether the load is to end at once: nothing is tried again.
    stopping: bool,
    /// What was written, where the order reads it back.
    written: Option<Written>,
    slots: Vec<Slot>,
    /// Longest free first, so that `pacing` is never flattered.
    free: VecDeque<u32>,
    /// Free, but more than the phase of the next operation may have in flight.
    spare: Vec<u32>,
    /// The phase for which `free` and `spare` were divided last.
    fitted: usize,
    oldest: u32,
    newest: u32,
    busy: u32,
    completions: Vec<Completion>,
}

impl<C: Client> Worker<C> {
    pub fn new(client: C, stream: Stream, kinds: Arc<Kinds>, share: Share, slots: u32) -> Self {
        let slot = |_| Slot {
            operation: Operation::default(),
            earlier_outcome: Outcome::Ok,
            rows: 0,
            tries: 0,
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
            kinds,
            share,
            stopping: false,
            written: None,
            slots: (0..slots).map(slot).collect(),
            free: (0..slots).collect(),
            spare: Vec::with_capacity(slots as usize),
            fitted: 0,
            oldest: NONE,
            newest: NONE,
            busy: 0,
            completions: Vec::with_capacity(slots as usize),
        }
    }

    pub fn reconnections(&self) -> u64 {
        self.client.reconnections()
    }

    /// From now on keeps what it writes.
    pub fn keep_written(&mut self) {
        self.written = Some(Written::default());
    }

    /// Hands over what it has written, and keeps no more.
    pub fn hand_over_written(&mut self) -> Written {
        self.written.take().unwrap_or_default()
    }

    /// From now on its operations read these rows.
    pub fn read_back(&mut self, rows: Vec<Row>) {
        self.stream = Stream::ReadBack(read_back::Stream::new(rows));
    }

    /// Hands over the rows that were not right, or not read.
    pub fn hand_over_missed(&mut self) -> Vec<Row> {
        match &mut self.stream {
            Stream::ReadBack(stream) => std::mem::take(stream).missed(),
            _ => Vec::new(),
        }
    }

    /// Carries out one sequence: sends what is due, drains, hands over the last interval. Errors: see `Client::poll`.
    pub fn run(
        &mut self,
        sequence: PhaseSequence,
        clock: Clock,
        stop: &AtomicBool,
        channel: &ReportChannel,
        tally: Box<Tally>,
    ) -> io::Result<()> {
        for slot in &mut self.slots {
            slot.free = sequence.phases[0].start;
        }
        let mut progress = Progress::new(sequence, self.share, channel, tally);
        self.fit(&progress);
        let mut stopped_at = None;
        self.stopping = false;
        loop {
            let now = clock.now();
            progress.turn_interval(now);
            if stopped_at.is_none() && stop.load(Ordering::Relaxed) {
                stopped_at = Some(now);
                self.stopping = true;
                progress.stop(now);
            }
            self.expire(&mut progress, now, stopped_at);
            self.admit(&mut progress, now);
            if self.busy == 0 && progress.next_due().is_none() {
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
        let mut until = progress.interval_end().min(now + STOP_CHECK_NS);
        if let (Some(due), false) = (progress.next_due(), self.free.is_empty()) {
            until = until.min(due);
        }
        if self.oldest != NONE {
            until = until.min(self.slots[self.oldest as usize].submitted + progress.sequence.timeout);
        }
        until
    }

    /// Starts every operation that is due and has a free slot; the others that are due go to the backlog.
    fn admit(&mut self, progress: &mut Progress<'_>, now: Nanos) {
        if progress.gives_up(now) {
            return self.give_up_backlog(progress);
        }
        while let Some(due) = progress.next_due() {
            let (number, phase) = progress.next_phase();
            let closed = phase.pace.is_closed();
            if number != self.fitted {
                self.fit(progress);
            }
            let Some(&slot) = self.free.front() else {
                if closed && progress.is_over(now) {
                    progress.skip_phase();
                    continue;
                }
                if !closed && due <= now {
                    self.keep_waiting(progress, now);
                }
                return;
            };
            let free = self.slots[slot as usize].free;
            if !closed && due < free && progress.is_behind(free) {
                self.keep_waiting(progress, free - 1);
                continue;
            }
            let due = if closed { due.max(free) } else { due };
            if closed && progress.is_over(due) {
                progress.skip_phase();
                continue;
            }
            if due > now {
                return;
            }
            self.free.pop_front();
            self.begin(slot, due, now);
            progress.tally.sent += 1;
            progress.taken();
        }
    }

    /// As many free places as the phase of the next operation may have in flight, less what is in flight.
    #[cold]
    fn fit(&mut self, progress: &Progress<'_>) {
        let (number, phase) = progress.next_phase();
        self.fitted = number;
        let wanted = phase.in_flight.saturating_sub(self.busy) as usize;
        while self.free.len() > wanted {
            self.spare.extend(self.free.pop_back());
        }
        while self.free.len() < wanted
            && let Some(slot) = self.spare.pop()
        {
            // It has been a place in flight since its phase began, and no longer.
            let since = &mut self.slots[slot as usize].free;
            *since = phase.start.max(*since);
            self.free.push_back(slot);
        }
    }

    /// No place in flight for what has become due by `until`: the backlog takes it. What finds the backlog full is never sent.
    fn keep_waiting(&mut self, progress: &mut Progress<'_>, until: Nanos) {
        while progress.overflow(until).is_some() {
            self.never_sent(progress);
        }
    }

    /// Operations that a hopeless backlog leaves over are never sent.
    #[cold]
    fn give_up_backlog(&mut self, progress: &mut Progress<'_>) {
        while progress.next_due().is_some() {
            if progress.next_phase().1.pace.is_closed() {
                progress.skip_phase();
                continue;
            }
            self.never_sent(progress);
            progress.taken();
        }
    }

    /// The next operation of the stream passes by: neither done nor failed, because the system never saw it.
    #[cold]
    fn never_sent(&mut self, progress: &mut Progress<'_>) {
        self.stream.next();
        progress.tally.unsent += 1;
    }

    fn begin(&mut self, number: u32, due: Nanos, now: Nanos) {
        let operation = self.stream.next();
        let slot = &mut self.slots[number as usize];
        slot.operation = operation;
        slot.due = due;
        slot.first_sent = None;
        slot.busy = true;
        slot.earlier_outcome = Outcome::Ok;
        slot.rows = 0;
        slot.tries = 1;
        self.busy += 1;
        self.submit(number, now);
    }

    fn submit(&mut self, number: u32, now: Nanos) {
        let slot = &mut self.slots[number as usize];
        slot.submitted = now;
        let operation = slot.operation;
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
        self.client.hand_over_errors(&mut progress.tally.error_samples);
        self.client.hand_over_routed(&mut progress.tally.routed);
    }

    fn complete(&mut self, progress: &mut Progress<'_>, completion: &Completion) {
        progress.turn_interval(completion.done);
        self.unlink(completion.slot);
        let slot = &mut self.slots[completion.slot as usize];
        let steps = &self.kinds.kind(slot.operation.kind).steps;
        let sent = slot.first_sent.or(completion.sent);
        if slot.first_sent.is_none() {
            // That of a later step, or a later try, has no part in how late the first was sent.
            slot.free = slot.free.max(completion.ready);
        }
        let mut outcome = completion.outcome;
        // An answer that is not what was written stays so; what could not be sent for a whole time-out has waited enough.
        let again = outcome.is_error() && outcome != Outcome::Invalid && completion.sent.is_some();
        if again && slot.tries < progress.sequence.tries && !self.stopping {
            slot.tries += 1;
            slot.first_sent = sent;
            return self.submit(completion.slot, completion.done);
        }
        if let (Some(written), Some(sent)) = (&mut self.written, if slot.tries > 1 { sent } else { completion.sent })
            && !matches!(outcome, Outcome::NotFound | Outcome::NotApplied)
            && let Some(field) = self.stream.written_field(&slot.operation)
        {
            let version = slot.operation.version(Action::Load);
            // An earlier try may still take effect.
            let acknowledged = (outcome == Outcome::Ok && slot.tries == 1).then_some(completion.done);
            written.add(
                slot.operation.key,
                field,
                Write {
                    version,
                    sent,
                    acknowledged,
                },
            );
        }
        if let Stream::ReadBack(stream) = &mut self.stream
            && outcome != Outcome::Ok
        {
            let wrong = matches!(outcome, Outcome::NotFound | Outcome::Invalid);
            if wrong && let Some(other) = stream.other(&slot.operation) {
                slot.operation = other;
                return self.submit(completion.slot, completion.done);
            }
            let row = stream.miss(&slot.operation);
            if wrong {
                progress.tally.error_samples.add(outcome, &row.to_string());
            }
        }
        slot.rows = slot.rows.saturating_add(completion.rows);
        if steps.len() > 1 {
            let step = usize::from(slot.operation.step);
            part(progress, steps[step], completion);
            if !outcome.is_error() {
                if slot.earlier_outcome == Outcome::Ok {
                    slot.earlier_outcome = outcome;
                }
                if step + 1 < steps.len() {
                    slot.operation.step += 1;
                    slot.tries = 1;
                    slot.first_sent = sent;
                    return self.submit(completion.slot, completion.done);
                }
                outcome = slot.earlier_outcome;
            }
        }
        let timing = Timing {
            due: slot.due,
            free: slot.free,
            sent,
            done: completion.done,
        };
        progress
            .tally
            .operation(slot.operation.kind, outcome, slot.rows, &timing);
        if outcome == Outcome::Ok {
            progress.tally.keys(slot.operation.kind, slot.operation.keys);
        }
        if outcome == Outcome::NotFound && self.stream.is_new(slot.operation.key) {
            progress.tally.early += 1;
        }
        slot.free = completion.done;
        slot.busy = false;
        self.busy -= 1;
        if (self.busy as usize + self.free.len()) < progress.next_phase().1.in_flight as usize {
            self.free.push_back(completion.slot);
        } else {
            self.spare.push(completion.slot);
        }
    }

    /// Ends operations that have waited for the time-out; after a stop, for `STOP_DRAIN_NS` at most.
    fn expire(&mut self, progress: &mut Progress<'_>, now: Nanos, stopped_at: Option<Nanos>) {
        let given_up = stopped_at.is_some_and(|at| now >= at + STOP_DRAIN_NS);
        while self.oldest != NONE {
            let number = self.oldest;
            if !given_up && now < self.slots[number as usize].submitted + progress.sequence.timeout {
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

fn part(progress: &mut Progress<'_>, name: u16, completion: &Completion) {
    if let Some(sent) = completion.sent {
        progress
            .tally
            .part(name, completion.outcome, completion.done.saturating_sub(sent));
    }
}
