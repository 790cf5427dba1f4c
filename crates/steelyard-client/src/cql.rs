//! Load over Cassandra's native protocol: prepared statements, one connection to each node for each worker, many
//! operations in flight on it. Frames are built in place, written once a wake-up, and answers are read no further than
//! the number of their rows.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fd::OwnedFd;
use steelyard_cql::request::{self, ValueWriter};
use steelyard_cql::response::{Glance, Response, glance};
use steelyard_cql::{Header, code, murmur3};
use steelyard_load::client::{Client, Clock, Completion, Nanos, Outcome};
use steelyard_load::ycsb::{Kind, Operation, write_key, write_value};

pub use crate::connect::{ConnectError, connect};
use crate::connect::{Revived, Shared, revive};
use crate::link::Link;
use crate::node::{Node, Use, next_frame};

/// Mark of the event that tells of a node that is back.
const REVIVED: u64 = u64::MAX;
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
    place: Place,
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
    nodes: Vec<Node>,
    slots: Vec<Slot>,
    /// Slots submitted since the last flush.
    unsent: Vec<u32>,
    held: VecDeque<u32>,
    key: Vec<u8>,
    turn: usize,
    epoll: OwnedFd,
    bell: Arc<OwnedFd>,
    revived: Receiver<Revived>,
    reviver: Sender<Revived>,
    closed: Arc<AtomicBool>,
    reconnections: u64,
}

impl CqlClient {
    pub(crate) fn new(shared: Arc<Shared>, links: Vec<Link>, slots: u32) -> Result<Self, ConnectError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?;
        epoll::add(&epoll, &bell, epoll::EventData::new_u64(REVIVED), epoll::EventFlags::IN)
            .map_err(io::Error::from)?;
        let mut nodes = Vec::new();
        for (number, mut link) in links.into_iter().enumerate() {
            let ids = link.prepare(&shared.statements.texts)?;
            let mut node = Node::new();
            node.attach(link.into_stream()?, ids, &epoll, number as u64)?;
            nodes.push(node);
        }
        let empty = Operation {
            index: 0,
            kind: Kind::Read,
            key: 0,
            field: 0,
            scan_length: 0,
        };
        let (reviver, revived) = channel();
        Ok(Self {
            shared,
            nodes,
            slots: (0..slots)
                .map(|_| Slot {
                    operation: empty,
                    place: Place::Idle,
                    sent: None,
                    ready: 0,
                })
                .collect(),
            unsent: Vec::with_capacity(slots as usize),
            held: VecDeque::new(),
            key: Vec::new(),
            turn: 0,
            epoll,
            bell: Arc::new(bell),
            revived,
            reviver,
            closed: Arc::new(AtomicBool::new(false)),
            reconnections: 0,
        })
    }

    /// Writes the slot's operation to a node, or holds it while none is up.
    #[inline]
    fn dispatch(&mut self, slot: u32) {
        let shared = &*self.shared;
        self.key.clear();
        write_key(
            self.slots[slot as usize].operation.key,
            &shared.order.workload,
            &mut self.key,
        );
        match self.choose() {
            Some(node) => self.write(node, slot),
            None => {
                self.slots[slot as usize].place = Place::Held;
                self.held.push_back(slot);
            }
        }
    }

    /// The node for `self.key`: with token routing a replica, all of them in turn; else every node in turn. Nodes that
    /// are down are passed over.
    #[inline]
    fn choose(&mut self) -> Option<usize> {
        self.turn = self.turn.wrapping_add(1);
        let usable = |node: &usize| self.nodes[*node].is_up() && self.nodes[*node].has_stream();
        if let Some(ring) = &self.shared.ring {
            let replicas = ring.replicas(murmur3::token(&self.key)).map(usize::from);
            let skip = self.turn % ring.factor();
            let replica = replicas.clone().skip(skip).chain(replicas.take(skip)).find(usable);
            if replica.is_some() {
                return replica;
            }
        }
        let count = self.nodes.len();
        (0..count).map(|step| (self.turn + step) % count).find(usable)
    }

    /// Appends the EXECUTE frame for the slot, whose key is in `self.key`, to the node's requests.
    #[inline]
    fn write(&mut self, number: usize, slot: u32) {
        let shared = &*self.shared;
        let node = &mut self.nodes[number];
        let stream = node.take_stream(Use::Slot(slot));
        let place = &mut self.slots[slot as usize];
        place.place = Place::Flying {
            node: number as u16,
            stream,
        };
        self.unsent.push(slot);
        let operation = &place.operation;
        let id = &node.ids[shared.statements.of(operation)];
        let (out, stream, key) = (&mut node.out, stream as i16, &self.key);
        let order = &shared.order;
        let fields = order.fields.len() as u32;
        let version = operation.version(order.action);
        let value = |values: &mut ValueWriter<'_>, field: u32| {
            values.with(|out| write_value(order.seed, operation.key, field, version, &order.workload, out));
        };
        match operation.kind {
            Kind::Read | Kind::ReadModifyWrite => {
                request::execute(out, stream, id, shared.read_consistency, 1, |values| values.bytes(key));
            }
            Kind::Scan => request::execute(out, stream, id, shared.read_consistency, 2, |values| {
                values.bytes(key);
                values.int(operation.scan_length as i32);
            }),
            Kind::Update => {
                let range = if order.workload.write_all_fields {
                    0..fields
                } else {
                    operation.field..operation.field + 1
                };
                let count = range.len() as u16 + 1;
                request::execute(out, stream, id, shared.write_consistency, count, |values| {
                    range.for_each(|field| value(values, field));
                    values.bytes(key);
                });
            }
            Kind::Insert => {
                request::execute(out, stream, id, shared.write_consistency, fields as u16 + 1, |values| {
                    values.bytes(key);
                    (0..fields).for_each(|field| value(values, field));
                });
            }
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
        for number in 0..self.nodes.len() {
            if self.nodes[number].wants_flush() && self.nodes[number].flush(&self.epoll, number as u64).is_err() {
                self.lose(number, clock.now(), completions);
            }
        }
    }

    /// Reads all that a node has sent.
    fn read(&mut self, number: usize, clock: &Clock, completions: &mut Vec<Completion>) {
        loop {
            let read = self.nodes[number].read();
            let now = clock.now();
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
        let seen = glance(header, body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
        let place = &mut self.slots[slot as usize];
        let (outcome, rows) = match seen {
            Ok(Glance::Void) => (Outcome::Ok, 0),
            Ok(Glance::Rows(0)) if place.operation.kind == Kind::Read => (Outcome::NotFound, 0),
            Ok(Glance::Rows(rows)) => (Outcome::Ok, rows),
            Ok(Glance::Error(code::UNPREPARED)) => {
                self.prepare_again(number, slot);
                return Ok(());
            }
            Ok(Glance::Error(code)) => (outcome_of(code), 0),
            Err(_) => (Outcome::Connection, 0),
        };
        completions.push(place.end(slot, outcome, rows, now));
        seen.map(|_| ())
    }

    /// The node has forgotten the slot's statement, by a restart or a change of the schema.
    #[cold]
    fn prepare_again(&mut self, number: usize, slot: u32) {
        let statement = self.shared.statements.of(&self.slots[slot as usize].operation);
        let node = &mut self.nodes[number];
        self.slots[slot as usize].place = Place::Waiting { node: number as u16 };
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
            _ => false,
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
        let (shared, reviver) = (Arc::clone(&self.shared), self.reviver.clone());
        let (bell, closed) = (Arc::clone(&self.bell), Arc::clone(&self.closed));
        thread::spawn(move || revive(&shared, number, &reviver, &bell, &closed));
    }

    /// Takes nodes that are back, and sends what was held for want of them.
    #[cold]
    fn welcome(&mut self, clock: &Clock, completions: &mut Vec<Completion>) -> io::Result<()> {
        let mut count = [0; 8];
        // Only resets the bell; nothing to read means that it has been heard already.
        let _ = rustix::io::read(&*self.bell, &mut count);
        while let Ok(revived) = self.revived.try_recv() {
            self.nodes[revived.node].attach(revived.stream, revived.ids, &self.epoll, revived.node as u64)?;
            self.reconnections += 1;
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
                self.nodes[usize::from(node)].orphan(stream);
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
            if number == REVIVED {
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
}

impl Drop for CqlClient {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
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
