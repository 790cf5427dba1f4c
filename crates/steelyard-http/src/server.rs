//! A server that is asked once, before a load begins.

use std::net::SocketAddr;

use steelyard_channel::ContactError;
use steelyard_protocol::exchange::Exchange;
use steelyard_protocol::{ConnectError, Language};

use crate::answer::{Part, Reader};

/// Most bytes that are read of a body.
const MAX_BODY_BYTES: usize = 64 << 10;

/// HTTP, as errors name it.
pub const HTTP: Language = Language {
    name: "HTTP/1.1",
    short: "HTTP",
    port: 80,
};

/// What a server said.
pub(crate) struct Said {
    /// The address that the contact stands for.
    pub address: SocketAddr,
    /// The status, in words.
    pub status: String,
    /// What it calls itself in the field `Server`.
    pub server: String,
    pub body: Vec<u8>,
}

/// Sends a request on a connection of its own, and reads the answer; of one to HEAD there is no body.
pub(crate) fn ask(contact: &str, method: &str, path: &str) -> Result<Said, ConnectError> {
    let mut exchange = Exchange::open(contact)?;
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: {contact}\r\nUser-Agent: steelyard\r\nConnection: close\r\n\r\n");
    let (mut reader, mut at) = (Reader::default(), 0);
    let mut said = Said {
        address: exchange.address()?,
        status: String::new(),
        server: String::new(),
        body: Vec::new(),
    };
    exchange.send(&mut request.into_bytes())?;
    loop {
        let read = exchange.receive();
        loop {
            let next = reader.next(&exchange.input[at..]);
            let (used, part) = next.map_err(|source| ConnectError::Protocol {
                contact: contact.to_owned(),
                language: &HTTP,
                source,
            })?;
            at += used;
            match part {
                None => break,
                Some(Part::Head(head)) => {
                    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                    said.status = text(head.said);
                    said.server = text(head.field("server").unwrap_or_default());
                    if method == "HEAD" {
                        return Ok(said);
                    }
                }
                Some(Part::Body(piece)) if said.body.len() < MAX_BODY_BYTES => said.body.extend_from_slice(piece),
                Some(_) => return Ok(said),
            }
        }
        match read {
            Err(ContactError::Closed { .. }) if reader.ends_with_connection() => return Ok(said),
            other => other?,
        }
    }
}
