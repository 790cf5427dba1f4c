//! HTTP client for load: a connection for each request in flight, kept or made anew. Requests are built in place, written at the
//! next poll, and bodies are looked at as they come.
//!
//! Operations go to the nodes in turn. A node that takes no connection has no turns until it takes one, which is tried with longer
//! and longer waits between; what finds no node waits for one. The limits of this machine (ports, open files) are no answers of a
//! server: they end the load as errors of `poll`.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;

use steelyard_channel::ContactError;
use steelyard_channel::events::Ready;
use steelyard_load::client::{Client, Completion};
use steelyard_load::clock::{Clock, Nanos};
use steelyard_load::error_samples::ErrorSamples;
use steelyard_load::outcome::Outcome;
use steelyard_protocol::slot::{Slot, SlotState};
use steelyard_protocol::{ConnectError, Malformed};
use steelyard_workload::operation::Operation;

use crate::answer::Part;
use crate::connection::{Connection, NotBegun, State};
use crate::course::{Course, Scratch};
use crate::dialect::Dialect;
use crate::pool::Pool;
use crate::server::HTTP;

const MAX_EVENTS: usize = 256;
/// The client of one worker.
pub struct HttpClient {
    dialect: Arc<Dialect>,
    pool: Pool,
    slots: Vec<Slot<Course>>,
    /// Connections with a request that is to be written.
    unsent: Vec<usize>,
    held: VecDeque<u32>,
    scratch: Scratch,
    /// For what is read, lent to the connection that reads.
    buffer: Vec<u8>,
    error_samples: ErrorSamples,
}

impl HttpClient {
    pub(crate) fn new(dialect: Arc<Dialect>, pool: Pool, slots: u32) -> Self {
        Self {
            dialect,
            pool,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            unsent: Vec::with_capacity(slots as usize),
            held: VecDeque::new(),
            scratch: Scratch::default(),
            buffer: Vec::new(),
            error_samples: ErrorSamples::default(),
        }
    }

    /// Gives the slot's request to a connection to the node whose turn it is; holds it while no node can be reached.
    #[inline]
    fn dispatch(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        let Some(number) = self.pool.take() else {
            entry.state = SlotState::Held;
            return self.held.push_back(slot);
        };
        let connection = &mut self.pool.connections[number];
        entry.state = SlotState::InFlight { connection: number };
        connection.state = State::Busy(slot);
        self.dialect.put(
            &entry.operation,
            &self.pool.nodes[connection.node].fields,
            &mut self.scratch,
            &mut connection.line.out,
        );
        self.unsent.push(number);
    }

    /// Writes requests, and makes connections again. Errors: this machine refuses.
    fn flush(&mut self, clock: &Clock, completions: &mut Vec<Completion>) -> io::Result<()> {
        let mut unsent = std::mem::take(&mut self.unsent);
        for number in unsent.drain(..) {
            let State::Busy(slot) = self.pool.connections[number].state else {
                continue;
            };
            let now = clock.now();
            self.slots[slot as usize].sent = Some(now);
            if !self.pool.connections[number].line.is_up() {
                match self.pool.begin(number) {
                    Ok(()) => {}
                    Err(NotBegun::Here(error)) => return Err(error),
                    Err(NotBegun::There(error)) => {
                        self.lose(number, error, now, completions);
                        continue;
                    }
                }
            }
            self.write(number, clock, completions);
        }
        self.unsent = unsent;
        self.pool.reopen(|| clock.now())
    }

    /// Gives the kernel what it takes.
    #[inline]
    fn write(&mut self, number: usize, clock: &Clock, completions: &mut Vec<Completion>) {
        let connection = &mut self.pool.connections[number];
        match connection.line.flush(&self.pool.events, number as u64) {
            Ok(()) if !connection.stands && connection.line.out.is_empty() => self.pool.stand(number),
            Ok(()) => {}
            Err(error) => self.lose(number, error, clock.now(), completions),
        }
    }

    /// Sends what was held, if there is a node by now.
    #[cold]
    fn send_held(&mut self, now: Nanos) {
        if self.pool.is_usable() {
            for slot in std::mem::take(&mut self.held) {
                self.slots[slot as usize].ready = now;
                self.dispatch(slot);
            }
        }
    }

    /// Reads what a server has sent, to its end if there is one.
    fn read(&mut self, number: usize, is_ending: bool, clock: &Clock, completions: &mut Vec<Completion>) {
        loop {
            let line = &mut self.pool.connections[number].line;
            let kept = line.take_input();
            let lent = if kept.is_empty() {
                std::mem::take(&mut self.buffer)
            } else {
                kept
            };
            line.give_back(lent, 0);
            let read = line.read();
            let now = clock.now();
            let taken = self.take_answer(number, now, completions);
            let more = match (taken, read) {
                (Err(malformed), _) => return self.break_off(number, malformed, now, completions),
                (_, Err(error)) => return self.end(number, error, now, completions),
                (Ok(()), Ok(more)) => more,
            };
            if !(more || is_ending) || !self.pool.connections[number].line.is_up() {
                return;
            }
        }
    }

    /// Takes what has come of an answer. Errors: it is none.
    #[inline]
    fn take_answer(&mut self, number: usize, now: Nanos, completions: &mut Vec<Completion>) -> Result<(), Malformed> {
        let connection = &mut self.pool.connections[number];
        let mut input = connection.line.take_input();
        let mut at = 0;
        let taken = match connection.state {
            State::Busy(slot) => loop {
                let (used, part) = match connection.reader.next(&input[at..]) {
                    Ok(read) => read,
                    Err(error) => break Err(error),
                };
                at += used;
                let entry = &mut self.slots[slot as usize];
                let looked = match part {
                    None => break Ok(()),
                    Some(Part::Head(head)) => {
                        self.dialect.head(&mut entry.course, &head);
                        Ok(())
                    }
                    Some(Part::Body(piece)) => self.dialect.body(&mut entry.course, piece),
                    Some(Part::End) => {
                        let rest = input.len() - at;
                        at = input.len();
                        break self.complete(number, slot, rest, now, completions);
                    }
                };
                if let Err(error) = looked {
                    break Err(error);
                }
            },
            State::Idle if !input.is_empty() => Err(Malformed("an answer to nothing")),
            State::Idle | State::Ending | State::Closed => {
                at = input.len();
                Ok(())
            }
        };
        if at == input.len() {
            input.clear();
            self.buffer = input;
        } else {
            self.pool.connections[number].line.give_back(input, at);
        }
        taken
    }

    /// Ends the operation whose answer is whole; `rest` bytes have come behind it. Errors: it was no answer to that request.
    #[inline]
    fn complete(
        &mut self,
        number: usize,
        slot: u32,
        rest: usize,
        now: Nanos,
        completions: &mut Vec<Completion>,
    ) -> Result<(), Malformed> {
        let entry = &mut self.slots[slot as usize];
        let (operation, course) = (&entry.operation, &mut entry.course);
        let outcome = self.dialect.end(operation, course, &mut self.error_samples)?;
        completions.push(entry.end(slot, outcome, entry.course.rows, now));
        self.pool.free(number, rest);
        Ok(())
    }

    /// The connection has ended: so has a body without a length; another answer is cut off.
    #[cold]
    fn end(&mut self, number: usize, error: io::Error, now: Nanos, completions: &mut Vec<Completion>) {
        let connection = &self.pool.connections[number];
        let closed = error.kind() == io::ErrorKind::UnexpectedEof;
        let State::Busy(slot) = connection.state else {
            if connection.line.is_up() && !connection.stands {
                return self.lose(number, error, now, completions);
            }
            return self.pool.close(number);
        };
        if closed && connection.reader.ends_with_connection() {
            return match self.complete(number, slot, 0, now, completions) {
                Ok(()) => self.pool.close(number),
                Err(malformed) => self.break_off(number, malformed, now, completions),
            };
        }
        self.lose(number, error, now, completions);
    }

    /// What came is no answer.
    #[cold]
    fn break_off(&mut self, number: usize, source: Malformed, now: Nanos, completions: &mut Vec<Completion>) {
        let contact = self.pool.nodes[self.pool.connections[number].node].contact.clone();
        let error = ConnectError::Protocol {
            contact,
            language: &HTTP,
            source,
        };
        self.give_up(number, &error.to_string(), now, completions);
    }

    /// A connection is lost, or does not come to stand.
    #[cold]
    fn lose(&mut self, number: usize, source: io::Error, now: Nanos, completions: &mut Vec<Completion>) {
        let connection = &self.pool.connections[number];
        let contact = self.pool.nodes[connection.node].contact.clone();
        let cut_off = !connection.reader.is_before_answer();
        let text = match source.kind() {
            io::ErrorKind::UnexpectedEof if cut_off => format!("{contact} closed the connection within an answer"),
            io::ErrorKind::UnexpectedEof => ContactError::Closed { contact }.to_string(),
            _ if !connection.stands => {
                self.pool.fail(connection.node, now);
                ContactError::Connect { contact, source }.to_string()
            }
            _ => ContactError::Io { contact, source }.to_string(),
        };
        self.give_up(number, &text, now, completions);
    }

    /// Closes a connection with its operation, if it has one.
    #[cold]
    fn give_up(&mut self, number: usize, text: &str, now: Nanos, completions: &mut Vec<Completion>) {
        self.error_samples.add(Outcome::Connection, text);
        if let State::Busy(slot) = self.pool.connections[number].state {
            completions.push(self.slots[slot as usize].end(slot, Outcome::Connection, 0, now));
        }
        self.pool.close(number);
    }

    fn handle(&mut self, ready: Ready, clock: &Clock, completions: &mut Vec<Completion>) {
        let number = ready.mark as usize;
        if !self.pool.connections[number].line.is_up() {
            return;
        }
        if ready.can_write() {
            self.write(number, clock, completions);
        }
        if ready.can_read() && self.pool.connections[number].line.is_up() {
            self.read(number, ready.is_ending(), clock, completions);
        }
    }
}

impl Client for HttpClient {
    #[inline]
    fn submit(&mut self, slot: u32, operation: &Operation) {
        let entry = &mut self.slots[slot as usize];
        entry.begin(operation);
        self.dialect.begin(operation, &mut entry.course);
        self.dispatch(slot);
    }

    /// The connection is closed: it owes an answer that nobody wants.
    fn abandon(&mut self, slot: u32) -> Option<Nanos> {
        let entry = &mut self.slots[slot as usize];
        let sent = entry.sent;
        match std::mem::take(&mut entry.state) {
            SlotState::Idle => {}
            SlotState::Held => self.held.retain(|held| *held != slot),
            SlotState::InFlight { connection: number } => {
                let Connection { node, stands, .. } = self.pool.connections[number];
                self.pool.close(number);
                // A node that has lost its power says nothing. Where each request has its connection, the time-out says enough.
                if self.pool.keep_alive && !stands && sent.is_some() {
                    self.pool.fail(node, 0);
                }
            }
        }
        sent
    }

    fn poll(&mut self, clock: &Clock, until: Nanos, completions: &mut Vec<Completion>) -> io::Result<()> {
        let mut until = until;
        if let Some(next) = self.pool.try_again(|| clock.now())? {
            until = until.min(next);
        }
        if !self.held.is_empty() {
            self.send_held(clock.now());
        }
        self.flush(clock, completions)?;
        loop {
            let now = clock.now();
            let at_rest = completions.is_empty() && self.unsent.is_empty() && !self.pool.has_work();
            let until = if at_rest { until } else { now };
            let mut room = [const { MaybeUninit::uninit() }; MAX_EVENTS];
            let mut count = 0;
            for ready in self.pool.events.ready(&mut room, now, Some(until))? {
                count += 1;
                self.handle(ready, clock, completions);
            }
            // Were there more, a connection that a server has closed might be used before that is seen.
            if count < MAX_EVENTS - 1 {
                return Ok(());
            }
        }
    }

    fn reconnections(&self) -> u64 {
        self.pool.reconnections
    }

    #[inline]
    fn hand_over_errors(&mut self, into: &mut ErrorSamples) {
        self.error_samples.move_to(into);
    }
}
