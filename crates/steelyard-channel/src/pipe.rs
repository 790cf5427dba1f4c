//! A channel and, where it was agreed, the compression of what goes over it: plain frames on this side, whatever the
//! server wants on the other. Where nothing was agreed it costs one branch.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};

use steelyard_cql::{Codec, Compression, Frame};

use crate::Channel;

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
