//! What is known of a connection: how much of an answer has come, and whether its server is the primary.

use steelyard_protocol::Malformed;

use crate::messages::{Reader, first, text};

/// What is known of a connection.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    pub(crate) reader: Reader,
    /// Whether its server takes writes. It says so at the start, and again with the first answer after that has changed.
    pub(crate) is_primary: bool,
    /// The server's version.
    pub(crate) version: String,
}

impl Peer {
    /// Takes a parameter of the server from a message's body.
    pub(crate) fn note(&mut self, mut body: &[u8]) {
        let (Some(name), Some(value)) = (text(&mut body), text(&mut body)) else {
            return;
        };
        match name {
            b"in_hot_standby" => self.is_primary = value == b"off",
            b"server_version" => {
                let version = String::from_utf8_lossy(value);
                version
                    .split(' ')
                    .next()
                    .unwrap_or_default()
                    .clone_into(&mut self.version);
            }
            _ => {}
        }
    }

    /// Takes the parameters that came with an answer, if any did; whether its server has become the primary, or no longer is it.
    #[inline]
    pub(crate) fn listen(&mut self, answer: &[u8]) -> Result<bool, Malformed> {
        if !std::mem::take(&mut self.reader.has_news) {
            return Ok(false);
        }
        let (before, mut at) = (self.is_primary, 0);
        while let Some((message, bytes)) = first(&answer[at..])? {
            at += bytes;
            if message.kind == b'S' {
                self.note(message.body);
            }
        }
        Ok(self.is_primary != before)
    }
}
