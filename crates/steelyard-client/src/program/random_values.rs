//! Random values: bytes, numbers and collections of them, each a function of one random stream.

use steelyard_cql::{put_big_integer, put_null, put_signed_vint, put_unsigned_vint};

use super::cql_type::{CqlType, Native};
use super::encode::{Digits, put_real, put_uuid, put_whole};
use super::value_source::{Execution, ValueSource};
use steelyard_workload::program::Numbers;
use steelyard_workload::random::{Random, unit};
use steelyard_workload::stress::ProfileColumn;

/// Bytes of text and blobs, and entries of collections, where a value does not say.
pub const DEFAULT_BYTES: i64 = 16;
pub const DEFAULT_ENTRIES: i64 = 4;
/// Most bytes of one value, and most entries.
pub const MOST_BYTES: i64 = 1 << 28;
pub const MOST_ENTRIES: i64 = 65_535;
/// A version in front of a text (hexadecimal) and of a blob.
pub const VERSION_DIGITS: usize = 16;
pub const VERSION_BYTES: usize = 8;
/// The last millisecond of the year 9999, and its last day: what clients can still show.
const LAST_MS: u64 = 253_402_300_799_999;
const LAST_DAY: u64 = 2_932_896;
const DAY_NS: u64 = 86_400_000_000_000;
/// The stream that sizes come from; entries have their numbers.
const SIZE: u64 = u64::MAX;
/// Decimals of random decimals.
const DECIMAL_SCALE: i32 = 2;

/// A random value, by the shape of its type.
#[derive(Clone, Debug)]
pub(super) enum RandomValue {
    Text {
        size: Numbers,
        versioned: bool,
    },
    Blob {
        size: Numbers,
        versioned: bool,
    },
    /// A number of a distribution.
    Number {
        native: Native,
        numbers: Numbers,
    },
    /// The number that was chosen.
    Chosen(Native),
    /// Any value that the type holds.
    Any(Native),
    /// A list or set; with `distinct` no entry is there twice.
    Entries {
        of: Box<ValueSource>,
        size: Numbers,
        distinct: bool,
    },
    Pairs {
        key: Box<ValueSource>,
        value: Box<ValueSource>,
        size: Numbers,
        distinct: bool,
    },
    Members(Vec<ValueSource>),
    Dimensions {
        of: Box<ValueSource>,
        count: u32,
        fixed: bool,
    },
}

impl RandomValue {
    /// Appends the value. `version` is in front of what is versioned.
    #[inline]
    pub fn put(&self, random: Random, at: &Execution, version: u64, out: &mut Vec<u8>) {
        let bytes = |size: &Numbers| size.whole(random.at(SIZE), at.key).unsigned_abs() as usize;
        match self {
            Self::Text { size, versioned: false } => put_text(random, bytes(size), out),
            Self::Text { size, versioned: true } => {
                put_hexadecimal(version, out);
                put_text(random, bytes(size).saturating_sub(VERSION_DIGITS), out);
            }
            Self::Blob { size, versioned: false } => put_blob(random, bytes(size), out),
            Self::Blob { size, versioned: true } => {
                out.extend_from_slice(&version.to_be_bytes());
                put_blob(random, bytes(size).saturating_sub(VERSION_BYTES), out);
            }
            Self::Number { native, numbers } if native.is_real() => {
                put_real(*native, numbers.real(random, at.key), &Digits::default(), out);
            }
            Self::Number { native, numbers } => {
                put_whole(*native, numbers.whole(random, at.key), &Digits::default(), out);
            }
            Self::Any(native) => put_any(*native, random, out),
            _ => self.put_many(random, at, out),
        }
    }

    /// Appends the value that cassandra-stress's `column` chooses with that seed. `random`: of all values of the column.
    pub fn put_chosen(&self, column: &ProfileColumn, seed: i64, random: Random, at: &Execution, out: &mut Vec<u8>) {
        match self {
            Self::Chosen(native) if native.is_real() => put_real(*native, column.real(seed), &Digits::default(), out),
            Self::Chosen(native) => put_whole(*native, column.identity(seed), &Digits::default(), out),
            value => {
                let number = column.identity(seed) as u64;
                value.put(random.at(number), &at.with_key(number), at.version, out);
            }
        }
    }

    fn put_many(&self, random: Random, at: &Execution, out: &mut Vec<u8>) {
        match self {
            Self::Entries { of, size, distinct } => {
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                let mut count = 0_u32;
                for number in 0..size.whole(random.at(SIZE), at.key).unsigned_abs() {
                    let entry = out.len();
                    of.put_seeded(at, random.at(number), out);
                    if *distinct && is_there(&out[start + 4..], entry - start - 4, 1) {
                        out.truncate(entry);
                    } else {
                        count += 1;
                    }
                }
                out[start..start + 4].copy_from_slice(&count.to_be_bytes());
            }
            Self::Pairs {
                key,
                value,
                size,
                distinct,
            } => {
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                let mut count = 0_u32;
                for number in 0..size.whole(random.at(SIZE), at.key).unsigned_abs() {
                    let pair = out.len();
                    key.put_seeded(at, random.at(2 * number), out);
                    if *distinct && is_there(&out[start + 4..], pair - start - 4, 2) {
                        out.truncate(pair);
                        continue;
                    }
                    value.put_seeded(at, random.at(2 * number + 1), out);
                    count += 1;
                }
                out[start..start + 4].copy_from_slice(&count.to_be_bytes());
            }
            Self::Members(members) => {
                for (member, number) in members.iter().zip(0..) {
                    member.put_seeded(at, random.at(number), out);
                }
            }
            Self::Dimensions { of, count, fixed } => {
                for number in 0..u64::from(*count) {
                    let start = out.len();
                    of.put_seeded(at, random.at(number), out);
                    let length = out.len() - start - 4;
                    if *fixed {
                        out.copy_within(start + 4.., start);
                        out.truncate(start + length);
                    } else {
                        // The length takes at most four bytes, for which there is room.
                        let end = out.len();
                        put_unsigned_vint(out, length as u64);
                        let bytes = out.len() - end;
                        out.copy_within(end.., start);
                        out.copy_within(start + 4..end, start + bytes);
                        out.truncate(start + bytes + length);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whether what begins at `end` is among the `[bytes]` before it, of which each `step`-th counts.
fn is_there(bytes: &[u8], end: usize, step: usize) -> bool {
    let (mut at, mut number) = (0, 0);
    while at < end {
        let Some(length) = bytes[at..].first_chunk::<4>() else {
            return false;
        };
        let next = at + 4 + u32::from_be_bytes(*length) as usize;
        if number % step == 0 && bytes[at..next] == bytes[end..] {
            return true;
        }
        (at, number) = (next, number + 1);
    }
    false
}

/// Whether two random values of a type are likely to be the same.
pub(super) fn is_narrow(kind: &CqlType, smallest: i64) -> bool {
    match kind {
        CqlType::Native(Native::Text | Native::Ascii | Native::Blob) => smallest < 10,
        CqlType::Native(native) => native.fixed_length().is_none_or(|length| length < 8),
        CqlType::Vector(..) => kind.fixed_length().is_none_or(|length| length < 8),
        _ => true,
    }
}

/// Printable ASCII from ? to ~: six bits of chance a character.
fn put_text(random: Random, length: usize, out: &mut Vec<u8>) {
    const LOW_SIX: u64 = 0x3F3F_3F3F_3F3F_3F3F;
    fill(length, out, |draw| (random.bits(draw) & LOW_SIX) + LOW_SIX);
}

fn put_blob(random: Random, length: usize, out: &mut Vec<u8>) {
    fill(length, out, |draw| random.bits(draw));
}

#[inline]
fn fill(length: usize, out: &mut Vec<u8>, word: impl Fn(u64) -> u64) {
    let start = out.len();
    out.resize(start + length, 0);
    let mut chunks = out[start..].chunks_exact_mut(8);
    let mut draw = 0;
    for chunk in &mut chunks {
        chunk.copy_from_slice(&word(draw).to_le_bytes());
        draw += 1;
    }
    let rest = chunks.into_remainder();
    let count = rest.len();
    rest.copy_from_slice(&word(draw).to_le_bytes()[..count]);
}

/// Appends the version as 16 hexadecimal digits.
fn put_hexadecimal(version: u64, out: &mut Vec<u8>) {
    let digit = |shift: u32| b"0123456789abcdef"[(version >> shift) as usize & 15];
    out.extend((0..16).rev().map(|position| digit(4 * position)));
}

/// The version in front of a text or a blob; None where there is none.
pub(super) fn version_of(value: &RandomValue, cell: &[u8]) -> Option<u64> {
    match value {
        RandomValue::Text { .. } => {
            let digits = cell.get(..VERSION_DIGITS)?;
            u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        }
        RandomValue::Blob { .. } => cell
            .first_chunk::<VERSION_BYTES>()
            .map(|bytes| u64::from_be_bytes(*bytes)),
        _ => None,
    }
}

fn put_any(native: Native, random: Random, out: &mut Vec<u8>) {
    let bits = random.bits(0);
    match native {
        Native::Float => out.extend_from_slice(&(unit(bits) as f32).to_be_bytes()),
        Native::Double => out.extend_from_slice(&unit(bits).to_be_bytes()),
        Native::Uuid => put_uuid(bits, 4, out),
        Native::TimeUuid => put_uuid(bits, 1, out),
        Native::Timestamp => put_whole(native, (bits % LAST_MS) as i64, &Digits::default(), out),
        Native::Date => put_whole(native, (bits % LAST_DAY) as i64, &Digits::default(), out),
        Native::Time => put_whole(native, (bits % DAY_NS) as i64, &Digits::default(), out),
        Native::Duration => {
            put_signed_vint(out, (bits % 120) as i64);
            put_signed_vint(out, (random.bits(1) % 28) as i64);
            put_signed_vint(out, (random.bits(2) % DAY_NS) as i64);
        }
        Native::Decimal => {
            out.extend_from_slice(&DECIMAL_SCALE.to_be_bytes());
            put_big_integer(out, (bits as i64).into());
        }
        // An increment.
        Native::Counter => out.extend_from_slice(&1_i64.to_be_bytes()),
        _ => put_whole(native, bits as i64, &Digits::default(), out),
    }
}

/// Appends what `write` appends as `[bytes]`, or null if `write` returns false.
#[inline]
pub(super) fn put_sized(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> bool) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    if write(out) {
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    } else {
        out.truncate(start);
        put_null(out);
    }
}
