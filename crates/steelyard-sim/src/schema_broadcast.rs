//! Schema broadcast: the node that is asked for a change of the schema has every peer execute it too, over the same protocol.

use std::net::SocketAddr;

use steelyard_channel::ClientTls;

use crate::peer::Peer;

/// Has every peer execute `statement` in `keyspace`. The error names the first that did not.
pub fn broadcast(
    peers: &[SocketAddr],
    tls: Option<&ClientTls>,
    keyspace: Option<&str>,
    statement: &str,
) -> Result<(), String> {
    peers.iter().try_for_each(|peer| {
        send_to_peer(*peer, tls, keyspace, statement)
            .map_err(|error| format!("the node {peer} did not execute the statement: {error}"))
    })
}

fn send_to_peer(
    peer: SocketAddr,
    tls: Option<&ClientTls>,
    keyspace: Option<&str>,
    statement: &str,
) -> Result<(), String> {
    let mut peer = Peer::connect(peer, tls)?;
    if let Some(keyspace) = keyspace {
        peer.ask(&format!("USE \"{keyspace}\""))?;
    }
    peer.ask(statement)
}
