//! Bytes of CQL values as JSON that people can read.

use serde_json::{Map, Value as Json, json};
use steelyard_cql::{ColumnType, Reader, Value};
use steelyard_workload::program::{CqlType, Native};

use crate::cql::to_json;

/// A value's bytes by its type; None is null. What is no such value is shown as hexadecimal digits.
pub fn readable(kind: &CqlType, bytes: Option<&[u8]>) -> Json {
    let Some(bytes) = bytes else { return Json::Null };
    decoded(kind, bytes).unwrap_or_else(|| to_json(&Value::Blob(bytes)))
}

fn decoded(kind: &CqlType, bytes: &[u8]) -> Option<Json> {
    let mut reader = Reader::new(bytes);
    let within = |kind: &CqlType, reader: &mut Reader<'_>| reader.bytes().ok().map(|bytes| readable(kind, bytes));
    match kind {
        CqlType::Native(native) => Value::decode(&column_type(*native), Some(bytes))
            .ok()
            .map(|value| to_json(&value)),
        CqlType::List(of) | CqlType::Set(of) => {
            let count = reader.int().ok()?;
            (0..count).map(|_| within(of, &mut reader)).collect()
        }
        CqlType::Map(key, value) => {
            let count = reader.int().ok()?;
            let pair = |_| {
                let key = match within(key, &mut reader)? {
                    Json::String(text) => text,
                    other => other.to_string(),
                };
                Some((key, within(value, &mut reader)?))
            };
            (0..count)
                .map(pair)
                .collect::<Option<Map<String, Json>>>()
                .map(Json::Object)
        }
        CqlType::Tuple(members) => members.iter().map(|member| within(member, &mut reader)).collect(),
        CqlType::Vector(of, count) => {
            let length = of.fixed_length();
            let dimension = |_| {
                let length = match length {
                    Some(length) => length,
                    None => steelyard_cql::unsigned_vint(&mut reader).ok()? as usize,
                };
                Some(readable(of, Some(reader.take(length, "vector").ok()?)))
            };
            (0..*count)
                .map(dimension)
                .collect::<Option<Vec<Json>>>()
                .map(|items| json!(items))
        }
    }
}

fn column_type(native: Native) -> ColumnType {
    match native {
        Native::Ascii => ColumnType::Ascii,
        Native::BigInt => ColumnType::BigInt,
        Native::Blob => ColumnType::Blob,
        Native::Boolean => ColumnType::Boolean,
        Native::Counter => ColumnType::Counter,
        Native::Date => ColumnType::Date,
        Native::Decimal => ColumnType::Decimal,
        Native::Double => ColumnType::Double,
        Native::Duration => ColumnType::Duration,
        Native::Float => ColumnType::Float,
        Native::Inet => ColumnType::Inet,
        Native::Int => ColumnType::Int,
        Native::SmallInt => ColumnType::SmallInt,
        Native::Text => ColumnType::Text,
        Native::Time => ColumnType::Time,
        Native::Timestamp => ColumnType::Timestamp,
        Native::TimeUuid => ColumnType::TimeUuid,
        Native::TinyInt => ColumnType::TinyInt,
        Native::Uuid => ColumnType::Uuid,
        Native::VarInt => ColumnType::VarInt,
    }
}
