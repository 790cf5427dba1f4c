//! A change of the schema goes to every node: the one that was asked tells the others, over the same protocol.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use steelyard_cql::response::Response;
use steelyard_cql::{Consistency, Frame, HEADER_LENGTH, request};

use crate::node::FORWARDER;

/// How long one node may take to answer.
const PEER_TIMEOUT: Duration = Duration::from_secs(5);

/// Have every peer carry out `statement` in `keyspace`. The error names the first that did not.
pub fn spread(peers: &[SocketAddr], keyspace: Option<&str>, statement: &str) -> Result<(), String> {
    peers.iter().try_for_each(|peer| {
        tell(*peer, keyspace, statement)
            .map_err(|error| format!("the node {peer} did not carry out the statement: {error}"))
    })
}

fn tell(peer: SocketAddr, keyspace: Option<&str>, statement: &str) -> Result<(), String> {
    let mut stream = TcpStream::connect_timeout(&peer, PEER_TIMEOUT).map_err(|error| error.to_string())?;
    let prepared = stream
        .set_read_timeout(Some(PEER_TIMEOUT))
        .and_then(|()| stream.set_nodelay(true));
    prepared.map_err(|error| error.to_string())?;
    let mut frame = Vec::new();
    request::startup(&mut frame, 1, FORWARDER, env!("CARGO_PKG_VERSION"));
    ask(&mut stream, &frame)?;
    let first = keyspace.map(|keyspace| format!("USE \"{keyspace}\""));
    for text in first.as_deref().into_iter().chain([statement]) {
        frame.clear();
        request::query(&mut frame, 1, text, Consistency::One);
        ask(&mut stream, &frame)?;
    }
    Ok(())
}

fn ask(stream: &mut TcpStream, frame: &[u8]) -> Result<(), String> {
    let mut exchange = || -> std::io::Result<(Vec<u8>, [u8; HEADER_LENGTH])> {
        stream.write_all(frame)?;
        let mut head = [0; HEADER_LENGTH];
        stream.read_exact(&mut head)?;
        let length = Frame::header(&head)
            .ok()
            .flatten()
            .map_or(0, |header| header.body_length as usize);
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        Ok((body, head))
    };
    let (body, head) = exchange().map_err(|error| error.to_string())?;
    let header = Frame::header(&head)
        .map_err(|error| error.to_string())?
        .ok_or("a short header")?;
    match Response::decode(&header, &body) {
        Ok(Response::Error(error)) => Err(error.message.to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
