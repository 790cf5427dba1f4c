//! A server that is asked one command after the other, for the start of a load and for connections that are made again.

use std::net::SocketAddr;

use steelyard_channel::{ContactError, Pipe};
use steelyard_protocol::exchange::Exchange;
use steelyard_protocol::{ConnectError, Language, Malformed};

use crate::protocol::{Scanner, put_command};

/// RESP, as errors name it.
pub const RESP: Language = Language {
    name: "Redis' protocol",
    short: "RESP",
    port: 6379,
};

/// A connection over which one command at a time is asked.
pub(crate) struct Server(Exchange);

impl Server {
    /// Connects, and asks whether the server answers.
    pub fn open(contact: &str) -> Result<Self, ConnectError> {
        let mut server = Self(Exchange::open(contact)?);
        let answer = server.ask(&[b"PING"])?;
        server.accepted(answer)?;
        Ok(server)
    }

    /// The whole answer to a command, which may be an error of the server. Errors: none in time, or none of the protocol's.
    pub fn ask(&mut self, command: &[&[u8]]) -> Result<Vec<u8>, ConnectError> {
        self.0.deadline.restart();
        let (mut out, mut scanner) = (Vec::new(), Scanner::default());
        put_command(command, &mut out);
        self.0.send(&mut out)?;
        loop {
            self.0.receive()?;
            if let Some(end) = scanner.end(&self.0.input).map_err(|source| self.broken(source))? {
                let mut answer = std::mem::take(&mut self.0.input);
                answer.truncate(end);
                return Ok(answer);
            }
        }
    }

    /// An answer that is no error of the server.
    pub fn accepted(&self, answer: Vec<u8>) -> Result<Vec<u8>, ConnectError> {
        let Some(error) = answer.strip_prefix(b"-") else {
            return Ok(answer);
        };
        let error = String::from_utf8_lossy(error);
        let hint = if error.starts_with("NOAUTH") {
            "passwords are not possible over resp: take requirepass out of the server's settings"
        } else {
            "see the documentation of the server"
        };
        Err(ConnectError::Refused {
            message: format!("{} refused: {}", self.0.contact(), error.trim_end()),
            hint,
            is_away: false,
        })
    }

    /// That what came is not an answer to what was asked.
    pub fn broken(&self, source: Malformed) -> ConnectError {
        ConnectError::Protocol {
            contact: self.0.contact().to_owned(),
            language: &RESP,
            source,
        }
    }

    /// The contact's address.
    pub fn address(&self) -> Result<SocketAddr, ContactError> {
        self.0.address()
    }

    /// The connection, non-blocking.
    pub fn into_pipe(self) -> Result<Pipe, ContactError> {
        self.0.into_pipe()
    }
}
