//! Exchanges with a server, one request after the other, for the start of a load and for connections that are made again.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use steelyard_channel::contact::connect;
use steelyard_channel::{Channel, ContactError, Deadline, Pipe};

/// For all that a connection needs until it can be used, and for each answer.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// A blocking connection.
pub struct Exchange {
    pipe: Pipe,
    /// Of what is under way.
    pub deadline: Deadline,
    /// What has come. Whoever reads it removes it.
    pub input: Vec<u8>,
}

/// A TCP connection over which small pieces do not wait for each other.
///
/// # Errors
///
/// As `connect` of `steelyard_channel::contact`.
pub fn dial(deadline: &Deadline) -> Result<TcpStream, ContactError> {
    let stream = connect(deadline)?;
    let set = stream.set_nodelay(true);
    set.map_err(|source| deadline.explain(source))?;
    Ok(stream)
}

impl Exchange {
    /// Connects.
    ///
    /// # Errors
    ///
    /// As `dial`.
    pub fn open(contact: &str) -> Result<Self, ContactError> {
        let deadline = Deadline::new(contact, TIMEOUT);
        Ok(Self::over(Channel::Plain(dial(&deadline)?), deadline))
    }

    /// Over a channel that stands.
    pub fn over(channel: Channel, deadline: Deadline) -> Self {
        Self {
            pipe: Pipe::new(channel),
            deadline,
            input: Vec::new(),
        }
    }

    /// The contact.
    pub fn contact(&self) -> &str {
        self.deadline.contact()
    }

    /// The address that the contact stands for.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    pub fn address(&self) -> Result<SocketAddr, ContactError> {
        let address = self.pipe.channel().socket().peer_addr();
        address.map_err(|source| self.deadline.explain(source))
    }

    /// Sends all of `out`, which is empty afterwards.
    ///
    /// # Errors
    ///
    /// The connection is lost, or the time is over.
    pub fn send(&mut self, out: &mut Vec<u8>) -> Result<(), ContactError> {
        while self.limited(|pipe, _| pipe.send(out))? {}
        Ok(())
    }

    /// Reads once, as much as has come.
    ///
    /// # Errors
    ///
    /// The connection is lost, or the time is over.
    pub fn receive(&mut self) -> Result<(), ContactError> {
        self.limited(Pipe::receive).map(|_| ())
    }

    fn limited<T>(&mut self, act: impl FnOnce(&mut Pipe, &mut Vec<u8>) -> io::Result<T>) -> Result<T, ContactError> {
        let left = Some(self.deadline.left()?);
        let socket = self.pipe.channel().socket();
        let limited = socket
            .set_read_timeout(left)
            .and_then(|()| socket.set_write_timeout(left));
        limited
            .and_then(|()| act(&mut self.pipe, &mut self.input))
            .map_err(|source| self.deadline.explain(source))
    }

    /// The connection, non-blocking; nothing may be outstanding.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    pub fn into_pipe(self) -> Result<Pipe, ContactError> {
        let non_blocking = self.pipe.channel().socket().set_nonblocking(true);
        non_blocking.map_err(|source| self.deadline.explain(source))?;
        Ok(self.pipe)
    }
}
