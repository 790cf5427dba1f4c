//! Connection of one node to another, over the protocol that clients speak.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use steelyard_channel::{Channel, ClientTls};
use steelyard_cql::response::Response;
use steelyard_cql::{Consistency, Frame, HEADER_LENGTH, Value, request};

/// A driver's name by which a node tells the others what they do too; they do not tell it on.
pub const FORWARDER: &str = "steelyard-sim";

/// How long one node may take to answer.
const PEER_TIMEOUT: Duration = Duration::from_secs(5);

/// Another node that has taken our STARTUP.
pub struct Peer {
    pub address: SocketAddr,
    channel: Channel,
}

impl Peer {
    pub fn connect(address: SocketAddr, tls: Option<&ClientTls>) -> Result<Self, String> {
        let connect = || -> Result<Channel, Box<dyn std::error::Error>> {
            let stream = TcpStream::connect_timeout(&address, PEER_TIMEOUT)?;
            stream.set_nodelay(true)?;
            let mut channel = match tls {
                Some(tls) => tls.wrap(stream, &address.to_string())?,
                None => Channel::Plain(stream),
            };
            channel.shake_hands(Instant::now() + PEER_TIMEOUT)?;
            channel.socket().set_read_timeout(Some(PEER_TIMEOUT))?;
            Ok(channel)
        };
        let channel = connect().map_err(|error| error.to_string())?;
        let mut peer = Self { address, channel };
        let mut frame = Vec::new();
        request::startup(&mut frame, 1, FORWARDER, env!("CARGO_PKG_VERSION"), None);
        peer.channel.send(&frame).map_err(|error| error.to_string())?;
        peer.receive()?;
        Ok(peer)
    }

    /// Has it carry out a statement.
    pub fn ask(&mut self, statement: &str) -> Result<(), String> {
        self.send(statement)?;
        self.receive().map(drop)
    }

    /// Sends a statement; `receive` takes its answer.
    pub fn send(&mut self, statement: &str) -> Result<(), String> {
        let mut frame = Vec::new();
        request::query(&mut frame, 1, statement, Consistency::One);
        self.channel.send(&frame).map(drop).map_err(|error| error.to_string())
    }

    /// What `take` makes of the rows of a SELECT; rows of which it makes nothing are left out.
    pub fn rows<T>(&mut self, select: &str, take: impl Fn(&[Value<'_>]) -> Option<T>) -> Result<Vec<T>, String> {
        self.send(select)?;
        let answer = self.receive()?;
        let Ok(Response::Rows(mut rows)) = decode(&answer) else {
            return Err(format!("no rows in the answer to {select}"));
        };
        let mut taken = Vec::new();
        for _ in 0..rows.count {
            taken.extend(take(&rows.row().map_err(|error| error.to_string())?));
        }
        Ok(taken)
    }

    /// The answer's frame; that of an error is an error, in the node's words.
    pub fn receive(&mut self) -> Result<Vec<u8>, String> {
        let answer = self.receive_frame().map_err(|error| error.to_string())?;
        match decode(&answer) {
            Ok(Response::Error(error)) => Err(error.message.to_owned()),
            Ok(_) => Ok(answer),
            Err(error) => Err(error),
        }
    }

    fn receive_frame(&mut self) -> std::io::Result<Vec<u8>> {
        let deadline = Instant::now() + PEER_TIMEOUT;
        let mut answer = Vec::new();
        loop {
            let header = Frame::header(&answer).map_err(std::io::Error::other)?;
            if header.is_some_and(|header| header.frame_length() <= answer.len()) {
                return Ok(answer);
            }
            let before = answer.len();
            if Instant::now() > deadline || !self.channel.receive(&mut answer)? && answer.len() == before {
                return Err(std::io::ErrorKind::TimedOut.into());
            }
        }
    }
}

fn decode(frame: &[u8]) -> Result<Response<'_>, String> {
    let header = Frame::header(frame).map_err(|error| error.to_string())?;
    let header = header.ok_or("a short header")?;
    Response::decode(&header, &frame[HEADER_LENGTH..header.frame_length()]).map_err(|error| error.to_string())
}
