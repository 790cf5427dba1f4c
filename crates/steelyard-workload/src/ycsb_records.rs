//! Names and values of YCSB's records. A value says itself whether it is right: a reader needs neither the seed nor the version
//! of who wrote it.

use steelyard_wire::{InsertOrder, LengthDistribution, Ycsb};

use crate::decimal::put_decimal;
use crate::operation::Operation;
use crate::random::{Purpose, Random, output};
use crate::ycsb_distributions::{Lengths, fnv_hash};

const KEY_PREFIX: &[u8] = b"user";
/// Most bytes of a value's mark.
const MARK_BYTES: usize = 12;

/// Append the key's name: `user` and its number, with zeros before it up to `zero_padding` digits.
pub fn write_key(key: u64, workload: &Ycsb, out: &mut Vec<u8>) {
    out.extend_from_slice(KEY_PREFIX);
    put_decimal(named_number(key, workload), workload.zero_padding as usize, out);
}

/// The name of a table or a column, as CQL and SQL write it.
pub fn identifier(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The number in a key's name: the key's hash, unless the insert order is `ordered`.
#[inline]
pub fn named_number(key: u64, workload: &Ycsb) -> u64 {
    match workload.insert_order {
        InsertOrder::Hashed => fnv_hash(key),
        InsertOrder::Ordered => key,
    }
}

/// The number in a name that `write_key` has written; None: it has not.
pub fn number_in_name(name: &[u8]) -> Option<u64> {
    let digits = name.strip_prefix(KEY_PREFIX).filter(|digits| !digits.is_empty())?;
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// The random numbers of all values under one seed.
#[derive(Clone, Copy, Debug)]
pub struct ValueSeed {
    length: Random,
    bytes: Random,
}

impl ValueSeed {
    /// Of an order's seed.
    pub const fn new(seed: u64) -> Self {
        Self {
            length: Random::new(seed, Purpose::ValueLength),
            bytes: Random::new(seed, Purpose::ValueBytes),
        }
    }
}

/// Append a value: a pure function of seed, key, field and version. Its bytes have the pattern of YCSB's RandomByteIterator
/// (ASCII 32 to 127, each byte of six from its own range), so that it compresses as YCSB's values do.
///
/// Its first half, 12 bytes at most, is its *mark*, the only part that seed and version determine. The rest follows from the mark,
/// the length, the key's name and the field, so that `check_value` needs neither seed nor version.
pub fn write_value(seed: ValueSeed, key: u64, field: u32, version: u64, workload: &Ycsb, out: &mut Vec<u8>) {
    let at = |random: Random| random.at(key).at(u64::from(field)).at(version);
    let lengths = Lengths::new(
        workload.field_length_distribution,
        workload.min_field_length,
        workload.field_length,
    );
    let length = match lengths {
        Lengths::Constant(length) => length,
        _ => lengths.value(at(seed.length).bits(0)),
    } as usize;
    put_value(at(seed.bytes), length, named_number(key, workload), field, out);
}

/// The name of the record that null servers answer with, whatever they are asked for: of hashed key 0.
pub fn null_name() -> String {
    format!("user{}", fnv_hash(0))
}

/// The hundred bytes of a field of that record, as they would have been written.
pub fn null_value(field: u32) -> Vec<u8> {
    let mut value = Vec::new();
    let random = ValueSeed::new(0).bytes.at(0).at(u64::from(field)).at(0);
    put_value(random, 100, fnv_hash(0), field, &mut value);
    value
}

#[inline]
fn put_value(random: Random, length: usize, number: u64, field: u32, out: &mut Vec<u8>) {
    let mark = &twelve_characters(random.bits(0))[..mark_length(length)];
    let rest = rest_of_value(mark, length, number, field);
    let end = out.len() + length;
    out.extend_from_slice(mark);
    let behind = out.len();
    out.resize(behind + (end - behind).next_multiple_of(MARK_BYTES), 0);
    for (chunk, draw) in out[behind..].chunks_exact_mut(MARK_BYTES).zip(0..) {
        chunk.copy_from_slice(&twelve_characters(output(rest, draw)));
    }
    out.truncate(end);
}

/// Whether `value` is one that `write_value` has written for the field of the key whose name has that number, with whatever seed and
/// version. A wrong byte of n passes with a probability of about 2^-(2.6 n), from 24 bytes on less.
pub fn check_value(number: u64, field: u32, value: &[u8], workload: &Ycsb) -> bool {
    let most = workload.field_length as usize;
    let least = match workload.field_length_distribution {
        LengthDistribution::Constant => most,
        _ => workload.min_field_length as usize,
    };
    if !(least..=most).contains(&value.len()) {
        return false;
    }
    let (mark, written) = value.split_at(mark_length(value.len()));
    let rest = rest_of_value(mark, value.len(), number, field);
    let whole = written.chunks_exact(MARK_BYTES);
    let last = twelve_characters(output(rest, whole.len() as u64));
    last.starts_with(whole.remainder())
        && whole
            .zip(0..)
            .all(|(chunk, draw)| twelve_characters(output(rest, draw)) == *chunk)
}

/// Whether `value` is right for the field of a row that the operation reads: the version that it expects of its own field, if it
/// expects one; else as `check_value` says.
pub fn is_right(seed: ValueSeed, read: &Operation, number: u64, field: u32, value: &[u8], workload: &Ycsb) -> bool {
    if read.expects == 0 || field != read.field {
        return check_value(number, field, value, workload);
    }
    let mut expected = Vec::new();
    write_value(seed, read.key, field, read.expects, workload, &mut expected);
    expected == value
}

fn mark_length(length: usize) -> usize {
    MARK_BYTES.min(length / 2)
}

/// The seed of what follows a mark.
#[inline]
fn rest_of_value(mark: &[u8], length: usize, number: u64, field: u32) -> u64 {
    let mut bytes = [0; 16];
    bytes[..mark.len()].copy_from_slice(mark);
    bytes[MARK_BYTES..].copy_from_slice(&(length as u32).to_le_bytes());
    let [first, second] = [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte])));
    output(first ^ number, second ^ u64::from(field))
}

#[inline]
fn twelve_characters(bits: u64) -> [u8; MARK_BYTES] {
    let word = u128::from(six_characters(bits as u32)) | u128::from(six_characters((bits >> 32) as u32)) << 48;
    let mut characters = [0; MARK_BYTES];
    // One copy: bytes by themselves are written one by one.
    characters.copy_from_slice(&word.to_le_bytes()[..MARK_BYTES]);
    characters
}

/// Six characters from 32 bits, with the ranges that YCSB gives each position; the first is the lowest byte.
#[inline]
pub fn six_characters(bits: u32) -> u64 {
    // Of every place the bits from five times its number on, in a byte of their own; places 3 to 5 as 0 to 2, three bytes on.
    let bits = u64::from(bits);
    let halves = bits & 0x1_ffff | bits >> 15 << 24;
    [0x1f, 0x3f << 8, 0x5f << 16]
        .into_iter()
        .zip(0..)
        .fold(0x2020_2020_2020, |word, (mask, place)| {
            word + (halves << (3 * place) & (mask | mask << 24))
        })
}
