//! The client of a `Pipelined` protocol: few connections of each worker to each node, many requests in flight on them. Requests are
//! built in place, written once a wake-up, and of answers only what counts is looked at.
//!
//! What may block, such as to make a connection again that was lost, is done in `threads`.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::thread;

use steelyard_channel::events::{Events, MESSAGE};
use steelyard_channel::{Mailbox, Pipe};
use steelyard_load::client::{Client, Completion, FirstSent};
use steelyard_load::clock::{Clock, Nanos};
use steelyard_load::error_samples::ErrorSamples;
use steelyard_load::outcome::Outcome;
use steelyard_workload::operation::Operation;

use crate::Malformed;
use crate::pipelined::{Connection, Owed, Pipelined, Taken, in_turn};
use crate::slot::{Slot, SlotState};
use crate::threads::{Message, Shared, establish};

const MAX_EVENTS: usize = 64;
/// A node that cannot be reached may be replaced by another: after this long, what is held is dispatched again.
const HOLD_NS: Nanos = 50_000_000;

/// The client of one worker.
pub struct PipelinedClient<P: Pipelined> {
    pub(crate) shared: Arc<Shared<P::Access>>,
    protocol: P,
    connections: Vec<Connection<P::Peer>>,
    slots: Vec<Slot<P::Course>>,
    /// Slots submitted since the last flush.
    unsent: Vec<u32>,
    held: VecDeque<u32>,
    /// When what is held is dispatched again.
    look_again: Nanos,
    events: Events,
    pub(crate) mailbox: Mailbox<Message<P::Peer>>,
    reconnections: u64,
    /// What servers have said of errors.
    error_samples: ErrorSamples,
    routed: Vec<FirstSent>,
}

impl<P: Pipelined> PipelinedClient<P> {
    /// `peers`: as many for each node, in their order.
    pub(crate) fn new(
        shared: Arc<Shared<P::Access>>,
        protocol: P,
        peers: impl Iterator<Item = (Pipe, P::Peer)>,
        slots: u32,
    ) -> io::Result<Self> {
        let events = Events::new()?;
        let mailbox = Mailbox::new(&events)?;
        let mut connections = Vec::new();
        for (number, (pipe, peer)) in peers.enumerate() {
            let mut connection = Connection {
                peer,
                ..Connection::default()
            };
            connection.line.attach(pipe, &events, number as u64)?;
            connections.push(connection);
        }
        Ok(Self {
            shared,
            protocol,
            connections,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            unsent: Vec::with_capacity(slots as usize),
            held: VecDeque::new(),
            look_again: 0,
            events,
            mailbox,
            reconnections: 0,
            error_samples: ErrorSamples::default(),
            routed: Vec::new(),
        })
    }

    /// Writes the slot's request to the connection for it; holds it while there is none.
    #[inline]
    fn dispatch(&mut self, slot: u32) {
        let entry = &self.slots[slot as usize];
        let chosen = self.protocol.choose(&entry.operation, &entry.course, &self.connections);
        match chosen {
            Some(number) => self.write(number, slot),
            None => self.hold(slot),
        }
    }

    #[cold]
    fn hold(&mut self, slot: u32) {
        self.slots[slot as usize].state = SlotState::Held;
        self.held.push_back(slot);
    }

    /// Appends the slot's request to what a connection is to send.
    #[inline]
    fn write(&mut self, number: usize, slot: u32) {
        let connection = &mut self.connections[number];
        let entry = &mut self.slots[slot as usize];
        entry.state = SlotState::InFlight { connection: number };
        connection.owed.push_back(Owed::Slot { slot, turn: entry.turn });
        self.unsent.push(slot);
        self.protocol
            .put(&entry.operation, &entry.course, &mut connection.line.out);
    }

    /// Writes everything out; `sent` is read once, right before.
    fn flush(&mut self, clock: &Clock, completions: &mut Vec<Completion>) {
        if !self.unsent.is_empty() {
            let now = clock.now();
            for slot in self.unsent.drain(..) {
                // What is sent again keeps its first instant.
                self.slots[slot as usize].sent.get_or_insert(now);
            }
        }
        for number in 0..self.connections.len() {
            let line = &mut self.connections[number].line;
            if line.is_new && line.wants_flush() {
                line.is_new = false;
                self.note_routed(number, clock.now());
            }
            let line = &mut self.connections[number].line;
            let lost = line.wants_flush() && line.flush(&self.events, number as u64).is_err();
            if lost || line.is_silent(|| clock.now()) {
                self.lose(number, clock.now(), completions);
            }
        }
    }

    /// The first operation goes to a node that has joined; the first of all workers counts.
    #[cold]
    fn note_routed(&mut self, number: usize, now: Nanos) {
        let contact = self.contact(number);
        if self.shared.joined().insert(contact.clone()) {
            self.routed.push(FirstSent { at: now, contact });
        }
    }

    /// That of a connection's node.
    fn contact(&self, number: usize) -> String {
        let contact = self.protocol.contact(number / self.shared.per_node);
        contact.unwrap_or_default().to_owned()
    }

    /// Reads all that a node has sent.
    fn read(&mut self, number: usize, clock: &Clock, completions: &mut Vec<Completion>) {
        loop {
            let read = self.connections[number].line.read();
            let now = clock.now();
            self.connections[number].line.hear(now);
            let taken = match read {
                Ok(_) => self.take_answers(number, now, completions).is_ok(),
                Err(_) => false,
            };
            match read {
                _ if !taken => return self.lose(number, now, completions),
                Ok(true) => {}
                _ => return,
            }
        }
    }

    fn take_answers(&mut self, number: usize, now: Nanos, completions: &mut Vec<Completion>) -> Result<(), Malformed> {
        let input = self.connections[number].line.take_input();
        let mut at = 0;
        let outcome = loop {
            match P::end(&mut self.connections[number].peer, &input[at..]) {
                Ok(Some(end)) => {
                    let answer = &input[at..at + end];
                    at += end;
                    if let Err(error) = self.answer(number, answer, now, completions) {
                        break Err(error);
                    }
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
        answer: &[u8],
        now: Nanos,
        completions: &mut Vec<Completion>,
    ) -> Result<(), Malformed> {
        let connection = &mut self.connections[number];
        let owed = connection.owed.pop_front().ok_or(Malformed("an answer to nothing"))?;
        let Owed::Slot { slot, turn } = owed else {
            self.overhear(number, answer);
            return Ok(());
        };
        let entry = &mut self.slots[slot as usize];
        if entry.turn != turn {
            connection.line.drop_answer();
            self.overhear(number, answer);
            return Ok(());
        }
        let from = (number / self.shared.per_node, &mut connection.peer);
        match self.protocol.take(entry, answer, from, &mut self.error_samples) {
            Ok(Taken::Ended(outcome)) => {
                let rows = P::rows(&entry.course);
                completions.push(entry.end(slot, outcome, rows, now));
            }
            Ok(Taken::Next) => self.dispatch(slot),
            Ok(Taken::To { node, behind }) => self.send_to(node, behind, slot),
            Err(error) => {
                completions.push(entry.end(slot, Outcome::Connection, 0, now));
                return Err(error);
            }
        }
        Ok(())
    }

    #[cold]
    fn overhear(&mut self, number: usize, answer: &[u8]) {
        if self.protocol.overhear(&mut self.connections[number].peer, answer) {
            self.look_again = 0;
        }
    }

    /// Sends a slot's request to a node, which may be new.
    #[cold]
    fn send_to(&mut self, node: usize, behind: &[u8], slot: u32) {
        self.reach_new_nodes();
        let per_node = self.shared.per_node;
        let Some(number) = in_turn(&self.connections, node * per_node, per_node, slot as usize) else {
            return self.hold(slot);
        };
        if !behind.is_empty() {
            let connection = &mut self.connections[number];
            connection.line.out.extend_from_slice(behind);
            connection.owed.push_back(Owed::None);
        }
        self.write(number, slot);
    }

    #[cold]
    fn reach_new_nodes(&mut self) {
        while self
            .protocol
            .contact(self.connections.len() / self.shared.per_node)
            .is_some()
        {
            let mut connection = Connection::default();
            connection.line.is_new = true;
            self.connections.push(connection);
            self.establish(self.connections.len() - 1, false);
        }
    }

    /// A node is in service, or no longer is.
    #[cold]
    fn note_service(&mut self, contact: &str, is_in_service: bool) {
        let Some(node) = self.protocol.node_at(contact) else {
            return;
        };
        self.reach_new_nodes();
        let per_node = self.shared.per_node;
        for connection in &mut self.connections[node * per_node..][..per_node] {
            connection.has_left = !is_in_service;
            connection.line.is_new |= is_in_service;
        }
    }

    /// Ends what was in flight on a lost connection, and has it made again.
    #[cold]
    fn lose(&mut self, number: usize, now: Nanos, completions: &mut Vec<Completion>) {
        let connection = &mut self.connections[number];
        if let Some(text) = P::last_words(&connection.line.take_input()) {
            self.error_samples.add(Outcome::Connection, &text);
        }
        connection.line.lose();
        connection.peer = Default::default();
        for owed in std::mem::take(&mut connection.owed) {
            if let Owed::Slot { slot, turn } = owed
                && self.slots[slot as usize].turn == turn
            {
                completions.push(self.slots[slot as usize].end(slot, Outcome::Connection, 0, now));
            }
        }
        self.protocol.changed();
        self.establish(number, true);
    }

    /// Has a connection made, in a thread of its own.
    #[cold]
    fn establish(&self, number: usize, lost: bool) {
        let (shared, sender, contact) = (Arc::clone(&self.shared), self.mailbox.sender(), self.contact(number));
        thread::spawn(move || establish::<P>(&contact, number, lost, &sender, &shared));
    }

    /// Takes connections that stand again, and what has changed of the nodes.
    #[cold]
    fn take_messages(&mut self, clock: &Clock, completions: &mut Vec<Completion>) -> io::Result<()> {
        for message in self.mailbox.take() {
            match message {
                Message::Up { number, pipe, peer } => {
                    let connection = &mut self.connections[number];
                    connection.peer = peer;
                    let again = connection.line.attach(pipe, &self.events, number as u64)?;
                    self.reconnections += u64::from(again);
                }
                Message::Service { contact, is_in_service } => self.note_service(&contact, is_in_service),
            }
        }
        self.protocol.changed();
        self.send_held(clock.now());
        self.flush(clock, completions);
        Ok(())
    }

    /// Dispatches what was held for want of a connection.
    #[cold]
    fn send_held(&mut self, now: Nanos) {
        self.look_again = now + HOLD_NS;
        for slot in std::mem::take(&mut self.held) {
            let entry = &mut self.slots[slot as usize];
            entry.ready = now;
            P::waited(&mut entry.course);
            self.dispatch(slot);
        }
        if self.held.is_empty() {
            return;
        }
        for connection in &mut self.connections {
            // A question whose answer has not come is not asked again.
            let asks = connection.is_up() && connection.owed.is_empty();
            if asks && P::ask(&connection.peer, &mut connection.line.out) {
                connection.owed.push_back(Owed::None);
            }
        }
    }
}

impl<P: Pipelined> Client for PipelinedClient<P> {
    #[inline]
    fn submit(&mut self, slot: u32, operation: &Operation) {
        let entry = &mut self.slots[slot as usize];
        entry.begin(operation);
        self.protocol.begin(operation, &mut entry.course);
        self.dispatch(slot);
    }

    fn abandon(&mut self, slot: u32) -> Option<Nanos> {
        let entry = &mut self.slots[slot as usize];
        match std::mem::take(&mut entry.state) {
            SlotState::Idle => {}
            SlotState::Held => self.held.retain(|held| *held != slot),
            SlotState::InFlight { connection } => {
                entry.turn = entry.turn.wrapping_add(1);
                self.connections[connection].line.give_up(entry.sent);
            }
        }
        entry.sent
    }

    fn poll(&mut self, clock: &Clock, until: Nanos, completions: &mut Vec<Completion>) -> io::Result<()> {
        let mut until = until;
        if !self.held.is_empty() {
            if clock.now() >= self.look_again {
                self.send_held(clock.now());
            }
            until = until.min(self.look_again);
        }
        self.flush(clock, completions);
        let now = clock.now();
        let until = if completions.is_empty() { until } else { now };
        let mut room = [const { MaybeUninit::uninit() }; MAX_EVENTS];
        for ready in self.events.ready(&mut room, now, Some(until))? {
            if ready.mark == MESSAGE {
                self.take_messages(clock, completions)?;
                continue;
            }
            let number = ready.mark as usize;
            let line = &mut self.connections[number].line;
            if ready.can_write() && line.flush(&self.events, ready.mark).is_err() {
                self.lose(number, clock.now(), completions);
            } else if ready.can_read() {
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

impl<P: Pipelined> Drop for PipelinedClient<P> {
    fn drop(&mut self) {
        self.shared.end();
    }
}
