//! Reconnection: a thread for each lost connection that tries until the connection is established again.

use std::sync::atomic::{AtomicBool, Ordering};

use steelyard_channel::{Backoff, MailSender};

use crate::blocking_connection::BlockingConnection;
use crate::error::ConnectionError;
use crate::routing::NodeConnections;
use crate::worker::{Shared, WorkerMessage};

/// Tries connection `number` of a node until it is established, then hands it to the worker; ends early when `closed` is set
/// or the node has left.
/// Runs in a thread of its own, because a handshake may block.
pub(crate) fn reconnect(
    shared: &Shared,
    node: &NodeConnections,
    number: usize,
    worker: &MailSender<WorkerMessage>,
    closed: &AtomicBool,
) {
    let mut backoff = Backoff::new();
    let shard = node.shard(number);
    while !closed.load(Ordering::Relaxed) && !node.has_left() {
        backoff.wait();
        let connect = || {
            let mut connection =
                BlockingConnection::open_for_load(&node.contact, shard, number as u32, &shared.access)?;
            let ids = connection.prepare(&shared.statements.cql)?;
            Ok::<_, ConnectionError>((connection.into_pipe()?, ids))
        };
        // A node that is not back yet refuses in many ways; all of them mean: try again.
        let Ok((pipe, ids)) = connect() else { continue };
        return worker.send(WorkerMessage::Up { number, pipe, ids });
    }
}
