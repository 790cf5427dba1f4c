//! Pools: the connections of one worker to all nodes, which are made and made again without waiting.

use std::collections::VecDeque;
use std::io;

use steelyard_channel::Pipe;
use steelyard_channel::events::Events;
use steelyard_load::clock::Nanos;
use steelyard_load::turns::turns;

use crate::connection::{Connection, NotBegun, State, begin};
use crate::nodes::Node;

/// Connections that wait for the server to close them; if there are more, the oldest is closed here.
const MAX_ENDING: usize = 1_024;

/// The connections of one worker.
pub(crate) struct Pool {
    pub keep_alive: bool,
    pub nodes: Vec<Node>,
    pub connections: Vec<Connection>,
    pub events: Events,
    /// Connections that were lost and stand again.
    pub reconnections: u64,
    /// Connections that are to be made again.
    reopened: Vec<usize>,
    /// Connections that the server is to close, the oldest first, and some that it has closed.
    ending: VecDeque<usize>,
    /// How many nodes take no connections.
    away: usize,
    turn: usize,
}

impl Pool {
    /// With connections that stand, by the numbers of their nodes.
    pub fn new(keep_alive: bool, nodes: Vec<Node>, pipes: Vec<(usize, Pipe)>) -> io::Result<Self> {
        let mut pool = Self {
            keep_alive,
            nodes,
            connections: Vec::with_capacity(pipes.len()),
            events: Events::new()?,
            reconnections: 0,
            reopened: Vec::new(),
            ending: VecDeque::new(),
            away: 0,
            turn: 0,
        };
        for (node, pipe) in pipes {
            let number = pool.add(node);
            let connection = &mut pool.connections[number];
            connection.line.attach(pipe, &pool.events, number as u64)?;
            (connection.state, connection.stands) = (State::Idle, true);
            pool.nodes[node].idle.push_back(number);
        }
        Ok(pool)
    }

    /// A further connection to a node, which is closed.
    fn add(&mut self, node: usize) -> usize {
        self.connections.push(Connection {
            node,
            ..Connection::default()
        });
        self.connections.len() - 1
    }

    /// A connection for a request, to the node whose turn it is; `None`: no node can be reached.
    #[inline]
    pub fn take(&mut self) -> Option<usize> {
        let turn = self.turn;
        self.turn = turn.wrapping_add(1);
        let node = turns(self.nodes.len(), turn).find(|node| self.nodes[*node].is_usable())?;
        Some(self.nodes[node].take().unwrap_or_else(|| self.add(node)))
    }

    pub fn is_usable(&self) -> bool {
        self.nodes.iter().any(Node::is_usable)
    }

    /// Whether a connection is to be made before anything is waited for.
    pub fn has_work(&self) -> bool {
        !self.reopened.is_empty()
    }

    /// Begins a connection over which a request is sent at once.
    pub fn begin(&mut self, number: usize) -> Result<(), NotBegun> {
        let connection = &mut self.connections[number];
        let pipe = begin(self.nodes[connection.node].address, !self.keep_alive)?;
        let attached = connection.line.attach(pipe, &self.events, number as u64);
        attached.map(|_| ()).map_err(NotBegun::Here)
    }

    /// Begins a connection over which nothing is to be said yet. Errors: this machine refuses.
    #[cold]
    fn raise(&mut self, number: usize, now: Nanos) -> io::Result<()> {
        let connection = &mut self.connections[number];
        let node = &mut self.nodes[connection.node];
        node.closed.retain(|other| *other != number);
        node.rising.push(number);
        connection.state = State::Idle;
        match begin(node.address, !self.keep_alive) {
            Ok(pipe) => {
                connection.line.attach_unconnected(pipe, &self.events, number as u64)?;
            }
            Err(NotBegun::Here(error)) => return Err(error),
            Err(NotBegun::There(_)) => {
                self.fail(self.connections[number].node, now);
                self.close(number);
            }
        }
        Ok(())
    }

    /// Makes connections again. Errors: this machine refuses.
    #[inline]
    pub fn reopen(&mut self, now: impl Fn() -> Nanos) -> io::Result<()> {
        while let Some(number) = self.reopened.pop() {
            let Connection { node, state, .. } = self.connections[number];
            if state == State::Closed && self.nodes[node].retry_at.is_none() {
                self.raise(number, now())?;
            }
        }
        Ok(())
    }

    /// The server has accepted the connection.
    pub fn stand(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        (connection.stands, connection.is_wanted) = (true, false);
        self.reconnections += u64::from(std::mem::take(&mut connection.is_lost));
        let node = &mut self.nodes[connection.node];
        if connection.state == State::Idle {
            node.forget(number);
            if self.keep_alive {
                node.idle.push_back(number);
            } else {
                connection.close();
                node.closed.push(number);
            }
        }
        if node.retry_at.take().is_some() {
            node.backoff.reset();
            self.away -= 1;
            let wanted = node.closed.iter().copied();
            let wanted = wanted.filter(|other| self.connections[*other].is_wanted);
            self.reopened.extend(wanted);
        }
    }

    /// An answer has come whole, and `rest` bytes behind it.
    #[inline]
    pub fn free(&mut self, number: usize, rest: usize) {
        let connection = &mut self.connections[number];
        connection.has_answered = true;
        if rest > 0 {
            self.close(number);
        } else if self.keep_alive && connection.reader.keeps() {
            connection.state = State::Idle;
            self.nodes[connection.node].idle.push_back(number);
        } else {
            connection.state = State::Ending;
            self.await_end(number);
        }
    }

    /// The server closes the connection, which is waited for: the port of whoever closes first rests for a minute. Were those
    /// ours, half of all local ports would soon be taken, and from then on the kernel searches for each connection's port for
    /// milliseconds: such a load falls from thousands to some hundreds of requests a second, and nothing fails.
    fn await_end(&mut self, number: usize) {
        // Where it has been before, it was closed meanwhile.
        self.ending.retain(|other| *other != number);
        self.ending.push_back(number);
        while let Some(oldest) = self.ending.front().copied()
            && (self.connections[oldest].state != State::Ending || self.ending.len() > MAX_ENDING)
        {
            self.ending.pop_front();
            if self.connections[oldest].state == State::Ending {
                self.close(oldest);
            }
        }
    }

    /// Closes a connection, and has it made again if it is kept and was of use.
    pub fn close(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        debug_assert_ne!(connection.state, State::Closed);
        let node = &mut self.nodes[connection.node];
        if connection.state == State::Idle {
            node.forget(number);
        }
        // One that the server has announced to close is not lost.
        connection.is_lost |= self.keep_alive && connection.stands && connection.state != State::Ending;
        if self.keep_alive && connection.has_answered {
            connection.is_wanted = true;
            self.reopened.push(number);
        }
        connection.close();
        node.closed.push(number);
    }

    /// A node takes no connections.
    #[cold]
    pub fn fail(&mut self, node: usize, now: Nanos) {
        let node = &mut self.nodes[node];
        if node.retry_at.is_none() {
            node.retry_at = Some(now + node.backoff.next().as_nanos() as Nanos);
            self.away += 1;
        }
    }

    /// Tries the nodes that take no connections, as far as it is time; when it is for the next, if there is one. Errors: this
    /// machine refuses.
    #[inline]
    pub fn try_again(&mut self, now: impl Fn() -> Nanos) -> io::Result<Option<Nanos>> {
        if self.away == 0 {
            return Ok(None);
        }
        self.try_those_away(now()).map(Some)
    }

    #[cold]
    fn try_those_away(&mut self, now: Nanos) -> io::Result<Nanos> {
        let mut next = Nanos::MAX;
        for number in 0..self.nodes.len() {
            let node = &mut self.nodes[number];
            let Some(retry_at) = node.retry_at else { continue };
            if now >= retry_at {
                node.retry_at = Some(now + node.backoff.next().as_nanos() as Nanos);
                // What was tried before has come to nothing: perhaps nobody says so.
                let before = node.rising.clone();
                before.into_iter().for_each(|connection| self.close(connection));
                let connection = self.nodes[number].closed.pop().unwrap_or_else(|| self.add(number));
                self.raise(connection, now)?;
            }
            next = next.min(self.nodes[number].retry_at.unwrap_or(now));
        }
        Ok(next)
    }
}
