//! RESP client for load. Of a cluster, each worker knows which node serves which hash slot. What a node sends elsewhere (MOVED,
//! ASK) is sent again within the time of its operation, and the first of the two teaches the worker. Where a node says that it
//! serves nothing (CLUSTERDOWN), as one does that is cut off, another one is asked once.

use std::sync::Arc;

use steelyard_channel::Pipe;
use steelyard_load::error_samples::ErrorSamples;
use steelyard_load::outcome::Outcome;
use steelyard_protocol::client::PipelinedClient;
use steelyard_protocol::nodes::{Node, node_at};
use steelyard_protocol::pipelined::{Connection, Pipelined, Taken, in_turn};
use steelyard_protocol::slot::Slot;
use steelyard_protocol::{ConnectError, Malformed};
use steelyard_workload::operation::Operation;

use crate::commands::{Commands, Course};
use crate::hash_slots::Redirect;
use crate::owners::Owners;
use crate::protocol::Scanner;
use crate::server::Server;

/// A command that is sent elsewhere more often, without a wait between, goes round in circles.
const MAX_REDIRECTS: u32 = 16;
/// What goes before a command that is sent where ASK says.
const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";
/// What a node says that takes the cluster for incomplete, or itself for cut off from most of it.
const DOWN: &[u8] = b"CLUSTERDOWN";

/// The client of one worker.
pub type RespClient = PipelinedClient<Worker>;

/// What one worker knows of the cluster.
pub struct Worker {
    commands: Arc<Commands>,
    per_node: usize,
    nodes: Vec<Node>,
    owners: Owners,
    /// Of values.
    scratch: Vec<u8>,
    turn: usize,
}

impl Worker {
    pub(crate) fn new(commands: Arc<Commands>, per_node: usize, nodes: Vec<Node>, owners: Owners) -> Self {
        Self {
            commands,
            per_node,
            nodes,
            owners,
            scratch: Vec::new(),
            turn: 0,
        }
    }

    /// Where an error sends its command, if that is what it says.
    #[cold]
    fn redirected(&mut self, course: &mut Course, error: &[u8], node: usize) -> Option<Taken> {
        if error.starts_with(DOWN) && course.redirects == 0 && self.nodes.len() > 1 {
            course.redirects += 1;
            self.turn = self.turn.wrapping_add(1);
            let others = self.nodes.len() - 1;
            let node = (node + 1 + self.turn % others) % self.nodes.len();
            // Until that one says otherwise.
            self.owners.learn(self.commands.hash_slot(course), node);
            return Some(Taken::To { node, behind: b"" });
        }
        let redirect = Redirect::read(error, &self.nodes[node].host()).filter(|_| course.redirects < MAX_REDIRECTS)?;
        let node = node_at(&mut self.nodes, &redirect.to)?;
        course.redirects += 1;
        if redirect.once {
            return Some(Taken::To { node, behind: ASKING });
        }
        self.owners.learn(redirect.slot, node);
        Some(Taken::To { node, behind: b"" })
    }
}

impl Pipelined for Worker {
    type Course = Course;
    type Peer = Scanner;
    type Access = ();

    fn open((): &(), contact: &str) -> Result<(Pipe, Scanner), ConnectError> {
        Ok((Server::open(contact)?.into_pipe()?, Scanner::default()))
    }

    fn contact(&self, node: usize) -> Option<&str> {
        self.nodes.get(node).map(|node| node.contact.as_str())
    }

    fn node_at(&mut self, contact: &str) -> Option<usize> {
        node_at(&mut self.nodes, contact)
    }

    #[inline]
    fn begin(&self, operation: &Operation, course: &mut Course) {
        self.commands.begin(operation, course);
    }

    /// One to the node of the key, else to any that can say which that is.
    #[inline]
    fn choose(&mut self, _: &Operation, course: &Course, connections: &[Connection<Scanner>]) -> Option<usize> {
        let node = self.owners.of(|| self.commands.hash_slot(course));
        self.turn = self.turn.wrapping_add(1);
        let own = in_turn(connections, node * self.per_node, self.per_node, self.turn);
        own.or_else(|| in_turn(connections, 0, connections.len(), self.turn))
    }

    #[inline]
    fn put(&mut self, operation: &Operation, course: &Course, out: &mut Vec<u8>) {
        self.commands.put(operation, course, &mut self.scratch, out);
    }

    #[inline]
    fn end(scanner: &mut Scanner, input: &[u8]) -> Result<Option<usize>, Malformed> {
        scanner.end(input)
    }

    #[inline]
    fn take(
        &mut self,
        slot: &mut Slot<Course>,
        answer: &[u8],
        (node, _): (usize, &mut Scanner),
        samples: &mut ErrorSamples,
    ) -> Result<Taken, Malformed> {
        let Some(error) = answer.strip_prefix(b"-") else {
            let taken = self.commands.take(&slot.operation, &mut slot.course, answer)?;
            return Ok(taken.map_or(Taken::Next, Taken::Ended));
        };
        let error = error.trim_ascii_end();
        if let Some(elsewhere) = self.redirected(&mut slot.course, error, node) {
            return Ok(elsewhere);
        }
        let text = String::from_utf8_lossy(error);
        let outcome = outcome_of(text.split(' ').next().unwrap_or_default());
        samples.add(outcome, &text);
        Ok(Taken::Ended(outcome))
    }

    #[inline]
    fn rows(course: &Course) -> u32 {
        course.rows
    }

    fn waited(course: &mut Course) {
        course.redirects = 0;
    }
}

/// The kind of error that the first word of a server's error is.
fn outcome_of(word: &str) -> Outcome {
    match word {
        "CLUSTERDOWN" | "MASTERDOWN" | "LOADING" | "NOREPLICAS" => Outcome::Unavailable,
        "BUSY" | "OOM" => Outcome::Overloaded,
        _ => Outcome::Server,
    }
}
