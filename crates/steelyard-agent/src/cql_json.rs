//! CQL values as JSON that people can read: decoded values, and bytes with their type.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};
use steelyard_client::program::{CqlType, Native};
use steelyard_cql::{ColumnType, Reader, Value};

/// A value's bytes by its type; None is null. What is no such value is shown as hexadecimal digits.
pub fn bytes_to_json(cql_type: &CqlType, bytes: Option<&[u8]>) -> Json {
    let Some(bytes) = bytes else { return Json::Null };
    decoded(cql_type, bytes).unwrap_or_else(|| to_json(&Value::Blob(bytes)))
}

fn decoded(cql_type: &CqlType, bytes: &[u8]) -> Option<Json> {
    let mut reader = Reader::new(bytes);
    let within =
        |cql_type: &CqlType, reader: &mut Reader<'_>| reader.bytes().ok().map(|bytes| bytes_to_json(cql_type, bytes));
    match cql_type {
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
                Some(bytes_to_json(of, Some(reader.take(length, "vector").ok()?)))
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

/// A value that is written as `to_json` has it, piece by piece: names of fields, which come once for all rows, may be many
/// times as long as the bytes of the values.
pub struct Written<'a>(pub &'a Value<'a>);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::List(items) | Value::Tuple(items) => serializer.collect_seq(items.iter().map(Written)),
            Value::Udt(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (&**name, Written(value)))),
            Value::Map(pairs) => {
                serializer.collect_map(pairs.iter().map(|(key, value)| (key_text(key), Written(value))))
            }
            other => to_json(other).serialize(serializer),
        }
    }
}

/// The value as JSON has it. Integers beyond 64 bits, decimals, times, addresses and identifiers become strings, bytes
/// become hexadecimal after 0x; a map becomes an object, its keys written as strings.
pub fn to_json(value: &Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Text(text) => json!(text),
        Value::Blob(bytes) => json!(format!("0x{}", hex(bytes))),
        Value::Boolean(value) => json!(value),
        Value::TinyInt(value) => json!(value),
        Value::SmallInt(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::BigInt(value) => json!(value),
        Value::Float(value) => json!(value),
        Value::Double(value) => json!(value),
        Value::VarInt(value) => i64::try_from(*value).map_or_else(|_| json!(value.to_string()), |value| json!(value)),
        Value::Decimal { unscaled, scale } => json!(decimal(*unscaled, *scale)),
        Value::Timestamp(ms) => json!(timestamp(*ms)),
        Value::Date(days) => json!(date(*days)),
        Value::Time(ns) => json!(time_of_day(*ns)),
        Value::Duration {
            months,
            days,
            nanoseconds,
        } => json!(format!("{months}mo{days}d{nanoseconds}ns")),
        Value::Uuid(bytes) => json!(uuid(bytes)),
        Value::Inet(address) => json!(address.to_string()),
        Value::List(items) | Value::Tuple(items) => Json::Array(items.iter().map(to_json).collect()),
        Value::Udt(fields) => fields
            .iter()
            .map(|(name, value)| (name.to_string(), to_json(value)))
            .collect(),
        Value::Map(pairs) => pairs
            .iter()
            .map(|(key, value)| (key_text(key), to_json(value)))
            .collect(),
    }
}

fn key_text(key: &Value<'_>) -> String {
    match to_json(key) {
        Json::String(text) => text,
        other => other.to_string(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn uuid(bytes: &[u8; 16]) -> String {
    let digits = hex(bytes);
    [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ]
    .join("-")
}

/// Most decimal places that are written out; more become an exponent.
const MAX_PLACES: usize = 1000;

/// unscaled / 10^scale, without rounding.
fn decimal(unscaled: i128, scale: i32) -> String {
    match usize::try_from(scale) {
        Ok(0) => unscaled.to_string(),
        Ok(places) if places <= MAX_PLACES => {
            let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = places + 1);
            let (whole, fraction) = digits.split_at(digits.len() - places);
            format!("{}{whole}.{fraction}", if unscaled < 0 { "-" } else { "" })
        }
        _ => format!("{unscaled}e{}", -i64::from(scale)),
    }
}

/// ISO 8601 in UTC, milliseconds since the epoch.
fn timestamp(ms: i64) -> String {
    let (days, rest) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (seconds, ms) = (rest / 1000, rest % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{}T{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z", date(days))
}

fn time_of_day(ns: i64) -> String {
    let seconds = ns / 1_000_000_000;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:09}", seconds % 60, ns % 1_000_000_000)
}

/// Days since the epoch as year-month-day in the proleptic Gregorian calendar (Hinnant, "chrono-compatible low-level date
/// algorithms", civil_from_days).
fn date(days: i64) -> String {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_dates_are_iso_8601() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(timestamp(1_709_208_000_123), "2024-02-29T12:00:00.123Z");
        assert_eq!(date(-719_468), "0000-03-01");
        assert_eq!(time_of_day(3_661_000_000_005), "01:01:01.000000005");
    }

    #[test]
    fn values_become_what_json_has() {
        let map = Value::Map(vec![(Value::Int(1), Value::List(vec![Value::Text("a"), Value::Null]))]);
        assert_eq!(to_json(&map), json!({"1": ["a", null]}));
        assert_eq!(to_json(&Value::Blob(&[0, 255])), json!("0x00ff"));
        assert_eq!(
            to_json(&Value::Uuid([0xAB; 16])),
            json!("abababab-abab-abab-abab-abababababab")
        );
        assert_eq!(to_json(&Value::VarInt(1 << 70)), json!("1180591620717411303424"));
        assert_eq!(
            to_json(&Value::Udt(vec![("x".into(), Value::Boolean(true))])),
            json!({"x": true})
        );
        assert_eq!(to_json(&Value::Double(f64::NAN)), Json::Null);
    }

    #[test]
    fn decimals_keep_all_their_digits() {
        let cases = [
            (12345, 2, "123.45"),
            (-5, 3, "-0.005"),
            (7, 0, "7"),
            (7, -2, "7e2"),
            (7, 2000, "7e-2000"),
        ];
        for (unscaled, scale, text) in cases {
            assert_eq!(decimal(unscaled, scale), text);
        }
    }
}
