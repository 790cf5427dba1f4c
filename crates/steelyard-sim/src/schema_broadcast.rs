//! Schema broadcast: the node that is asked for a change of the schema has every peer execute it too, over the same protocol.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use steelyard_channel::{Channel, ClientTls};
use steelyard_cql::response::Response;
use steelyard_cql::{Consistency, Frame, HEADER_LENGTH, request};

use crate::node::FORWARDER;

/// How long one node may take to answer.
const PEER_TIMEOUT: Duration = Duration::from_secs(5);

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
    let stream = TcpStream::connect_timeout(&peer, PEER_TIMEOUT).map_err(|error| error.to_string())?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let mut channel = match tls {
        Some(tls) => tls.wrap(stream, &peer.to_string()).map_err(|error| error.to_string())?,
        None => Channel::Plain(stream),
    };
    let prepared = channel
        .shake_hands(Instant::now() + PEER_TIMEOUT)
        .and_then(|()| channel.socket().set_read_timeout(Some(PEER_TIMEOUT)));
    prepared.map_err(|error| error.to_string())?;
    let mut frame = Vec::new();
    request::startup(&mut frame, 1, FORWARDER, env!("CARGO_PKG_VERSION"), None);
    ask(&mut channel, &frame)?;
    let first = keyspace.map(|keyspace| format!("USE \"{keyspace}\""));
    for text in first.as_deref().into_iter().chain([statement]) {
        frame.clear();
        request::query(&mut frame, 1, text, Consistency::One);
        ask(&mut channel, &frame)?;
    }
    Ok(())
}

fn ask(channel: &mut Channel, frame: &[u8]) -> Result<(), String> {
    let mut exchange = || -> std::io::Result<Vec<u8>> {
        channel.send(frame)?;
        let deadline = Instant::now() + PEER_TIMEOUT;
        let mut answer = Vec::new();
        loop {
            let header = Frame::header(&answer).map_err(std::io::Error::other)?;
            if header.is_some_and(|header| header.frame_length() <= answer.len()) {
                return Ok(answer);
            }
            let before = answer.len();
            if Instant::now() > deadline || !channel.receive(&mut answer)? && answer.len() == before {
                return Err(std::io::ErrorKind::TimedOut.into());
            }
        }
    };
    let answer = exchange().map_err(|error| error.to_string())?;
    let header = Frame::header(&answer)
        .map_err(|error| error.to_string())?
        .ok_or("a short header")?;
    match Response::decode(&header, &answer[HEADER_LENGTH..header.frame_length()]) {
        Ok(Response::Error(error)) => Err(error.message.to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
