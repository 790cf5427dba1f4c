//! The thread that asks a cluster who is in service, and tells the workers.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::client::PipelinedClient;
use crate::pipelined::Pipelined;
use crate::threads::Message;

/// Between two questions.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Asks which nodes are in service about once a second until the load has ended, and tells the workers what has changed since
/// `known`. Nodes that were never named stay as they are. `ask`: the contacts of all that are in service; `None`: nothing can be
/// found out now.
pub fn watch<P: Pipelined>(
    clients: &[PipelinedClient<P>],
    mut known: Vec<String>,
    mut ask: impl FnMut(&P::Access) -> Option<Vec<String>> + Send + 'static,
) {
    let Some(shared) = clients.first().map(|client| Arc::clone(&client.shared)) else {
        return;
    };
    let workers: Vec<_> = clients.iter().map(|client| client.mailbox.sender()).collect();
    let tell = move |contact: &String, is_in_service| {
        for worker in &workers {
            worker.send(Message::Service {
                contact: contact.clone(),
                is_in_service,
            });
        }
    };
    thread::spawn(move || {
        while !shared.has_ended() {
            if let Some(named) = ask(&shared.access) {
                for left in known.iter().filter(|contact| !named.contains(contact)) {
                    // One that comes back joins again.
                    shared.joined().remove(left);
                    tell(left, false);
                }
                for joined in named.iter().filter(|contact| !known.contains(contact)) {
                    tell(joined, true);
                }
                known = named;
            }
            thread::sleep(ASK_AGAIN);
        }
    });
}
