//! Numbers and texts as the bytes of CQL's native types (the protocol's specification, section 6).

use steelyard_cql::{put_big_integer, put_signed_vint};

use super::cql_type::Native;
use steelyard_workload::decimal::put_decimal;
use steelyard_workload::random::mix;
use steelyard_workload::ycsb_distributions::fnv_hash;

/// A day in nanoseconds: `time` ends before it.
const DAY_NS: i64 = 86_400_000_000_000;
/// 2^31: `date` counts from there.
const DATE_ORIGIN: i64 = 1 << 31;

/// How numbers are written in text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digits {
    /// Before the number.
    pub prefix: Vec<u8>,
    /// Fewest digits.
    pub fewest: usize,
}

/// Appends a whole number: as it is in numbers, milliseconds in timestamps, days in dates, nanoseconds in times and
/// durations, digits in text, eight bytes in blobs, odd and even in booleans, hashed in uuids. What a type cannot hold wraps.
pub fn put_whole(native: Native, value: i64, digits: &Digits, out: &mut Vec<u8>) {
    match native {
        Native::BigInt | Native::Counter | Native::Timestamp | Native::Blob => {
            out.extend_from_slice(&value.to_be_bytes());
        }
        Native::Int => out.extend_from_slice(&(value as i32).to_be_bytes()),
        Native::SmallInt => out.extend_from_slice(&(value as i16).to_be_bytes()),
        Native::TinyInt => out.extend_from_slice(&(value as i8).to_be_bytes()),
        Native::Boolean => out.push((value & 1) as u8),
        Native::Float => out.extend_from_slice(&(value as f32).to_be_bytes()),
        Native::Double => out.extend_from_slice(&(value as f64).to_be_bytes()),
        Native::Text | Native::Ascii => put_digits(value, digits, out),
        Native::Date => out.extend_from_slice(&(value.wrapping_add(DATE_ORIGIN) as u32).to_be_bytes()),
        Native::Time => out.extend_from_slice(&value.rem_euclid(DAY_NS).to_be_bytes()),
        Native::VarInt => put_big_integer(out, value.into()),
        Native::Decimal => {
            out.extend_from_slice(&0_i32.to_be_bytes());
            put_big_integer(out, value.into());
        }
        Native::Duration => {
            put_signed_vint(out, 0);
            put_signed_vint(out, 0);
            put_signed_vint(out, value);
        }
        Native::Inet => out.extend_from_slice(&(value as u32).to_be_bytes()),
        Native::Uuid => put_uuid(fnv_hash(value as u64), 4, out),
        Native::TimeUuid => put_uuid(fnv_hash(value as u64), 1, out),
    }
}

/// Appends a number with a fraction where the type has one, else without it.
pub fn put_real(native: Native, value: f64, digits: &Digits, out: &mut Vec<u8>) {
    match native {
        Native::Float => out.extend_from_slice(&(value as f32).to_be_bytes()),
        Native::Double => out.extend_from_slice(&value.to_be_bytes()),
        _ => put_whole(native, value as i64, digits, out),
    }
}

/// A version 4 or version 1 uuid of 64 bits.
pub fn put_uuid(bits: u64, version: u8, out: &mut Vec<u8>) {
    let (high, low) = (mix(bits), mix(!bits));
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&high.to_be_bytes());
    bytes[8..].copy_from_slice(&low.to_be_bytes());
    bytes[6] = (bytes[6] & 0x0F) | (version << 4);
    bytes[8] = (bytes[8] & 0x3F) | 0x80;
    out.extend_from_slice(&bytes);
}

fn put_digits(value: i64, digits: &Digits, out: &mut Vec<u8>) {
    out.extend_from_slice(&digits.prefix);
    if value < 0 {
        out.push(b'-');
    }
    put_decimal(value.unsigned_abs(), digits.fewest, out);
}
