//! Frame headers: the nine bytes before every body.

use crate::CqlError;

/// Bytes of a frame's header, in versions 3 to 5.
pub const HEADER_LENGTH: usize = 9;
/// Version byte of the protocol, without the bit that marks a response.
pub const V3: u8 = 3;
/// Version 4 of the native protocol.
pub const V4: u8 = 4;
/// Longest body that is accepted: Cassandra's own default for `native_transport_max_frame_size` was 256 MiB.
pub const MAX_BODY_BYTES: u32 = 256 << 20;

/// The body is compressed.
pub const FLAG_COMPRESSION: u8 = 0x01;
/// The request asks for tracing, or the response has a tracing id.
pub const FLAG_TRACING: u8 = 0x02;
/// The body begins with a custom payload.
pub const FLAG_CUSTOM_PAYLOAD: u8 = 0x04;
/// The body begins with warnings.
pub const FLAG_WARNING: u8 = 0x08;

const RESPONSE_BIT: u8 = 0x80;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// Response: an error.
    Error = 0x00,
    /// Request: begin of a connection.
    Startup = 0x01,
    /// Response: the connection is ready.
    Ready = 0x02,
    /// Response: the server wants credentials.
    Authenticate = 0x03,
    /// Request: what does the server support?
    Options = 0x05,
    /// Response: what the server supports.
    Supported = 0x06,
    /// Request: execute a statement.
    Query = 0x07,
    /// Response: result of a statement.
    Result = 0x08,
    /// Request: prepare a statement.
    Prepare = 0x09,
    /// Request: execute a prepared statement.
    Execute = 0x0A,
    /// Request: send events.
    Register = 0x0B,
    /// Response: an event.
    Event = 0x0C,
    /// Request: execute several statements.
    Batch = 0x0D,
    /// Response: the next question of an authentication.
    AuthChallenge = 0x0E,
    /// Request: credentials.
    AuthResponse = 0x0F,
    /// Response: the credentials are accepted.
    AuthSuccess = 0x10,
}

impl Opcode {
    /// The opcode of that number.
    pub fn from_number(number: u8) -> Result<Self, CqlError> {
        Ok(match number {
            0x00 => Self::Error,
            0x01 => Self::Startup,
            0x02 => Self::Ready,
            0x03 => Self::Authenticate,
            0x05 => Self::Options,
            0x06 => Self::Supported,
            0x07 => Self::Query,
            0x08 => Self::Result,
            0x09 => Self::Prepare,
            0x0A => Self::Execute,
            0x0B => Self::Register,
            0x0C => Self::Event,
            0x0D => Self::Batch,
            0x0E => Self::AuthChallenge,
            0x0F => Self::AuthResponse,
            0x10 => Self::AuthSuccess,
            _ => {
                return Err(CqlError::Unknown {
                    what: "opcode",
                    number: i64::from(number),
                });
            }
        })
    }
}

/// A frame's header. The opcode stays a number so that a frame of an unknown version can still be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Protocol version without the response bit. Drivers that begin with version 5 or a vendor's own are told
    /// `code::PROTOCOL` and come again with version 4.
    pub version: u8,
    /// Whether it is a response: the highest bit of the version.
    pub response: bool,
    /// The `FLAG_` bits.
    pub flags: u8,
    /// Stream: the number by which request and response belong together; negative for events.
    pub stream: i16,
    /// The opcode, see `Opcode`.
    pub opcode: u8,
    /// Bytes of the body.
    pub body_length: u32,
}

impl Header {
    /// Bytes of header and body together.
    pub fn frame_length(&self) -> usize {
        HEADER_LENGTH + self.body_length as usize
    }
}

/// Reading and building of whole frames.
pub struct Frame;

impl Frame {
    /// The header at the beginning of `bytes`; `None` while fewer than nine bytes are there.
    ///
    /// Errors: a body longer than `MAX_BODY_BYTES`.
    #[inline]
    pub fn header(bytes: &[u8]) -> Result<Option<Header>, CqlError> {
        let Some(head) = bytes.first_chunk::<HEADER_LENGTH>() else {
            return Ok(None);
        };
        let header = Header {
            version: head[0] & !RESPONSE_BIT,
            response: head[0] & RESPONSE_BIT != 0,
            flags: head[1],
            stream: i16::from_be_bytes([head[2], head[3]]),
            opcode: head[4],
            body_length: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
        };
        if header.body_length > MAX_BODY_BYTES {
            return Err(CqlError::TooLong {
                bytes: header.body_length.into(),
                limit: MAX_BODY_BYTES.into(),
            });
        }
        Ok(Some(header))
    }

    /// Appends one request frame whose body `write` appends.
    #[inline]
    pub fn request(out: &mut Vec<u8>, stream: i16, opcode: Opcode, write: impl FnOnce(&mut Vec<u8>)) {
        Self::put(out, V4, 0, stream, opcode, write);
    }

    /// Appends one response frame in the version of the request.
    #[inline]
    pub fn response(out: &mut Vec<u8>, version: u8, stream: i16, opcode: Opcode, write: impl FnOnce(&mut Vec<u8>)) {
        Self::put(out, version | RESPONSE_BIT, 0, stream, opcode, write);
    }

    #[inline]
    fn put(out: &mut Vec<u8>, version: u8, flags: u8, stream: i16, opcode: Opcode, write: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        let [high, low] = stream.to_be_bytes();
        out.extend_from_slice(&[version, flags, high, low, opcode as u8, 0, 0, 0, 0]);
        write(out);
        let length = (out.len() - start - HEADER_LENGTH) as u32;
        out[start + 5..start + HEADER_LENGTH].copy_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_as_it_was_written() {
        let mut out = vec![0xAA];
        Frame::response(&mut out, V3, -2, Opcode::Event, |body| body.extend_from_slice(b"abc"));
        let header = Frame::header(&out[1..]).unwrap().unwrap();
        assert_eq!(
            header,
            Header {
                version: 3,
                response: true,
                flags: 0,
                stream: -2,
                opcode: Opcode::Event as u8,
                body_length: 3
            }
        );
        assert_eq!(header.frame_length(), 12);
    }

    #[test]
    fn less_than_a_header_is_no_error() {
        assert_eq!(Frame::header(&[4, 0, 0, 1, 5, 0, 0, 0]).unwrap(), None);
    }

    #[test]
    fn a_huge_body_is_refused() {
        let huge = [0x84, 0, 0, 1, 8, 0x7F, 0, 0, 0];
        assert!(matches!(Frame::header(&huge), Err(CqlError::TooLong { .. })));
    }
}
