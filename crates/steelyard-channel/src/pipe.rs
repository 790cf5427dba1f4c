//! Pipes: a channel with the compression that was agreed. The caller sees plain frames; the peer sees compressed ones. Without
//! compression a pipe costs one branch.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};

use steelyard_cql::{Codec, Compression, Frame};

use crate::Channel;

/// Bytes that the kernel has taken are forgotten, though others still wait, when they are as many as this and as those. Else
/// what is given faster than it is taken would pile up, sent long ago.
const FORGET_BYTES: usize = 64 << 10;

/// A connection that is spoken to in plain frames.
pub struct Pipe {
    channel: Channel,
    packing: Option<Box<Packing>>,
    /// How much of what waits the kernel has taken.
    written: usize,
}

/// The compression and its buffers, which stay when they are empty.
struct Packing {
    codec: Codec,
    /// Frames that wait for room in the kernel, packed.
    packed: Vec<u8>,
    /// What has come and is not unpacked yet: less than one frame between calls.
    raw: Vec<u8>,
}

impl Pipe {
    /// A pipe without compression.
    pub fn new(channel: Channel) -> Self {
        Self {
            channel,
            packing: None,
            written: 0,
        }
    }

    /// From now on both sides may compress. Nothing may be under way.
    pub fn compress(&mut self, kind: Compression) {
        self.packing = Some(Box::new(Packing {
            codec: Codec::new(kind),
            packed: Vec::new(),
            raw: Vec::new(),
        }));
    }

    /// The channel below.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Bytes that the kernel has not taken yet; `out` is what `send` was given.
    pub fn waiting(&self, out: &[u8]) -> usize {
        let packed = self.packing.as_ref().map_or(0, |packing| packing.packed.len());
        out.len() + packed - self.written
    }

    /// Gives the kernel what it takes of the whole frames in `out`, and empties `out` when all of them are on their way.
    /// Whether something waits for room: then call again when the socket is writable. Errors: the connection is lost.
    #[inline]
    pub fn send(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let waiting = match &mut self.packing {
            None => out,
            Some(packing) => {
                packing.pack(out)?;
                &mut packing.packed
            }
        };
        self.written += self.channel.send(&waiting[self.written..])?;
        let blocked = self.written < waiting.len();
        if !blocked {
            waiting.clear();
            self.written = 0;
        } else if self.written >= FORGET_BYTES.max(waiting.len() - self.written) {
            waiting.drain(..self.written);
            self.written = 0;
        }
        Ok(blocked || self.channel.holds_back())
    }

    /// Appends what one read brings, whole frames only where they are compressed. `Ok(true)`: more may be there. Errors:
    /// the connection is lost, or what came is not what was agreed.
    #[inline]
    pub fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        match &mut self.packing {
            None => self.channel.receive(into),
            Some(packing) => {
                let more = self.channel.receive(&mut packing.raw)?;
                packing.unpack(into)?;
                Ok(more)
            }
        }
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

impl Packing {
    fn pack(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let mut at = 0;
        while let Some(end) = frame_end(out, at)? {
            self.codec.pack(&out[at..end], &mut self.packed);
            at = end;
        }
        out.clear();
        Ok(())
    }

    fn unpack(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let mut at = 0;
        while let Some(end) = frame_end(&self.raw, at)? {
            self.codec.unpack(&self.raw[at..end], into).map_err(invalid)?;
            at = end;
        }
        let left = self.raw.len() - at;
        self.raw.copy_within(at.., 0);
        self.raw.truncate(left);
        Ok(())
    }
}

/// Where the frame that begins at `at` ends, if all of it is there.
fn frame_end(bytes: &[u8], at: usize) -> io::Result<Option<usize>> {
    let header = Frame::header(&bytes[at..]).map_err(invalid)?;
    let end = header.map(|header| at + header.frame_length());
    Ok(end.filter(|end| *end <= bytes.len()))
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use rustix::net::sockopt;
    use steelyard_cql::{Consistency, request};

    use super::*;

    const STEP_BYTES: usize = 64 << 10;

    /// Frames one after the other, as far as they are there; what they held.
    fn values(received: &mut Vec<u8>) -> Vec<u64> {
        let mut numbers = Vec::new();
        let mut at = 0;
        while let Some(end) = frame_end(received, at).unwrap() {
            // The value is the last of the frame's body before the consistency and the flags.
            let digits = &received[end - 3 - 20..end - 3];
            numbers.push(std::str::from_utf8(digits).unwrap().parse().unwrap());
            at = end;
        }
        received.drain(..at);
        numbers
    }

    #[test]
    fn what_is_sent_does_not_pile_up_while_something_always_waits() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        // So that the kernel's buffers stay as they are.
        sockopt::set_socket_send_buffer_size(&stream, STEP_BYTES).unwrap();
        sockopt::set_socket_recv_buffer_size(&peer, STEP_BYTES).unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut pipe = Pipe::new(Channel::Plain(stream));
        let (mut out, mut next) = (Vec::new(), 0_u64);
        let mut give = |out: &mut Vec<u8>, bytes: usize| {
            let end = out.len() + bytes;
            while out.len() < end {
                let statement = format!("{:>1$}{next:020}", "", 1000);
                request::query(out, 0, &statement, Consistency::One);
                next += 1;
            }
        };
        // More than the kernel takes.
        while !pipe.send(&mut out).unwrap() {
            give(&mut out, STEP_BYTES);
        }
        give(&mut out, 16 * STEP_BYTES);
        let (mut longest, mut wanted) = (0, 0_u64);
        let mut received = Vec::new();
        let mut chunk = vec![0; STEP_BYTES];
        for _ in 0..500 {
            give(&mut out, STEP_BYTES);
            let blocked = pipe.send(&mut out).unwrap();
            assert!(blocked, "something always waits");
            longest = longest.max(out.len());
            peer.read_exact(&mut chunk).unwrap();
            received.extend_from_slice(&chunk);
            for value in values(&mut received) {
                assert_eq!(value, wanted);
                wanted += 1;
            }
        }
        assert!(longest < 100 * STEP_BYTES, "{longest} bytes kept of 32 MB sent");
    }
}
