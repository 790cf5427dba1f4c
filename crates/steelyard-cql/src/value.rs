//! Values of column types: enough to read every system table, and to write the answers of a simulated one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::primitive::utf8;
use crate::{CqlError, Reader, put_bytes, put_null, put_string};

/// Deepest nesting of types that is read (`list<frozen<list<...>>>`).
pub const MAX_DEPTH: usize = 32;
/// Most types that the columns of one description consist of, those within types included.
pub(crate) const MAX_TYPES: usize = 1 << 18;
/// Values that a row may have beyond its bytes: fields of user-defined types and tuples that were added after it was written
/// are null, and take no byte.
pub const SPARE_VALUES: usize = 1 << 16;

/// A column's type as result metadata names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A class that the protocol has no number for.
    Custom(String),
    /// `ascii`.
    Ascii,
    /// `bigint`.
    BigInt,
    /// `blob`.
    Blob,
    /// `boolean`.
    Boolean,
    /// `counter`.
    Counter,
    /// `decimal`.
    Decimal,
    /// `double`.
    Double,
    /// `float`.
    Float,
    /// `int`.
    Int,
    /// `timestamp`.
    Timestamp,
    /// `uuid`.
    Uuid,
    /// `text`, `varchar`.
    Text,
    /// `varint`.
    VarInt,
    /// `timeuuid`.
    TimeUuid,
    /// `inet`.
    Inet,
    /// `date`.
    Date,
    /// `time`.
    Time,
    /// `smallint`.
    SmallInt,
    /// `tinyint`.
    TinyInt,
    /// `duration`.
    Duration,
    /// `list<...>`.
    List(Box<ColumnType>),
    /// `map<..., ...>`.
    Map(Box<ColumnType>, Box<ColumnType>),
    /// `set<...>`.
    Set(Box<ColumnType>),
    /// A user-defined type.
    Udt {
        /// Keyspace of the type.
        keyspace: String,
        /// Name of the type.
        name: String,
        /// Its fields by name, in order.
        fields: Vec<(Arc<str>, ColumnType)>,
    },
    /// `tuple<...>`.
    Tuple(Vec<ColumnType>),
}

/// One column of a result or of a statement's bind markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Keyspace of the table.
    pub keyspace: Arc<str>,
    /// The table.
    pub table: Arc<str>,
    /// Name of the column.
    pub name: String,
    /// Its type.
    pub kind: ColumnType,
}

/// A value read from, or to be written into, a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// Of `ascii` and `text`.
    Text(&'a str),
    /// Of `blob`.
    Blob(&'a [u8]),
    /// Of `boolean`.
    Boolean(bool),
    /// Of `tinyint`.
    TinyInt(i8),
    /// Of `smallint`.
    SmallInt(i16),
    /// Of `int`.
    Int(i32),
    /// `bigint` and `counter`.
    BigInt(i64),
    /// Of `float`.
    Float(f32),
    /// Of `double`.
    Double(f64),
    /// `varint`, as far as 128 bits reach; longer ones are given as `Blob`.
    VarInt(i128),
    /// unscaled / 10^scale; longer ones than 128 bits are given as `Blob`.
    Decimal {
        /// The digits, as a whole number.
        unscaled: i128,
        /// How many of the digits are behind the decimal point.
        scale: i32,
    },
    /// Milliseconds since the epoch.
    Timestamp(i64),
    /// Days since the epoch.
    Date(i64),
    /// Nanoseconds since midnight.
    Time(i64),
    /// Of `duration`: three parts that do not convert into each other.
    Duration {
        /// Months.
        months: i64,
        /// Days.
        days: i64,
        /// Nanoseconds.
        nanoseconds: i64,
    },
    /// Of `uuid` and `timeuuid`.
    Uuid([u8; 16]),
    /// Of `inet`.
    Inet(IpAddr),
    /// `list` and `set`.
    List(Vec<Value<'a>>),
    /// Of `map`, in the order of the bytes.
    Map(Vec<(Value<'a>, Value<'a>)>),
    /// Of a user-defined type: fields by name.
    Udt(Vec<(Arc<str>, Value<'a>)>),
    /// Of `tuple`.
    Tuple(Vec<Value<'a>>),
}

impl ColumnType {
    /// Reads an `[option]` of metadata.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, CqlError> {
        Self::decode_within(reader, &mut { MAX_TYPES }, 0)
    }

    /// As `decode`; `left`: types that may still come, of all columns.
    pub(crate) fn decode_within(reader: &mut Reader<'_>, left: &mut usize, depth: usize) -> Result<Self, CqlError> {
        if depth > MAX_DEPTH {
            return Err(CqlError::TooDeep { limit: MAX_DEPTH });
        }
        take_one(left, "types of columns", MAX_TYPES)?;
        let mut inner = |reader: &mut Reader<'_>| Self::decode_within(reader, left, depth + 1);
        Ok(match reader.short()? {
            0x00 => match reader.string()? {
                "org.apache.cassandra.db.marshal.DurationType" => Self::Duration,
                class => Self::Custom(class.to_owned()),
            },
            0x01 => Self::Ascii,
            0x02 => Self::BigInt,
            0x03 => Self::Blob,
            0x04 => Self::Boolean,
            0x05 => Self::Counter,
            0x06 => Self::Decimal,
            0x07 => Self::Double,
            0x08 => Self::Float,
            0x09 => Self::Int,
            0x0B => Self::Timestamp,
            0x0C => Self::Uuid,
            0x0D => Self::Text,
            0x0E => Self::VarInt,
            0x0F => Self::TimeUuid,
            0x10 => Self::Inet,
            0x11 => Self::Date,
            0x12 => Self::Time,
            0x13 => Self::SmallInt,
            0x14 => Self::TinyInt,
            0x15 => Self::Duration,
            0x20 => Self::List(Box::new(inner(reader)?)),
            0x21 => {
                let key = inner(reader)?;
                Self::Map(Box::new(key), Box::new(inner(reader)?))
            }
            0x22 => Self::Set(Box::new(inner(reader)?)),
            0x30 => {
                let keyspace = reader.string()?.to_owned();
                let name = reader.string()?.to_owned();
                let count = reader.short_count(4, "fields of a type")?;
                let fields = (0..count)
                    .map(|_| Ok((reader.string()?.into(), inner(reader)?)))
                    .collect::<Result<_, _>>()?;
                Self::Udt { keyspace, name, fields }
            }
            0x31 => {
                let count = reader.short_count(2, "members of a tuple")?;
                Self::Tuple((0..count).map(|_| inner(reader)).collect::<Result<_, _>>()?)
            }
            other => {
                return Err(CqlError::Unknown {
                    what: "column type",
                    number: other.into(),
                });
            }
        })
    }

    /// Appends the `[option]`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let number: u16 = match self {
            Self::Custom(_) | Self::Duration => 0x00,
            Self::Ascii => 0x01,
            Self::BigInt => 0x02,
            Self::Blob => 0x03,
            Self::Boolean => 0x04,
            Self::Counter => 0x05,
            Self::Decimal => 0x06,
            Self::Double => 0x07,
            Self::Float => 0x08,
            Self::Int => 0x09,
            Self::Timestamp => 0x0B,
            Self::Uuid => 0x0C,
            Self::Text => 0x0D,
            Self::VarInt => 0x0E,
            Self::TimeUuid => 0x0F,
            Self::Inet => 0x10,
            Self::Date => 0x11,
            Self::Time => 0x12,
            Self::SmallInt => 0x13,
            Self::TinyInt => 0x14,
            Self::List(_) => 0x20,
            Self::Map(..) => 0x21,
            Self::Set(_) => 0x22,
            Self::Udt { .. } => 0x30,
            Self::Tuple(_) => 0x31,
        };
        out.extend_from_slice(&number.to_be_bytes());
        match self {
            Self::Custom(class) => put_string(out, class),
            Self::Duration => put_string(out, "org.apache.cassandra.db.marshal.DurationType"),
            Self::List(item) | Self::Set(item) => item.encode(out),
            Self::Map(key, value) => {
                key.encode(out);
                value.encode(out);
            }
            Self::Udt { keyspace, name, fields } => {
                put_string(out, keyspace);
                put_string(out, name);
                out.extend_from_slice(&(fields.len() as u16).to_be_bytes());
                for (field, kind) in fields {
                    put_string(out, field);
                    kind.encode(out);
                }
            }
            Self::Tuple(items) => {
                out.extend_from_slice(&(items.len() as u16).to_be_bytes());
                for item in items {
                    item.encode(out);
                }
            }
            _ => {}
        }
    }
}

impl<'a> Value<'a> {
    /// The value that a cell of type `kind` holds; `None` is null. Errors: a length that the type cannot have.
    pub fn decode(kind: &ColumnType, cell: Option<&'a [u8]>) -> Result<Self, CqlError> {
        let mut left = cell.map_or(0, <[u8]>::len) + SPARE_VALUES;
        Self::decode_within(kind, cell, &mut left)
    }

    /// As `decode`; `left`: values that may still come, of the row.
    pub(crate) fn decode_within(kind: &ColumnType, cell: Option<&'a [u8]>, left: &mut usize) -> Result<Self, CqlError> {
        take_one(left, "values beyond the bytes of their row", SPARE_VALUES)?;
        let Some(bytes) = cell else { return Ok(Self::Null) };
        Ok(match kind {
            ColumnType::Ascii | ColumnType::Text => Self::Text(utf8(bytes, "a text value")?),
            ColumnType::Blob | ColumnType::Custom(_) => Self::Blob(bytes),
            ColumnType::Boolean => Self::Boolean(fixed::<1>(bytes, "boolean")?[0] != 0),
            ColumnType::TinyInt => Self::TinyInt(i8::from_be_bytes(fixed(bytes, "tinyint")?)),
            ColumnType::SmallInt => Self::SmallInt(i16::from_be_bytes(fixed(bytes, "smallint")?)),
            ColumnType::Int => Self::Int(i32::from_be_bytes(fixed(bytes, "int")?)),
            ColumnType::BigInt | ColumnType::Counter => Self::BigInt(i64::from_be_bytes(fixed(bytes, "bigint")?)),
            ColumnType::Float => Self::Float(f32::from_be_bytes(fixed(bytes, "float")?)),
            ColumnType::Double => Self::Double(f64::from_be_bytes(fixed(bytes, "double")?)),
            ColumnType::Timestamp => Self::Timestamp(i64::from_be_bytes(fixed(bytes, "timestamp")?)),
            ColumnType::Date => Self::Date(i64::from(u32::from_be_bytes(fixed(bytes, "date")?)) - (1 << 31)),
            ColumnType::Time => Self::Time(i64::from_be_bytes(fixed(bytes, "time")?)),
            ColumnType::Uuid | ColumnType::TimeUuid => Self::Uuid(fixed(bytes, "uuid")?),
            ColumnType::Inet => Self::Inet(match bytes.len() {
                4 => IpAddr::V4(Ipv4Addr::from(fixed::<4>(bytes, "inet")?)),
                _ => IpAddr::V6(Ipv6Addr::from(fixed::<16>(bytes, "inet")?)),
            }),
            ColumnType::VarInt => big_integer(bytes).map_or(Self::Blob(bytes), Self::VarInt),
            ColumnType::Decimal => {
                let mut reader = Reader::new(bytes);
                let scale = reader.int()?;
                big_integer(reader.rest()).map_or(Self::Blob(bytes), |unscaled| Self::Decimal { unscaled, scale })
            }
            ColumnType::Duration => {
                let mut rest = bytes;
                let (months, days) = (signed_vint(&mut rest)?, signed_vint(&mut rest)?);
                Self::Duration {
                    months,
                    days,
                    nanoseconds: signed_vint(&mut rest)?,
                }
            }
            ColumnType::List(item) | ColumnType::Set(item) => {
                let mut reader = Reader::new(bytes);
                let count = reader.count(4, "elements of a list or set")?;
                Self::List(
                    (0..count)
                        .map(|_| Self::decode_within(item, reader.bytes()?, left))
                        .collect::<Result<_, _>>()?,
                )
            }
            ColumnType::Map(key, value) => {
                let mut reader = Reader::new(bytes);
                let count = reader.count(8, "entries of a map")?;
                let pair = |_| {
                    Ok((
                        Self::decode_within(key, reader.bytes()?, left)?,
                        Self::decode_within(value, reader.bytes()?, left)?,
                    ))
                };
                Self::Map((0..count).map(pair).collect::<Result<_, _>>()?)
            }
            // A value written before a field was added ends early: the rest is null.
            ColumnType::Udt { fields, .. } => {
                let mut reader = Reader::new(bytes);
                let field = |(name, kind): &(Arc<str>, ColumnType)| {
                    Ok((Arc::clone(name), Self::decode_next(kind, &mut reader, left)?))
                };
                Self::Udt(fields.iter().map(field).collect::<Result<_, _>>()?)
            }
            ColumnType::Tuple(items) => {
                let mut reader = Reader::new(bytes);
                Self::Tuple(
                    items
                        .iter()
                        .map(|kind| Self::decode_next(kind, &mut reader, left))
                        .collect::<Result<_, _>>()?,
                )
            }
        })
    }

    fn decode_next(kind: &ColumnType, reader: &mut Reader<'a>, left: &mut usize) -> Result<Self, CqlError> {
        let cell = if reader.is_empty() { None } else { reader.bytes()? };
        Self::decode_within(kind, cell, left)
    }

    /// Appends the value as `[bytes]`, with its length.
    pub fn put(&self, out: &mut Vec<u8>) {
        if *self == Self::Null {
            return put_null(out);
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        self.body(out);
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    fn body(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Text(text) => out.extend_from_slice(text.as_bytes()),
            Self::Blob(bytes) => out.extend_from_slice(bytes),
            Self::Boolean(value) => out.push(u8::from(*value)),
            Self::TinyInt(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::SmallInt(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::Int(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::BigInt(value) | Self::Timestamp(value) | Self::Time(value) => {
                out.extend_from_slice(&value.to_be_bytes())
            }
            Self::Float(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::Double(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::VarInt(value) => put_big_integer(out, *value),
            Self::Decimal { unscaled, scale } => {
                out.extend_from_slice(&scale.to_be_bytes());
                put_big_integer(out, *unscaled);
            }
            Self::Date(days) => out.extend_from_slice(&((days + (1 << 31)) as u32).to_be_bytes()),
            Self::Duration {
                months,
                days,
                nanoseconds,
            } => {
                for part in [months, days, nanoseconds] {
                    put_signed_vint(out, *part);
                }
            }
            Self::Uuid(bytes) => out.extend_from_slice(bytes),
            Self::Inet(IpAddr::V4(address)) => out.extend_from_slice(&address.octets()),
            Self::Inet(IpAddr::V6(address)) => out.extend_from_slice(&address.octets()),
            Self::List(items) => {
                out.extend_from_slice(&(items.len() as u32).to_be_bytes());
                items.iter().for_each(|item| item.put(out));
            }
            Self::Map(pairs) => {
                out.extend_from_slice(&(pairs.len() as u32).to_be_bytes());
                for (key, value) in pairs {
                    key.put(out);
                    value.put(out);
                }
            }
            Self::Udt(fields) => fields.iter().for_each(|(_, value)| value.put(out)),
            Self::Tuple(items) => items.iter().for_each(|item| item.put(out)),
        }
    }

    /// Appends text as a value; the short way for the commonest type.
    pub fn put_text(out: &mut Vec<u8>, text: &str) {
        put_bytes(out, text.as_bytes());
    }
}

fn take_one(left: &mut usize, what: &'static str, limit: usize) -> Result<(), CqlError> {
    *left = left.checked_sub(1).ok_or(CqlError::TooMany { what, limit })?;
    Ok(())
}

fn fixed<const N: usize>(bytes: &[u8], kind: &'static str) -> Result<[u8; N], CqlError> {
    bytes.try_into().map_err(|_| CqlError::Value {
        kind,
        bytes: bytes.len(),
    })
}

/// Two's complement, big end first, up to 128 bits.
fn big_integer(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    let mut wide = [if first & 0x80 != 0 { 0xFF } else { 0 }; 16];
    let start = 16_usize.checked_sub(bytes.len())?;
    wide[start..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

/// The shortest two's complement that keeps the sign, as Java's `BigInteger.toByteArray`.
pub fn put_big_integer(out: &mut Vec<u8>, value: i128) {
    let bytes = value.to_be_bytes();
    let fill = if value < 0 { 0xFF } else { 0 };
    let needless = |at: &usize| bytes[*at] == fill && (bytes[*at + 1] ^ fill) & 0x80 == 0;
    let start = (0..15).take_while(needless).count();
    out.extend_from_slice(&bytes[start..]);
}

/// `[vint]`: zigzag for the sign.
fn signed_vint(rest: &mut &[u8]) -> Result<i64, CqlError> {
    let mut reader = Reader::new(rest);
    let value = unsigned_vint(&mut reader)?;
    *rest = reader.rest();
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// `[unsigned vint]`: the number of leading ones of the first byte is the number of bytes that follow.
pub fn unsigned_vint(reader: &mut Reader<'_>) -> Result<u64, CqlError> {
    let first = reader.byte()?;
    let extra = first.leading_ones() as usize;
    let mut value = if extra >= 8 {
        0
    } else {
        u64::from(first & (0xFF >> extra))
    };
    for byte in reader.take(extra, "[vint]")? {
        value = (value << 8) | u64::from(*byte);
    }
    Ok(value)
}

/// Appends a `[vint]`.
pub fn put_signed_vint(out: &mut Vec<u8>, value: i64) {
    put_unsigned_vint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends an `[unsigned vint]`.
pub fn put_unsigned_vint(out: &mut Vec<u8>, value: u64) {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    let extra = ((bits - 1) / 7).min(8);
    let mut bytes = [0; 9];
    bytes[1..].copy_from_slice(&value.to_be_bytes());
    let start = 8 - extra;
    let mark = if extra == 0 { 0 } else { (0xFF_u16 << (8 - extra)) as u8 };
    bytes[start] |= mark;
    out.extend_from_slice(&bytes[start..]);
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
