//! CQL client for load over Cassandra's native protocol: prepared statements, few connections of each worker to each node, many
//! operations in flight on them. Frames are built in place, written once a wake-up, and answers are read no further than
//! the number of their rows, but for those whose first row is compared or tells of a condition.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::program::Execution;
use rustix::event::epoll;
use steelyard_channel::events::{Events, INSTANT, MESSAGE};
use steelyard_channel::{MailSender, Mailbox};
use steelyard_cql::response::{Detail, Glance, Response, Rows, glance};
use steelyard_cql::{CqlError, Header, code, request};
use steelyard_load::client::{Client, Completion, FirstSent};
use steelyard_load::clock::{Clock, Nanos};
use steelyard_load::error_samples::ErrorSamples;
use steelyard_load::outcome::Outcome;
use steelyard_workload::murmur3;
use steelyard_workload::operation::Operation;

use crate::blocking_connection::BlockingConnection;
use crate::connection::{Connection, StreamOwner, next_frame};
use crate::error::ConnectError;
use crate::reconnect::reconnect;
use crate::routing::RoutingTable;
use crate::slot::{Slot, SlotState};
use crate::statements::{PartitionKey, RequestPlan};
use crate::worker::{Shared, WorkerMessage};

const MAX_EVENTS: usize = 64;

/// The client of one worker.
pub struct CqlClient {
    shared: Arc<Shared>,
    routing: Arc<RoutingTable>,
    /// By the numbers that `routing` gives to connections.
    connections: Vec<Connection>,
    slots: Vec<Slot>,
    /// Slots submitted since the last flush.
    unsent: Vec<u32>,
    held: VecDeque<u32>,
    key: PartitionKey,
    /// Of cells that are compared.
    scratch: Vec<u8>,
    turn: usize,
    events: Events,
    mailbox: Mailbox<WorkerMessage>,
    closed: Arc<AtomicBool>,
    reconnections: u64,
    /// What servers have said of errors.
    error_samples: ErrorSamples,
    routed: Vec<FirstSent>,
}

impl CqlClient {
    /// `handshaken`: one for each connection of `routing`, in the order of their numbers. `closed` is set when the client is dropped.
    pub(crate) fn new(
        shared: Arc<Shared>,
        routing: Arc<RoutingTable>,
        handshaken: Vec<BlockingConnection>,
        slots: u32,
        closed: Arc<AtomicBool>,
    ) -> Result<Self, ConnectError> {
        let events = Events::new().map_err(io::Error::from)?;
        let mailbox = Mailbox::new(&events)?;
        let mut connections = Vec::new();
        for (number, mut opened) in handshaken.into_iter().enumerate() {
            let ids = opened.prepare(&shared.statements.cql)?;
            let mut connection = Connection::default();
            connection.attach(opened.into_pipe()?, ids, &events, number as u64)?;
            connections.push(connection);
        }
        Ok(Self {
            shared,
            routing,
            connections,
            slots: (0..slots).map(|_| Slot::new()).collect(),
            unsent: Vec::with_capacity(slots as usize),
            held: VecDeque::new(),
            key: PartitionKey::default(),
            scratch: Vec::new(),
            turn: 0,
            events,
            mailbox,
            closed,
            reconnections: 0,
            error_samples: ErrorSamples::default(),
            routed: Vec::new(),
        })
    }

    /// How other threads reach this client.
    pub(crate) fn sender(&self) -> MailSender<WorkerMessage> {
        self.mailbox.sender()
    }

    /// Writes the slot's operation to a node, or holds it while none is up.
    #[inline]
    fn dispatch(&mut self, slot: u32) {
        let statements = &self.shared.statements;
        let operation = &self.slots[slot as usize].operation;
        let at = statements.requests.at(operation);
        let routed = statements.put_key(operation, &at, &mut self.key);
        match self.choose(routed) {
            Some(number) => self.write(number, slot, &at),
            None => {
                self.slots[slot as usize].state = SlotState::Held;
                self.held.push_back(slot);
            }
        }
    }

    /// The connection for a request, whose partition key is in `self.key` if it is `routed`: with token routing to a replica,
    /// all of them in turn; else to every node in turn. Connections that are down are passed over.
    #[inline]
    fn choose(&mut self, routed: bool) -> Option<usize> {
        self.turn = self.turn.wrapping_add(1);
        let routed = routed && self.routing.ring.is_some();
        let token = routed.then(|| murmur3::token(&self.key.bytes));
        let connections = &self.connections;
        self.routing.choose(token, self.turn, |number| {
            connections[number].line.is_up() && connections[number].has_stream()
        })
    }

    /// Appends the frame for the slot, whose partition key is in `self.key`, to the node's requests.
    #[inline]
    fn write(&mut self, number: usize, slot: u32, at: &Execution) {
        let connection = &mut self.connections[number];
        let stream = connection.take_stream(StreamOwner::Slot(slot));
        let entry = &mut self.slots[slot as usize];
        entry.state = SlotState::InFlight {
            connection: number as u16,
            stream,
        };
        self.unsent.push(slot);
        let paging_state = (entry.pages > 0).then_some(entry.paging_state.as_slice());
        let parts = (&self.key, paging_state);
        let statements = &self.shared.statements;
        let written = statements.put(
            &entry.operation,
            at,
            parts,
            &connection.ids,
            stream as i16,
            &mut connection.line.out,
        );
        if written > 0 {
            entry.rows = written;
        }
    }

    /// Writes everything out; `sent` is read once, right before.
    fn flush(&mut self, clock: &Clock, completions: &mut Vec<Completion>) {
        if !self.unsent.is_empty() {
            let now = clock.now();
            for slot in self.unsent.drain(..) {
                // What is sent again after its statement was lost keeps its first instant.
                self.slots[slot as usize].sent.get_or_insert(now);
            }
        }
        for number in 0..self.connections.len() {
            if self.connections[number].line.is_new && self.connections[number].line.wants_flush() {
                self.note_routed(number, clock.now());
            }
            let line = &mut self.connections[number].line;
            let lost = line.wants_flush() && line.flush(&self.events, number as u64).is_err();
            if lost || line.is_silent(|| clock.now()) {
                self.lose(number, clock.now(), completions);
            }
        }
    }

    /// The first operation goes to a connection of a node that has joined; the first of all workers counts.
    #[cold]
    fn note_routed(&mut self, number: usize, now: Nanos) {
        self.connections[number].line.is_new = false;
        let Some(node) = self.routing.node_of(number) else {
            return;
        };
        if !node.life.routed.swap(true, Ordering::Relaxed) {
            self.routed.push(FirstSent {
                at: now,
                contact: node.contact.clone(),
            });
        }
    }

    /// Reads all that a node has sent.
    fn read(&mut self, number: usize, clock: &Clock, completions: &mut Vec<Completion>) {
        loop {
            let read = self.connections[number].line.read();
            let now = clock.now();
            self.connections[number].line.hear(now);
            let more = read.and_then(|more| self.take_frames(number, now, completions).map(|()| more));
            match more {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => return self.lose(number, now, completions),
            }
        }
    }

    fn take_frames(&mut self, number: usize, now: Nanos, completions: &mut Vec<Completion>) -> io::Result<()> {
        let input = self.connections[number].line.take_input();
        let mut at = 0;
        let outcome = loop {
            match next_frame(&input, at) {
                Ok(Some((header, body, end))) => {
                    if let Err(error) = self.answer(number, &header, &input[body..end], now, completions) {
                        break Err(error);
                    }
                    at = end;
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.connections[number].line.give_back(input, at);
        outcome
    }

    #[inline]
    fn answer(
        &mut self,
        number: usize,
        header: &Header,
        body: &[u8],
        now: Nanos,
        completions: &mut Vec<Completion>,
    ) -> io::Result<()> {
        let slot = match self.connections[number].answered(header.stream) {
            StreamOwner::Slot(slot) => slot,
            StreamOwner::Prepare(statement) => {
                self.finish_preparing(number, statement, header, body, now, completions);
                return Ok(());
            }
            StreamOwner::Free | StreamOwner::Orphan => return Ok(()),
        };
        let seen = glance(header, body).map_err(invalid_data);
        let entry = &mut self.slots[slot as usize];
        let statements = &self.shared.statements;
        let plan = statements.plan(entry.request as usize);
        let read = || !plan.is_plain || plan.has_compared && statements.requests.is_compared(&entry.operation);
        let (outcome, rows) = match seen {
            // Of a batch, the rows that it has written.
            Ok(Glance::Void) => (Outcome::Ok, entry.rows),
            Ok(Glance::Rows(_)) if read() => return self.read_rows(slot, header, body, now, completions),
            Ok(Glance::Rows(0)) if plan.wants_row => (Outcome::NotFound, 0),
            Ok(Glance::Rows(rows)) => (Outcome::Ok, rows),
            Ok(Glance::Error(code::UNPREPARED)) => {
                self.prepare_again(number, slot, header, body);
                return Ok(());
            }
            Ok(Glance::Error(code)) => {
                note(&mut self.error_samples, outcome_of(code), header, body);
                (outcome_of(code), 0)
            }
            Err(_) => (Outcome::Connection, 0),
        };
        completions.push(entry.end(slot, outcome, rows, now));
        seen.map(|_| ())
    }

    /// Takes rows of which more matters than how many there are: whether they are the last, and what they hold.
    fn read_rows(
        &mut self,
        slot: u32,
        header: &Header,
        body: &[u8],
        now: Nanos,
        completions: &mut Vec<Completion>,
    ) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let entry = &mut self.slots[slot as usize];
        let plan = shared.statements.plan(entry.request as usize);
        let mut rows = match Response::decode(header, body).map_err(invalid_data) {
            Ok(Response::Rows(rows)) => rows,
            other => {
                let outcome = if other.is_ok() {
                    Outcome::Ok
                } else {
                    Outcome::Connection
                };
                completions.push(entry.end(slot, outcome, entry.rows, now));
                return other.map(|_| ());
            }
        };
        // Pages before may have been empty.
        let first = entry.rows == 0 && rows.count > 0;
        entry.rows = entry.rows.saturating_add(rows.count);
        entry.pages += 1;
        let first_row = if first {
            self.first_row(slot, &mut rows, plan).map_err(invalid_data)
        } else {
            Ok(Outcome::Ok)
        };
        let entry = &mut self.slots[slot as usize];
        let outcome = match first_row {
            Ok(Outcome::Ok) => match rows.paging_state {
                Some(state) if entry.pages < plan.max_pages => {
                    entry.paging_state.clear();
                    entry.paging_state.extend_from_slice(state);
                    self.dispatch(slot);
                    return Ok(());
                }
                _ if plan.wants_row && entry.rows == 0 => Outcome::NotFound,
                _ => Outcome::Ok,
            },
            Ok(other) => other,
            Err(_) => Outcome::Connection,
        };
        completions.push(entry.end(slot, outcome, entry.rows, now));
        first_row.map(|_| ())
    }

    /// Whether a condition held, and whether the row holds what was written into it.
    fn first_row(&mut self, slot: u32, rows: &mut Rows<'_>, plan: &RequestPlan) -> Result<Outcome, CqlError> {
        if plan.conditional {
            // `[applied]` is the first column, whatever else there is.
            let applied = rows.cell()? != Some(&[0]);
            return Ok(if applied { Outcome::Ok } else { Outcome::NotApplied });
        }
        let requests = &self.shared.statements.requests;
        let entry = &self.slots[slot as usize];
        if !requests.is_compared(&entry.operation) {
            return Ok(Outcome::Ok);
        }
        let first = requests.first(requests.request(entry.request as usize), &entry.operation);
        let statement = &requests.statements[first];
        let at = requests.at(&entry.operation);
        for column in 0..statement.compared() {
            let cell = if column < rows.column_count { rows.cell()? } else { None };
            if !statement.holds(&at, column, cell, &mut self.scratch) {
                return Ok(Outcome::Invalid);
            }
        }
        Ok(Outcome::Ok)
    }

    /// The node has forgotten a statement of the slot's, by a restart or a change of the schema. It says which.
    #[cold]
    fn prepare_again(&mut self, number: usize, slot: u32, header: &Header, body: &[u8]) {
        let requests = &self.shared.statements.requests;
        let entry = &mut self.slots[slot as usize];
        let connection = &mut self.connections[number];
        let named = match Response::decode(header, body) {
            Ok(Response::Error(error)) => match error.detail {
                Detail::Unprepared { id } => connection.ids.iter().position(|other| other == id),
                _ => None,
            },
            _ => None,
        };
        let request = requests.request(entry.request as usize);
        let statement = named.unwrap_or_else(|| requests.first(request, &entry.operation));
        entry.state = SlotState::Preparing {
            connection: number as u16,
        };
        connection.waiting.push_back((statement, slot));
        if !connection.is_preparing(statement) {
            // The stream that has just been answered is free.
            let stream = connection.take_stream(StreamOwner::Prepare(statement));
            request::prepare(
                &mut connection.line.out,
                stream as i16,
                &self.shared.statements.cql[statement],
            );
        }
    }

    #[cold]
    fn finish_preparing(
        &mut self,
        number: usize,
        statement: usize,
        header: &Header,
        body: &[u8],
        now: Nanos,
        completions: &mut Vec<Completion>,
    ) {
        let connection = &mut self.connections[number];
        let (waiting, others) = std::mem::take(&mut connection.waiting)
            .into_iter()
            .partition(|entry| entry.0 == statement);
        connection.waiting = others;
        let waiting: VecDeque<(usize, u32)> = waiting;
        let prepared = match Response::decode(header, body) {
            Ok(Response::Prepared(prepared)) => {
                connection.ids[statement] = prepared.id;
                true
            }
            _ => {
                note(&mut self.error_samples, Outcome::Server, header, body);
                false
            }
        };
        for (_, slot) in waiting {
            if prepared {
                self.dispatch(slot);
            } else {
                completions.push(self.slots[slot as usize].end(slot, Outcome::Server, 0, now));
            }
        }
    }

    /// Ends what was in flight on a lost connection, and starts its reconnection.
    #[cold]
    fn lose(&mut self, number: usize, now: Nanos, completions: &mut Vec<Completion>) {
        let mut orphaned = Vec::new();
        self.connections[number].lose(&mut orphaned);
        for slot in orphaned {
            completions.push(self.slots[slot as usize].end(slot, Outcome::Connection, 0, now));
        }
        self.start_reconnecting(number);
    }

    /// Has a connection made, in a thread of its own.
    #[cold]
    fn start_reconnecting(&self, number: usize) {
        let Some(node) = self.routing.node_of(number).cloned() else {
            return;
        };
        let (shared, closed) = (Arc::clone(&self.shared), Arc::clone(&self.closed));
        let sender = self.sender();
        thread::spawn(move || reconnect(&shared, &node, number, &sender, &closed));
    }

    /// Has connections made to nodes that have joined, or joined again.
    #[cold]
    fn take_routing(&mut self, routing: Arc<RoutingTable>) {
        let before = std::mem::replace(&mut self.routing, routing);
        for (index, node) in self.routing.nodes.iter().enumerate() {
            if before.nodes.get(index).is_some_and(|earlier| earlier.life == node.life) {
                continue;
            }
            for number in node.first..node.first + node.count() {
                if number == self.connections.len() {
                    self.connections.push(Connection::default());
                }
                self.connections[number].line.is_new = true;
                if !self.connections[number].line.is_up() {
                    self.start_reconnecting(number);
                }
            }
        }
    }

    /// Takes connections that stand again and new routing, and sends what was held for want of a connection.
    #[cold]
    fn take_messages(&mut self, clock: &Clock, completions: &mut Vec<Completion>) -> io::Result<()> {
        for message in self.mailbox.take() {
            match message {
                WorkerMessage::Up { number, pipe, ids } => {
                    let again = self.connections[number].attach(pipe, ids, &self.events, number as u64)?;
                    self.reconnections += u64::from(again);
                }
                WorkerMessage::Routing(routing) => self.take_routing(routing),
            }
        }
        let now = clock.now();
        for slot in std::mem::take(&mut self.held) {
            self.slots[slot as usize].ready = now;
            self.dispatch(slot);
        }
        self.flush(clock, completions);
        Ok(())
    }
}

impl Client for CqlClient {
    #[inline]
    fn submit(&mut self, slot: u32, operation: &Operation) {
        let entry = &mut self.slots[slot as usize];
        entry.operation = *operation;
        entry.request = self.shared.statements.requests.request_number(operation) as u32;
        (entry.pages, entry.rows) = (0, 0);
        entry.sent = None;
        entry.ready = 0;
        self.dispatch(slot);
    }

    fn abandon(&mut self, slot: u32) -> Option<Nanos> {
        let entry = &mut self.slots[slot as usize];
        let sent = entry.sent;
        match std::mem::replace(&mut entry.state, SlotState::Idle) {
            SlotState::Idle => {}
            SlotState::Held => self.held.retain(|held| *held != slot),
            SlotState::Preparing { connection } => self.connections[usize::from(connection)]
                .waiting
                .retain(|(_, waiting)| *waiting != slot),
            SlotState::InFlight { connection, stream } => {
                self.connections[usize::from(connection)].orphan(stream, sent);
            }
        }
        sent
    }

    fn poll(&mut self, clock: &Clock, until: Nanos, completions: &mut Vec<Completion>) -> io::Result<()> {
        self.flush(clock, completions);
        let now = clock.now();
        let until = if completions.is_empty() { until } else { now };
        let mut room = [const { MaybeUninit::uninit() }; MAX_EVENTS];
        let events = match self.events.wait(&mut room, now, Some(until)) {
            Ok(events) => events,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events {
            let (number, flags) = (event.data.u64(), event.flags);
            if number == INSTANT {
                continue;
            }
            if number == MESSAGE {
                self.take_messages(clock, completions)?;
                continue;
            }
            let number = number as usize;
            if flags.contains(epoll::EventFlags::OUT)
                && self.connections[number]
                    .line
                    .flush(&self.events, number as u64)
                    .is_err()
            {
                self.lose(number, clock.now(), completions);
            } else if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::ERR | epoll::EventFlags::HUP) {
                self.read(number, clock, completions);
            }
        }
        Ok(())
    }

    fn reconnections(&self) -> u64 {
        self.reconnections
    }

    #[inline]
    fn hand_over_errors(&mut self, into: &mut ErrorSamples) {
        self.error_samples.move_to(into);
    }

    #[inline]
    fn hand_over_routed(&mut self, into: &mut Vec<FirstSent>) {
        if !self.routed.is_empty() {
            into.append(&mut self.routed);
        }
    }
}

impl Drop for CqlClient {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

fn invalid_data(error: CqlError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Keeps what the server says of an error.
#[cold]
fn note(samples: &mut ErrorSamples, outcome: Outcome, header: &Header, body: &[u8]) {
    if let Ok(Response::Error(error)) = Response::decode(header, body) {
        samples.add(outcome, &format!("{} (0x{:04x})", error.message, error.code));
    }
}

/// The kind of error that a server's code is.
fn outcome_of(code: i32) -> Outcome {
    match code {
        code::UNAVAILABLE | code::IS_BOOTSTRAPPING => Outcome::Unavailable,
        code::OVERLOADED => Outcome::Overloaded,
        code::READ_TIMEOUT => Outcome::ReadTimeout,
        code::WRITE_TIMEOUT => Outcome::WriteTimeout,
        _ => Outcome::Server,
    }
}
