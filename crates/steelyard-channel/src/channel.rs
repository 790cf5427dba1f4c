//! Channels: a TCP connection as bytes, plain or under TLS. A channel blocks where its socket does; on a non-blocking socket it takes what the kernel takes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustls::Connection;

const READ_CHUNK_BYTES: usize = 64 << 10;
/// A read is not begun into less room than this.
const READ_ROOM_BYTES: usize = 16 << 10;

/// A TCP connection, as it is or under TLS.
pub enum Channel {
    /// As it is.
    Plain(TcpStream),
    /// Under TLS.
    Tls(Box<Encrypted>),
}

/// A socket and the state of its encryption.
pub struct Encrypted {
    stream: TcpStream,
    session: Connection,
    /// What was read from the socket; empty between calls.
    sealed: Vec<u8>,
}

impl Channel {
    /// Encrypts a socket over which nothing was said yet. The handshake is part of the first calls of `receive` and
    /// `send`, or is done by `shake_hands`.
    pub(crate) fn encrypted(stream: TcpStream, session: Connection) -> Self {
        Self::Tls(Box::new(Encrypted {
            stream,
            session,
            sealed: Vec::new(),
        }))
    }

    /// The socket below.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(encrypted) => &encrypted.stream,
        }
    }

    /// Whether bytes that were taken wait for room in the kernel: then call `send` again when the socket is writable,
    /// with nothing if there is nothing else.
    #[inline]
    pub fn holds_back(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(encrypted) => encrypted.session.wants_write(),
        }
    }

    /// Takes bytes until the kernel takes no more; how many were taken. Errors: the connection is lost.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => send_plain(stream, bytes),
            Self::Tls(encrypted) => encrypted.send(bytes),
        }
    }

    /// Appends what one read of the socket brings. `Ok(true)`: more may be there. `Ok(false)` with nothing appended:
    /// nothing is there yet, or a blocking socket's time is over.
    ///
    /// Errors: the connection is lost or was closed (`UnexpectedEof`), or its bytes are no TLS (`InvalidData`).
    #[inline]
    pub fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        match self {
            Self::Plain(stream) => read_some(stream, into),
            Self::Tls(encrypted) => encrypted.receive(into),
        }
    }

    /// On a blocking socket: carries the handshake to its end, or until `deadline`. Nothing to do on a plain channel.
    ///
    /// Errors: as `receive`; `TimedOut` when the time is over.
    pub fn shake_hands(&mut self, deadline: Instant) -> io::Result<()> {
        let Self::Tls(encrypted) = self else { return Ok(()) };
        let mut none = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            encrypted.stream.set_write_timeout(Some(left))?;
            encrypted.stream.set_read_timeout(Some(left))?;
            encrypted.push()?;
            if encrypted.session.wants_write() {
                return Err(ErrorKind::TimedOut.into());
            }
            if !encrypted.session.is_handshaking() {
                return Ok(());
            }
            let got = encrypted.receive_once(&mut none)?;
            if !got.came && !got.more {
                return Err(ErrorKind::TimedOut.into());
            }
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

/// What one read of the socket did.
struct Got {
    came: bool,
    more: bool,
}

impl Encrypted {
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        loop {
            self.push()?;
            if self.session.wants_write() {
                // The kernel is full.
                return Ok(taken);
            }
            if taken == bytes.len() {
                return Ok(taken);
            }
            // As much as the session buffers; never nothing, because it has just been emptied.
            let count = self.session.writer().write(&bytes[taken..])?;
            taken += count;
            if count == 0 {
                return Ok(taken);
            }
        }
    }

    /// Gives the kernel what is encrypted, as far as it takes it.
    fn push(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.stream) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        let got = self.receive_once(into)?;
        if self.session.wants_write() {
            self.push()?;
        }
        Ok(got.more)
    }

    fn receive_once(&mut self, into: &mut Vec<u8>) -> io::Result<Got> {
        let more = read_some(&self.stream, &mut self.sealed)?;
        let sealed = std::mem::take(&mut self.sealed);
        let mut rest = &sealed[..];
        let opened = self.open(&mut rest, into);
        let came = !sealed.is_empty();
        self.sealed = sealed;
        self.sealed.clear();
        if let Err(error) = opened {
            // So that the other side learns why, if it still listens.
            let _ = self.push();
            return Err(error);
        }
        Ok(Got { came, more })
    }

    fn open(&mut self, rest: &mut &[u8], into: &mut Vec<u8>) -> io::Result<()> {
        while !rest.is_empty() {
            let before = rest.len();
            self.session.read_tls(rest)?;
            let state = self
                .session
                .process_new_packets()
                .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            let plain = state.plaintext_bytes_to_read();
            if plain > 0 {
                let start = into.len();
                into.resize(start + plain, 0);
                self.session.reader().read_exact(&mut into[start..])?;
            }
            if state.peer_has_closed() && into.is_empty() {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if rest.len() == before {
                // What follows the peer's goodbye.
                return Ok(());
            }
        }
        Ok(())
    }
}

fn send_plain(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut taken = 0;
    while taken < bytes.len() {
        match send(stream, &bytes[taken..], SendFlags::NOSIGNAL) {
            // The kernel is full; a blocking socket's time may be over.
            Ok(count) if taken + count < bytes.len() => return Ok(taken + count),
            Ok(count) => taken += count,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(taken)
}

#[inline]
fn read_some(stream: &TcpStream, into: &mut Vec<u8>) -> io::Result<bool> {
    if into.capacity() - into.len() < READ_ROOM_BYTES {
        into.reserve(READ_CHUNK_BYTES);
    }
    match rustix::io::read(stream, spare_capacity(into)) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Ok(_) => Ok(into.len() == into.capacity()),
        Err(Errno::INTR) => Ok(true),
        Err(Errno::AGAIN) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
