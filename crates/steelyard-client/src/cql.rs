//! Load over Cassandra's native protocol: prepared statements, few connections of each worker to each node, many
//! operations in flight on them. Frames are built in place, written once a wake-up, and answers are read no further than
//! the number of their rows, but for those whose first row is compared or tells of a condition.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fd::OwnedFd;
use steelyard_cql::response::{Detail, Glance, Response, Rows, glance};
use steelyard_cql::{CqlError, Header, code, murmur3, request};
use steelyard_load::client::{Client, Completion};
use steelyard_load::clock::{Clock, Nanos};
use steelyard_load::error_samples::ErrorSamples;
use steelyard_load::outcome::Outcome;
use steelyard_workload::operation::Operation;
use steelyard_workload::program::At;

use crate::connect::{Bell, News, Shared, revive};
pub use crate::connect::{ConnectError, connect};
use crate::link::Link;
use crate::node::{Node, Use, next_frame};
use crate::routes::Routes;
use crate::statements::{Asked, Key};

/// Mark of the event that tells of news.
const NEWS: u64 = u64::MAX;
const MAX_EVENTS: usize = 64;

/// Where a slot's operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Idle,
    /// No node is up.
    Held,
    /// In flight on that stream.
    Flying {
        node: u16,
        stream: u16,
    },
    /// Waits at that node for its statement to be prepared again.
    Waiting {
        node: u16,
    },
}

struct Slot {
    operation: Operation,
    /// The place of its request among the order's.
    request: u32,
    place: Place,
    /// Pages of its answer that have come, and their rows.
    pages: u32,
    rows: u32,
    /// Where the last page has ended.
    paging_state: Vec<u8>,
    sent: Option<Nanos>,
    /// When a node was back, if the operation was held for want of one.
    ready: Nanos,
}

impl Slot {
    /// Its operation has ended; the slot is empty afterwards.
    #[inline]
    fn end(&mut self, slot: u32, outcome: Outcome, rows: u32, done: Nanos) -> Completion {
        self.place = Place::Idle;
        Completion {
            slot,
            outcome,
            rows,
            sent: self.sent,
            ready: self.ready,
            done,
        }
    }
}

/// The client of one worker.
pub struct CqlClient {
    shared: Arc<Shared>,
    routes: Arc<Routes>,
    /// By the numbers that `routes` gives to connections.
    nodes: Vec<Node>,
    slots: Vec<Slot>,
    /// Slots submitted since the last flush.
    unsent: Vec<u32>,
    held: VecDeque<u32>,
    key: Key,
    /// Of cells that are compared.
    scratch: Vec<u8>,
    turn: usize,
    epoll: OwnedFd,
    bell: Bell,
    news: Receiver<News>,
    closed: Arc<AtomicBool>,
    reconnections: u64,
    /// What servers have said of errors.
    error_samples: ErrorSamples,
}

impl CqlClient {
    /// `links`: one for each connection of `routes`. `closed` is set when the client is dropped.
    pub(crate) fn new(
        shared: Arc<Shared>,
        routes: Arc<Routes>,
        links: Vec<Link>,
        slots: u32,
        closed: Arc<AtomicBool>,
    ) -> Result<Self, ConnectError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?;
        epoll::add(&epoll, &bell, epoll::EventData::new_u64(NEWS), epoll::EventFlags::IN).map_err(io::Error::from)?;
        let mut nodes = Vec::new();
        for (number, mut link) in links.into_iter().enumerate() {
            let ids = link.prepare(&shared.statements.texts)?;
            let mut node = Node::new();
            node.attach(link.into_pipe()?, ids, &epoll, number as u64)?;
            nodes.push(node);
        }
        let (sender, news) = channel();
        let bell = Bell {
            news: sender,
            bell: Arc::new(bell),
        };
        Ok(Self {
            shared,
            routes,
            nodes,
            slots: (0..slots)
                .map(|_| Slot {
                    operation: Operation::default(),
                    request: 0,
                    place: Place::Idle,
                    pages: 0,
                    rows: 0,
                    paging_state: Vec::new(),
                    sent: None,
                    ready: 0,
                })
                .collect(),
            unsent: Vec::with_capacity(slots as usize),
            held: VecDeque::new(),
            key: Key::default(),
            scratch: Vec::new(),
            turn: 0,
            epoll,
            bell,
            news,
            closed,
            reconnections: 0,
            error_samples: ErrorSamples::default(),
        })
    }

    /// How other threads reach this client.
    pub(crate) fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Writes the slot's operation to a node, or holds it while none is up.
    #[inline]
    fn dispatch(&mut self, slot: u32) {
        let statements = &self.shared.statements;
        let operation = &self.slots[slot as usize].operation;
        let at = statements.requests.at(operation);
        let routed = statements.put_key(operation, &at, &mut self.key);
        match self.choose(routed) {
            Some(node) => self.write(node, slot, &at),
            None => {
                self.slots[slot as usize].place = Place::Held;
                self.held.push_back(slot);
            }
        }
    }

    /// The connection for a request, whose partition key is in `self.key` if it is `routed`: with token routing to a replica,
    /// all of them in turn; else to every node in turn. Connections that are down are passed over.
    #[inline]
    fn choose(&mut self, routed: bool) -> Option<usize> {
        self.turn = self.turn.wrapping_add(1);
        let routed = routed && self.routes.ring.is_some();
        let token = routed.then(|| murmur3::token(&self.key.bytes));
        let nodes = &self.nodes;
        self.routes.choose(token, self.turn, |number| {
            nodes[number].is_up() && nodes[number].has_stream()
        })
    }

    /// Appends the frame for the slot, whose partition key is in `self.key`, to the node's requests.
    #[inline]
    fn write(&mut self, number: usize, slot: u32, at: &At) {
        let node = &mut self.nodes[number];
        let stream = node.take_stream(Use::Slot(slot));
        let place = &mut self.slots[slot as usize];
        place.place = Place::Flying {
            node: number as u16,
            stream,
        };
        self.unsent.push(slot);
        let paging_state = (place.pages > 0).then_some(place.paging_state.as_slice());
        let parts = (&self.key, paging_state);
        let statements = &self.shared.statements;
        statements.put(&place.operation, at, parts, &node.ids, stream as i16, &mut node.out);
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
        for number in 0..self.nodes.len() {
            let node = &mut self.nodes[number];
            let lost = node.wants_flush() && node.flush(&self.epoll, number as u64).is_err();
            if lost || node.is_silent(clock) {
                self.lose(number, clock.now(), completions);
            }
        }
    }

    /// Reads all that a node has sent.
    fn read(&mut self, number: usize, clock: &Clock, completions: &mut Vec<Completion>) {
        loop {
            let read = self.nodes[number].read();
            let now = clock.now();
            self.nodes[number].hear(now);
            let more = read.and_then(|more| self.take_frames(number, now, completions).map(|()| more));
            match more {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => return self.lose(number, now, completions),
            }
        }
    }

    fn take_frames(&mut self, number: usize, now: Nanos, completions: &mut Vec<Completion>) -> io::Result<()> {
        let input = self.nodes[number].take_input();
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
        self.nodes[number].give_back(input, at);
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
        let slot = match self.nodes[number].answered(header.stream) {
            Use::Slot(slot) => slot,
            Use::Prepare(statement) => {
                self.prepared(number, statement, header, body, now, completions);
                return Ok(());
            }
            Use::Free | Use::Orphan => return Ok(()),
        };
        let seen = glance(header, body).map_err(invalid_data);
        let place = &mut self.slots[slot as usize];
        let asked = self.shared.statements.asked(place.request as usize);
        let (outcome, rows) = match seen {
            Ok(Glance::Void) => (Outcome::Ok, 0),
            Ok(Glance::Rows(_)) if !asked.is_plain => return self.look(slot, header, body, now, completions),
            Ok(Glance::Rows(0)) if asked.wants_row => (Outcome::NotFound, 0),
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
        completions.push(place.end(slot, outcome, rows, now));
        seen.map(|_| ())
    }

    /// Takes rows of which more matters than how many there are: whether they are the last, and what they hold.
    fn look(
        &mut self,
        slot: u32,
        header: &Header,
        body: &[u8],
        now: Nanos,
        completions: &mut Vec<Completion>,
    ) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let place = &mut self.slots[slot as usize];
        let asked = shared.statements.asked(place.request as usize);
        let mut rows = match Response::decode(header, body).map_err(invalid_data) {
            Ok(Response::Rows(rows)) => rows,
            other => {
                let outcome = if other.is_ok() {
                    Outcome::Ok
                } else {
                    Outcome::Connection
                };
                completions.push(place.end(slot, outcome, place.rows, now));
                return other.map(|_| ());
            }
        };
        // Pages before may have been empty.
        let first = place.rows == 0 && rows.count > 0;
        place.rows = place.rows.saturating_add(rows.count);
        place.pages += 1;
        let found = if first {
            self.first_row(slot, &mut rows, asked).map_err(invalid_data)
        } else {
            Ok(Outcome::Ok)
        };
        let place = &mut self.slots[slot as usize];
        let outcome = match found {
            Ok(Outcome::Ok) => match rows.paging_state {
                Some(state) if place.pages < asked.max_pages => {
                    place.paging_state.clear();
                    place.paging_state.extend_from_slice(state);
                    self.dispatch(slot);
                    return Ok(());
                }
                _ if asked.wants_row && place.rows == 0 => Outcome::NotFound,
                _ => Outcome::Ok,
            },
            Ok(other) => other,
            Err(_) => Outcome::Connection,
        };
        completions.push(place.end(slot, outcome, place.rows, now));
        found.map(|_| ())
    }

    /// Whether a condition held, and whether the row holds what was written into it.
    fn first_row(&mut self, slot: u32, rows: &mut Rows<'_>, asked: &Asked) -> Result<Outcome, CqlError> {
        if asked.conditional {
            // `[applied]` is the first column, whatever else there is.
            let applied = rows.cell()? != Some(&[0]);
            return Ok(if applied { Outcome::Ok } else { Outcome::NotApplied });
        }
        let requests = &self.shared.statements.requests;
        let place = &self.slots[slot as usize];
        if !requests.is_compared(&place.operation) {
            return Ok(Outcome::Ok);
        }
        let first = requests.first(requests.request(place.request as usize), &place.operation);
        let statement = &requests.statements[first];
        let at = requests.at(&place.operation);
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
        let place = &mut self.slots[slot as usize];
        let node = &mut self.nodes[number];
        let named = match Response::decode(header, body) {
            Ok(Response::Error(error)) => match error.detail {
                Detail::Unprepared { id } => node.ids.iter().position(|other| other == id),
                _ => None,
            },
            _ => None,
        };
        let request = requests.request(place.request as usize);
        let statement = named.unwrap_or_else(|| requests.first(request, &place.operation));
        place.place = Place::Waiting { node: number as u16 };
        node.waiting.push_back((statement, slot));
        if !node.is_preparing(statement) {
            // The stream that has just been answered is free.
            let stream = node.take_stream(Use::Prepare(statement));
            request::prepare(&mut node.out, stream as i16, &self.shared.statements.texts[statement]);
        }
    }

    #[cold]
    fn prepared(
        &mut self,
        number: usize,
        statement: usize,
        header: &Header,
        body: &[u8],
        now: Nanos,
        completions: &mut Vec<Completion>,
    ) {
        let node = &mut self.nodes[number];
        let (waiting, others) = std::mem::take(&mut node.waiting)
            .into_iter()
            .partition(|entry| entry.0 == statement);
        node.waiting = others;
        let waiting: VecDeque<(usize, u32)> = waiting;
        let prepared = match Response::decode(header, body) {
            Ok(Response::Prepared(prepared)) => {
                node.ids[statement] = prepared.id;
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

    /// Ends what was in flight on a lost connection and sees to it that it is made anew.
    #[cold]
    fn lose(&mut self, number: usize, now: Nanos, completions: &mut Vec<Completion>) {
        let mut orphaned = Vec::new();
        self.nodes[number].lose(&mut orphaned);
        for slot in orphaned {
            completions.push(self.slots[slot as usize].end(slot, Outcome::Connection, 0, now));
        }
        self.make(number);
    }

    /// Has a connection made, in a thread of its own.
    #[cold]
    fn make(&self, number: usize) {
        let Some(place) = self.routes.place_of(number).cloned() else {
            return;
        };
        let (shared, bell, closed) = (Arc::clone(&self.shared), self.bell.clone(), Arc::clone(&self.closed));
        thread::spawn(move || revive(&shared, &place, number, &bell, &closed));
    }

    /// Takes connections that stand again and new routes, and sends what was held for want of a connection.
    #[cold]
    fn welcome(&mut self, clock: &Clock, completions: &mut Vec<Completion>) -> io::Result<()> {
        let mut count = [0; 8];
        // Only resets the bell; nothing to read means that it has been heard already.
        let _ = rustix::io::read(&*self.bell.bell, &mut count);
        while let Ok(news) = self.news.try_recv() {
            match news {
                News::Up { connection, pipe, ids } => {
                    let again = self.nodes[connection].attach(pipe, ids, &self.epoll, connection as u64)?;
                    self.reconnections += u64::from(again);
                }
                News::Routes(routes) => {
                    self.routes = routes;
                    for number in self.nodes.len()..self.routes.connections() {
                        self.nodes.push(Node::new());
                        self.make(number);
                    }
                }
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
        let place = &mut self.slots[slot as usize];
        place.operation = *operation;
        place.request = self.shared.statements.requests.place(operation) as u32;
        (place.pages, place.rows) = (0, 0);
        place.sent = None;
        place.ready = 0;
        self.dispatch(slot);
    }

    fn abandon(&mut self, slot: u32) -> Option<Nanos> {
        let place = &mut self.slots[slot as usize];
        let sent = place.sent;
        match std::mem::replace(&mut place.place, Place::Idle) {
            Place::Idle => {}
            Place::Held => self.held.retain(|held| *held != slot),
            Place::Waiting { node } => self.nodes[usize::from(node)]
                .waiting
                .retain(|(_, waiting)| *waiting != slot),
            Place::Flying { node, stream } => {
                self.nodes[usize::from(node)].orphan(stream, sent);
            }
        }
        sent
    }

    fn poll(&mut self, clock: &Clock, until: Nanos, completions: &mut Vec<Completion>) -> io::Result<()> {
        self.flush(clock, completions);
        let wait = if completions.is_empty() {
            until.saturating_sub(clock.now())
        } else {
            0
        };
        let timeout = Timespec {
            tv_sec: (wait / 1_000_000_000) as i64,
            tv_nsec: (wait % 1_000_000_000) as _,
        };
        let mut room = [const { MaybeUninit::uninit() }; MAX_EVENTS];
        let events = match epoll::wait(&self.epoll, &mut room, Some(&timeout)) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events {
            let (number, flags) = (event.data.u64(), event.flags);
            if number == NEWS {
                self.welcome(clock, completions)?;
                continue;
            }
            let number = number as usize;
            if flags.contains(epoll::EventFlags::OUT) && self.nodes[number].flush(&self.epoll, number as u64).is_err() {
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
