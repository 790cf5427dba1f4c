//! A non-blocking connection to a node with at most one request in flight, and how it is made.

use std::io;
use std::net::{SocketAddr, TcpStream};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use steelyard_channel::line::Line;
use steelyard_channel::{Channel, Pipe};

use crate::answer::Reader;

/// What a connection is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// There is none.
    #[default]
    Closed,
    /// No request is in flight.
    Idle,
    /// A slot's request is in flight, or is to be.
    Busy(u32),
    /// Its last answer has come; the server closes it.
    Ending,
}

/// A connection, up or not.
#[derive(Default)]
pub(crate) struct Connection {
    pub node: usize,
    pub line: Line,
    pub state: State,
    pub reader: Reader,
    /// Whether the server has accepted it.
    pub stands: bool,
    /// Whether it has brought an answer.
    pub has_answered: bool,
    /// Whether it was lost, and does not stand again yet.
    pub is_lost: bool,
    /// Whether it is to be made again when its node takes connections.
    pub is_wanted: bool,
}

impl Connection {
    /// Forgets the connection.
    pub fn close(&mut self) {
        self.line.lose();
        self.reader = Reader::default();
        self.state = State::Closed;
        (self.stands, self.has_answered) = (false, false);
    }
}

/// Why a connection cannot be begun.
pub(crate) enum NotBegun {
    /// This machine's limit: it says nothing of the server.
    Here(io::Error),
    /// The way to the server, or the server itself.
    There(io::Error),
}

/// Begins a connection, and does not wait for it. `delays`: small pieces may wait for each other, as the kernel has it by default.
pub(crate) fn begin(address: SocketAddr, delays: bool) -> Result<Pipe, NotBegun> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let here = |error| NotBegun::Here(explain(address, error));
    let socket = socket_with(family, SocketType::STREAM, flags, None).map_err(here)?;
    if !delays {
        sockopt::set_tcp_nodelay(&socket, true).map_err(here)?;
    }
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(Pipe::new(Channel::Plain(TcpStream::from(socket)))),
        Err(
            error @ (Errno::ADDRNOTAVAIL
            | Errno::ADDRINUSE
            | Errno::AGAIN
            | Errno::NOBUFS
            | Errno::NOMEM
            | Errno::ACCESS
            | Errno::PERM),
        ) => Err(here(error)),
        Err(error) => Err(NotBegun::There(error.into())),
    }
}

/// What an error of this machine means.
#[cold]
pub(crate) fn explain(address: SocketAddr, error: Errno) -> io::Error {
    let why = match error {
        Errno::MFILE | Errno::NFILE => "as many files are open as this process may have (ulimit -n)",
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE | Errno::AGAIN => {
            "no local port is left: those of net.ipv4.ip_local_port_range have connections there, or had one less than a minute \
             ago (TIME_WAIT)"
        }
        Errno::ACCESS | Errno::PERM => "this machine's firewall does not let it out",
        _ => "this machine has no room for it",
    };
    let message = format!(
        "a connection to {address} could not be begun: {why}: {}",
        io::Error::from(error)
    );
    io::Error::other(message)
}
