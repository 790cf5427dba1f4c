//! PostgreSQL client for load. Writes go to the primary and reads where the order says. Which node the primary is, each connection
//! says when it is made, and again with the first answer after it has changed: a promotion is followed without being announced.

use std::sync::Arc;

use steelyard_channel::Pipe;
use steelyard_load::error_samples::ErrorSamples;
use steelyard_protocol::client::PipelinedClient;
use steelyard_protocol::nodes::{Node, node_at};
use steelyard_protocol::pipelined::{Connection, Pipelined, Taken};
use steelyard_protocol::slot::Slot;
use steelyard_protocol::{ConnectError, Malformed};
use steelyard_wire::ReadFrom;
use steelyard_workload::operation::Operation;
use steelyard_workload::ycsb::Kind;

use crate::messages::{SYNC, ServerError, first};
use crate::peer::Peer;
use crate::session::{self, Access};
use crate::statements::{Course, Statements};

/// The client of one worker.
pub type PostgresqlClient = PipelinedClient<Worker>;

/// Connections that take turns.
#[derive(Default)]
struct Group {
    numbers: Vec<usize>,
    turn: usize,
}

impl Group {
    #[inline]
    fn next(&mut self) -> Option<usize> {
        self.turn = self.turn.wrapping_add(1);
        let place = self.turn.checked_rem(self.numbers.len())?;
        Some(self.numbers[place])
    }
}

/// What one worker knows of the nodes.
pub struct Worker {
    statements: Arc<Statements>,
    nodes: Vec<Node>,
    read_from: ReadFrom,
    /// Connections that are up, to those that take writes.
    writers: Group,
    /// Connections that are up, to those that are to be read from.
    readers: Group,
    /// Whether that is no longer as it was.
    is_stale: bool,
}

impl Worker {
    pub(crate) fn new(statements: Arc<Statements>, nodes: Vec<Node>, read_from: ReadFrom) -> Self {
        Self {
            statements,
            nodes,
            read_from,
            writers: Group::default(),
            readers: Group::default(),
            is_stale: true,
        }
    }

    #[cold]
    fn regroup(&mut self, connections: &[Connection<Peer>]) {
        self.is_stale = false;
        let up = |wanted: fn(&Peer) -> bool| {
            let numbered = connections.iter().enumerate();
            let wanted = numbered.filter(|(_, connection)| connection.is_up() && wanted(&connection.peer));
            wanted.map(|(number, _)| number).collect()
        };
        self.writers.numbers = up(|peer| peer.is_primary);
        self.readers.numbers = match self.read_from {
            ReadFrom::Primary => up(|peer| peer.is_primary),
            ReadFrom::Replicas => up(|peer| !peer.is_primary),
            ReadFrom::Any => up(|_| true),
        };
    }
}

impl Pipelined for Worker {
    type Course = Course;
    type Peer = Peer;
    type Access = Access;

    fn open(access: &Access, contact: &str) -> Result<(Pipe, Peer), ConnectError> {
        session::open(access, contact)
    }

    fn contact(&self, node: usize) -> Option<&str> {
        self.nodes.get(node).map(|node| node.contact.as_str())
    }

    fn node_at(&mut self, contact: &str) -> Option<usize> {
        node_at(&mut self.nodes, contact)
    }

    #[inline]
    fn begin(&self, _: &Operation, course: &mut Course) {
        course.rows = 0;
    }

    #[inline]
    fn choose(&mut self, operation: &Operation, _: &Course, connections: &[Connection<Peer>]) -> Option<usize> {
        if self.is_stale {
            self.regroup(connections);
        }
        // What is read to be written is the primary's.
        match Kind::ALL[usize::from(operation.kind)] {
            Kind::Read | Kind::Scan => self.readers.next(),
            _ => self.writers.next(),
        }
    }

    #[inline]
    fn put(&mut self, operation: &Operation, _: &Course, out: &mut Vec<u8>) {
        self.statements.put(operation, out);
    }

    #[inline]
    fn end(peer: &mut Peer, input: &[u8]) -> Result<Option<usize>, Malformed> {
        peer.reader.end(input)
    }

    #[inline]
    fn take(
        &mut self,
        slot: &mut Slot<Course>,
        answer: &[u8],
        (_, peer): (usize, &mut Peer),
        samples: &mut ErrorSamples,
    ) -> Result<Taken, Malformed> {
        self.is_stale |= peer.listen(answer)?;
        let outcome = self
            .statements
            .take(&slot.operation, &mut slot.course, answer, samples)?;
        Ok(Taken::Ended(outcome))
    }

    #[inline]
    fn rows(course: &Course) -> u32 {
        course.rows
    }

    fn overhear(&mut self, peer: &mut Peer, answer: &[u8]) -> bool {
        let has_changed = peer.listen(answer) == Ok(true);
        self.is_stale |= has_changed;
        has_changed
    }

    fn changed(&mut self) {
        self.is_stale = true;
    }

    /// A replica that is asked for nothing says whether it is the primary by now.
    fn ask(peer: &Peer, out: &mut Vec<u8>) -> bool {
        if !peer.is_primary {
            out.extend_from_slice(SYNC);
        }
        !peer.is_primary
    }

    /// What the server says before it closes the connection: an error, such as that it is shut down, or a notice of its crash.
    fn last_words(input: &[u8]) -> Option<String> {
        let (mut at, mut said) = (0, None);
        while let Ok(Some((message, bytes))) = first(&input[at..]) {
            at += bytes;
            if matches!(message.kind, b'E' | b'N') {
                said = Some(ServerError::read(message.body).to_string());
            }
        }
        said
    }
}
