//! Compression of frame bodies, as agreed by `STARTUP`: whole frames in, whole frames out.
//!
//! Section 5 of the specification: LZ4 is the length before compression (4 bytes, big end first) and one block; Snappy is
//! its raw format, which begins with that length itself. A frame says by `FLAG_COMPRESSION` whether its body is compressed,
//! so both sides may leave a body as it is where compression would not make it shorter.

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};

use crate::{CqlError, FLAG_COMPRESSION, Frame, HEADER_LENGTH, MAX_BODY_BYTES};

/// Shorter bodies are left as they are: they gain nothing, and clearing the tables costs more than sending them.
const MIN_BODY_BYTES: usize = 64;
/// Bytes of LZ4's length.
const LENGTH_BYTES: usize = 4;
/// One byte of LZ4 stands for 255 at most, of Snappy for less than 64: what says more is broken, and no memory is
/// given to it.
const MAX_LZ4_RATIO: usize = 255;
const MAX_SNAPPY_RATIO: usize = 64;
/// A few bytes that the ratios do not cover in very short bodies.
const RATIO_SLACK_BYTES: usize = 64;

const FLAGS_AT: usize = 1;
const LENGTH_AT: usize = 5;

/// How bodies are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// LZ4: the length of the body, then one block.
    Lz4,
    /// Snappy, without a frame format of its own.
    Snappy,
}

impl Compression {
    /// Every compression that is known.
    pub const ALL: [Self; 2] = [Self::Lz4, Self::Snappy];

    /// Name in `STARTUP` and `SUPPORTED`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
        }
    }

    /// The one of that name; some clients write it in capitals.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

/// Packs and unpacks frames. Its tables live as long as it does, so that no frame costs an allocation.
pub struct Codec {
    kind: Compression,
    lz4: CompressTable,
    snappy: snap::raw::Encoder,
}

impl Codec {
    /// A codec with empty buffers.
    pub fn new(kind: Compression) -> Self {
        Self {
            kind,
            lz4: CompressTable::small(),
            snappy: snap::raw::Encoder::new(),
        }
    }

    /// The compression that it was made for.
    pub fn kind(&self) -> Compression {
        self.kind
    }

    /// Appends a whole frame to `out`, its body compressed where that makes it shorter.
    pub fn pack(&mut self, frame: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let Some((header, body)) = frame.split_at_checked(HEADER_LENGTH) else {
            return out.extend_from_slice(frame);
        };
        if body.len() >= MIN_BODY_BYTES {
            out.extend_from_slice(header);
            let begin = out.len();
            let packed = match self.kind {
                Compression::Lz4 => self.pack_lz4(body, out),
                Compression::Snappy => self.pack_snappy(body, out),
            };
            if let Some(length) = packed.filter(|length| *length < body.len()) {
                out.truncate(begin + length);
                out[start + FLAGS_AT] |= FLAG_COMPRESSION;
                put_length(&mut out[start..], length);
                return;
            }
            out.truncate(start);
        }
        out.extend_from_slice(frame);
    }

    fn pack_lz4(&mut self, body: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        out.extend_from_slice(&(body.len() as u32).to_be_bytes());
        let begin = out.len();
        out.resize(begin + get_maximum_output_size(body.len()), 0);
        let length = compress_into_with_table(body, &mut out[begin..], &mut self.lz4).ok()?;
        Some(LENGTH_BYTES + length)
    }

    fn pack_snappy(&mut self, body: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let begin = out.len();
        out.resize(begin + snap::raw::max_compress_len(body.len()), 0);
        self.snappy.compress(body, &mut out[begin..]).ok()
    }

    /// Appends a whole frame to `out` as it was before it was packed; one that was not compressed as it is.
    ///
    /// Errors: a body that is not what the agreed compression makes, or is too long; `out` is as before then.
    pub fn unpack(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Result<(), CqlError> {
        let packed = Frame::header(frame)?.is_some_and(|header| header.flags & FLAG_COMPRESSION != 0);
        if !packed {
            out.extend_from_slice(frame);
            return Ok(());
        }
        let start = out.len();
        let (header, body) = frame.split_at(HEADER_LENGTH);
        out.extend_from_slice(header);
        let unpacked = match self.kind {
            Compression::Lz4 => unpack_lz4(body, out),
            Compression::Snappy => unpack_snappy(body, out),
        };
        match unpacked {
            Ok(length) => {
                out[start + FLAGS_AT] &= !FLAG_COMPRESSION;
                put_length(&mut out[start..], length);
                Ok(())
            }
            Err(error) => {
                out.truncate(start);
                Err(error)
            }
        }
    }
}

fn put_length(frame: &mut [u8], length: usize) {
    frame[LENGTH_AT..HEADER_LENGTH].copy_from_slice(&(length as u32).to_be_bytes());
}

fn unpack_lz4(body: &[u8], out: &mut Vec<u8>) -> Result<usize, CqlError> {
    let corrupt = CqlError::Corrupt {
        compression: Compression::Lz4.name(),
    };
    let Some((length, block)) = body.split_first_chunk::<LENGTH_BYTES>() else {
        // An empty body may be sent as it is, whatever its flag says.
        return if body.is_empty() { Ok(0) } else { Err(corrupt) };
    };
    let length = u32::from_be_bytes(*length) as usize;
    check_length(length, block.len(), MAX_LZ4_RATIO, &corrupt)?;
    let begin = out.len();
    out.resize(begin + length, 0);
    match decompress_into(block, &mut out[begin..]) {
        Ok(got) if got == length => Ok(length),
        // Nothing compressed may be nothing at all.
        _ if length == 0 => Ok(0),
        _ => Err(corrupt),
    }
}

fn unpack_snappy(body: &[u8], out: &mut Vec<u8>) -> Result<usize, CqlError> {
    let corrupt = CqlError::Corrupt {
        compression: Compression::Snappy.name(),
    };
    if body.is_empty() {
        return Ok(0);
    }
    let length = snap::raw::decompress_len(body).map_err(|_| corrupt.clone())?;
    check_length(length, body.len(), MAX_SNAPPY_RATIO, &corrupt)?;
    let begin = out.len();
    out.resize(begin + length, 0);
    match snap::raw::Decoder::new().decompress(body, &mut out[begin..]) {
        Ok(got) if got == length => Ok(length),
        _ => Err(corrupt),
    }
}

fn check_length(length: usize, packed: usize, ratio: usize, corrupt: &CqlError) -> Result<(), CqlError> {
    if length > MAX_BODY_BYTES as usize {
        return Err(CqlError::TooLong {
            bytes: length as u64,
            limit: MAX_BODY_BYTES.into(),
        });
    }
    if length > packed.saturating_mul(ratio).saturating_add(RATIO_SLACK_BYTES) {
        return Err(corrupt.clone());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Consistency, Opcode, V4, request};

    fn execution(value: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        request::execute(&mut frame, 7, b"0123456789abcdef", Consistency::One, 1, |values| {
            values.bytes(value);
        });
        frame
    }

    #[test]
    fn frames_come_back_whole_and_shorter_between() {
        for kind in Compression::ALL {
            let mut codec = Codec::new(kind);
            // Short, long, longer than LZ4's small table and than Snappy's block.
            for size in [80, 1_000, 65_530, 200_000] {
                let frame = execution(&b"steelyard ".repeat(size / 10));
                let mut packed = vec![0xAA];
                codec.pack(&frame, &mut packed);
                assert!(packed.len() < frame.len(), "{kind:?} {size}");
                let header = Frame::header(&packed[1..]).unwrap().unwrap();
                assert_eq!(header.flags, FLAG_COMPRESSION);
                assert_eq!(header.frame_length(), packed.len() - 1);
                let mut back = vec![0xBB];
                codec.unpack(&packed[1..], &mut back).unwrap();
                assert_eq!(back[1..], frame, "{kind:?} {size}");
            }
        }
    }

    #[test]
    fn what_would_not_get_shorter_is_left_as_it_is() {
        let noise: Vec<u8> = (0..2_000_u64)
            .map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31) >> 13) as u8)
            .scan(7_u8, |last, byte| {
                *last = last.wrapping_mul(167).wrapping_add(byte);
                Some(*last)
            })
            .collect();
        for kind in Compression::ALL {
            let mut codec = Codec::new(kind);
            for frame in [execution(b"k"), execution(&noise)] {
                let mut packed = Vec::new();
                codec.pack(&frame, &mut packed);
                assert_eq!(packed, frame);
                let mut back = Vec::new();
                codec.unpack(&packed, &mut back).unwrap();
                assert_eq!(back, frame);
            }
        }
    }

    /// Bodies that other libraries made, from 100 times `a`: `lz4.block.compress(..., store_size=False)` of Python's lz4 4.4.5
    /// behind its length, and `snappy.compress_raw` of cramjam 2.14.0.
    #[test]
    fn the_formats_are_those_of_the_public_libraries() {
        let lz4 = [0, 0, 0, 100, 0x1F, b'a', 1, 0, 0x4B, 0x50, b'a', b'a', b'a', b'a', b'a'];
        let snappy = [100, 0, b'a', 0xFE, 1, 0, 0x8A, 1, 0];
        for (kind, body) in [(Compression::Lz4, &lz4[..]), (Compression::Snappy, &snappy[..])] {
            let mut frame = Vec::new();
            Frame::response(&mut frame, V4, 1, Opcode::Result, |out| out.extend_from_slice(body));
            frame[FLAGS_AT] |= FLAG_COMPRESSION;
            let mut back = Vec::new();
            Codec::new(kind).unpack(&frame, &mut back).unwrap();
            assert_eq!(back[HEADER_LENGTH..], [b'a'; 100], "{kind:?}");
            assert_eq!(Frame::header(&back).unwrap().unwrap().flags, 0);
        }
    }

    #[test]
    fn broken_bodies_are_refused_and_leave_nothing_behind() {
        for kind in Compression::ALL {
            let mut codec = Codec::new(kind);
            for body in [&[1][..], &[0x7F, 0xFF, 0xFF, 0xFF, 0], &[0xFF; 40], &[0, 0, 1, 0, 9, 9]] {
                let mut frame = Vec::new();
                Frame::response(&mut frame, V4, 1, Opcode::Result, |out| out.extend_from_slice(body));
                frame[FLAGS_AT] |= FLAG_COMPRESSION;
                let mut back = vec![1, 2, 3];
                assert!(codec.unpack(&frame, &mut back).is_err(), "{kind:?} {body:?}");
                assert_eq!(back, [1, 2, 3]);
                assert!(back.capacity() < 100_000);
            }
        }
    }

    #[test]
    fn empty_bodies_may_bear_the_flag() {
        for kind in Compression::ALL {
            let mut frame = Vec::new();
            Frame::response(&mut frame, V4, 1, Opcode::Ready, |_| {});
            frame[FLAGS_AT] |= FLAG_COMPRESSION;
            let mut back = Vec::new();
            Codec::new(kind).unpack(&frame, &mut back).unwrap();
            assert_eq!(Frame::header(&back).unwrap().unwrap().body_length, 0);
        }
        assert_eq!(Compression::from_name("LZ4"), Some(Compression::Lz4));
        assert_eq!(Compression::from_name("zstd"), None);
    }
}
