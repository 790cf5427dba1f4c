//! Constants: JSON values as the bytes of a CQL type.

use std::net::IpAddr;

use serde_json::Value as Json;
use steelyard_cql::{put_big_integer, put_bytes, put_null, put_signed_vint, put_unsigned_vint};

use super::cql_type::{CqlType, Native};
use steelyard_workload::OrderError;

/// The bytes of a value; None is null. Errors: a value that is none of the type's.
pub fn bytes(cql_type: &CqlType, value: &Json) -> Result<Option<Vec<u8>>, OrderError> {
    if value.is_null() {
        return Ok(None);
    }
    let mut out = Vec::new();
    let allowed = format!("{cql_type}: {}", notation(cql_type));
    put(cql_type, value, &mut out).ok_or_else(|| OrderError::new("value", value, allowed))?;
    Ok(Some(out))
}

fn notation(cql_type: &CqlType) -> &'static str {
    match cql_type {
        CqlType::Native(native) => match native {
            Native::Blob => "a text of hexadecimal digits after 0x",
            Native::Boolean => "true, false",
            Native::Text | Native::Ascii => "a text",
            Native::Inet => "a text with an address",
            Native::Uuid | Native::TimeUuid => "a text such as 01234567-89ab-4def-8123-456789abcdef",
            Native::Date => "days since 1970, a text such as 2024-02-29",
            Native::Time => "nanoseconds since midnight, a text such as 12:34:56.789",
            Native::Timestamp => "milliseconds since 1970, a text such as 2024-02-29T12:34:56.789Z",
            Native::Duration => "nanoseconds, a text such as 1mo2d3h4m5s6ms7us8ns",
            Native::Decimal => "a number, a text such as -12.345",
            Native::Float | Native::Double => "a number, NaN, Infinity, -Infinity",
            _ => "a whole number in its range",
        },
        CqlType::List(_) | CqlType::Set(_) => "a list of values",
        CqlType::Vector(..) => "a list with one value per dimension",
        CqlType::Map(..) => "a list of pairs, an object where the keys are texts",
        CqlType::Tuple(_) => "a list of its members",
    }
}

fn put(cql_type: &CqlType, value: &Json, out: &mut Vec<u8>) -> Option<()> {
    match cql_type {
        CqlType::Native(native) => native_bytes(*native, value, out),
        CqlType::List(of) | CqlType::Set(of) => {
            let items = value.as_array()?;
            out.extend_from_slice(&(items.len() as u32).to_be_bytes());
            items.iter().try_for_each(|item| put_within(of, item, out))
        }
        CqlType::Map(of_keys, of_values) => {
            let pairs: Vec<(Json, &Json)> = match value {
                Json::Object(object) => object
                    .iter()
                    .map(|(key, value)| (Json::from(key.as_str()), value))
                    .collect(),
                _ => value
                    .as_array()?
                    .iter()
                    .map(|pair| match pair.as_array()?.as_slice() {
                        [key, value] => Some((key.clone(), value)),
                        _ => None,
                    })
                    .collect::<Option<_>>()?,
            };
            out.extend_from_slice(&(pairs.len() as u32).to_be_bytes());
            pairs.iter().try_for_each(|(key, value)| {
                put_within(of_keys, key, out)?;
                put_within(of_values, value, out)
            })
        }
        CqlType::Tuple(members) => {
            let items = value.as_array()?;
            if items.len() != members.len() {
                return None;
            }
            members.iter().zip(items).try_for_each(|(member, item)| match item {
                Json::Null => {
                    put_null(out);
                    Some(())
                }
                item => put_within(member, item, out),
            })
        }
        CqlType::Vector(of, dimensions) => {
            let items = value.as_array()?;
            if items.len() != *dimensions as usize {
                return None;
            }
            items.iter().try_for_each(|item| {
                let mut element = Vec::new();
                put(of, item, &mut element)?;
                if of.fixed_length().is_none() {
                    put_unsigned_vint(out, element.len() as u64);
                }
                out.extend_from_slice(&element);
                Some(())
            })
        }
    }
}

fn put_within(cql_type: &CqlType, value: &Json, out: &mut Vec<u8>) -> Option<()> {
    let mut element = Vec::new();
    put(cql_type, value, &mut element)?;
    put_bytes(out, &element);
    Some(())
}

fn native_bytes(native: Native, value: &Json, out: &mut Vec<u8>) -> Option<()> {
    let text = value.as_str();
    match native {
        Native::Text => out.extend_from_slice(text?.as_bytes()),
        Native::Ascii => out.extend_from_slice(text.filter(|text| text.is_ascii())?.as_bytes()),
        Native::Blob => out.extend_from_slice(&hexadecimal(text?.strip_prefix("0x")?)?),
        Native::Boolean => out.push(u8::from(value.as_bool()?)),
        Native::Float => out.extend_from_slice(&(real(value)? as f32).to_be_bytes()),
        Native::Double => out.extend_from_slice(&real(value)?.to_be_bytes()),
        Native::VarInt => put_big_integer(out, integer(value)?),
        Native::Decimal => {
            let written = value.to_string();
            let (unscaled, scale) = decimal(text.unwrap_or(&written))?;
            out.extend_from_slice(&scale.to_be_bytes());
            put_big_integer(out, unscaled);
        }
        Native::Uuid | Native::TimeUuid => {
            let bytes = hexadecimal(&text?.replace('-', ""))?;
            if bytes.len() != 16 || (native == Native::TimeUuid && bytes[6] >> 4 != 1) {
                return None;
            }
            out.extend_from_slice(&bytes);
        }
        Native::Inet => match text?.parse().ok()? {
            IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
        },
        Native::Duration => {
            let (months, days, nanoseconds) = match text {
                Some(text) => duration(text)?,
                None => (0, 0, value.as_i64()?),
            };
            [months, days, nanoseconds]
                .into_iter()
                .for_each(|part| put_signed_vint(out, part));
        }
        Native::Date | Native::Time | Native::Timestamp => {
            let number = match (native, text) {
                (_, None) => value.as_i64()?,
                (Native::Date, Some(text)) => date(text)?,
                (Native::Time, Some(text)) => time(text)?,
                (_, Some(text)) => timestamp(text)?,
            };
            whole(native, number, out)?;
        }
        _ => whole(native, value.as_i64()?, out)?,
    }
    Some(())
}

fn whole(native: Native, number: i64, out: &mut Vec<u8>) -> Option<()> {
    let held = native.range().is_none_or(|(min, max)| (min..=max).contains(&number));
    held.then(|| super::encode::put_whole(native, number, &super::encode::Digits::default(), out))
}

fn real(value: &Json) -> Option<f64> {
    match value.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None => value.as_f64(),
    }
}

fn integer(value: &Json) -> Option<i128> {
    match value {
        Json::String(text) => text.parse().ok(),
        other => other.to_string().parse().ok(),
    }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    if text.len() % 2 != 0 || !text.is_ascii() {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

/// Unscaled value and scale of a number as it is written.
fn decimal(text: &str) -> Option<(i128, i32)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if fraction.starts_with(['+', '-']) {
        return None;
    }
    let unscaled = format!("{whole}{fraction}").parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    Some((unscaled, places.checked_sub(exponent)?))
}

/// Dates end in the year 5881580; what lies far beyond would overflow.
const LAST_YEAR: i64 = 6_000_000;

/// Days since 1970 of year-month-day (Hinnant, "chrono-compatible low-level date algorithms", days_from_civil).
fn date(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if year > LAST_YEAR || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Nanoseconds since midnight of hour:minute:second, with or without a fraction.
fn time(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    if !(0..24).contains(&hours) || !(0..60).contains(&minutes) || !(0..60).contains(&seconds) || fraction.len() > 9 {
        return None;
    }
    let nanoseconds: i64 = format!("{fraction:0<9}").parse().ok()?;
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + nanoseconds)
}

/// Milliseconds since 1970 of an ISO 8601 date and time in UTC.
fn timestamp(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (day, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00"));
    Some(date(day)? * 86_400_000 + time(clock)? / 1_000_000)
}

/// Months, days and nanoseconds of a duration as CQL writes it.
fn duration(text: &str) -> Option<(i64, i64, i64)> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (mut months, mut days, mut nanoseconds) = (0_i64, 0_i64, 0_i64);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let number = sign * number.parse::<i64>().ok()?;
        let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        rest = after;
        let (sum, factor) = match unit {
            "y" => (&mut months, 12),
            "mo" => (&mut months, 1),
            "w" => (&mut days, 7),
            "d" => (&mut days, 1),
            "h" => (&mut nanoseconds, 3_600_000_000_000),
            "m" => (&mut nanoseconds, 60_000_000_000),
            "s" => (&mut nanoseconds, 1_000_000_000),
            "ms" => (&mut nanoseconds, 1_000_000),
            "us" | "µs" => (&mut nanoseconds, 1000),
            "ns" => (&mut nanoseconds, 1),
            _ => return None,
        };
        *sum = sum.checked_add(number.checked_mul(factor)?)?;
    }
    Some((months, days, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn bytes_are_those_of_a_client_library() {
        let text = include_str!("../../../../tests/fixtures/cql/values.json");
        let fixture: Json = serde_json::from_str(text).unwrap();
        let cases = fixture["cases"].as_array().unwrap();
        assert!(cases.len() > 80);
        for case in cases {
            let cql_type = CqlType::parse(case[0].as_str().unwrap()).unwrap();
            let encoded = bytes(&cql_type, &case[1]).unwrap().unwrap();
            assert_eq!(hex(&encoded), case[2].as_str().unwrap(), "{case}");
        }
    }

    #[test]
    fn what_is_no_value_of_the_type_is_refused() {
        let cases = [
            ("int", "\"1\""),
            ("int", "2147483648"),
            ("tinyint", "-129"),
            ("int", "1.5"),
            ("ascii", "\"ü\""),
            ("blob", "\"ff\""),
            ("blob", "\"0xf\""),
            ("boolean", "1"),
            ("uuid", "\"0123\""),
            ("timeuuid", "\"01234567-89ab-4def-8123-456789abcdef\""),
            ("inet", "\"localhost\""),
            ("date", "\"2024-13-01\""),
            ("time", "\"24:00:00\""),
            ("time", "86400000000000"),
            ("timestamp", "\"yesterday\""),
            ("timestamp", "\"9223372036854775-01-01\""),
            ("duration", "\"1 day\""),
            ("duration", "\"\""),
            ("decimal", "\"1.2.3\""),
            ("decimal", "\"1.-2\""),
            ("varint", "1.5"),
            ("double", "\"much\""),
            ("list<int>", "1"),
            ("list<int>", "[null]"),
            ("map<int, int>", "[[1]]"),
            ("map<int, int>", "{\"1\": 1}"),
            ("tuple<int, int>", "[1]"),
            ("vector<int, 2>", "[1, 2, 3]"),
        ];
        for (cql_type, value) in cases {
            let error = bytes(
                &CqlType::parse(cql_type).unwrap(),
                &serde_json::from_str(value).unwrap(),
            )
            .unwrap_err();
            assert_eq!(error.field, "value", "{cql_type} {value}");
            assert!(error.problem.contains(&format!("allowed: {cql_type}")), "{error}");
        }
        assert_eq!(bytes(&CqlType::parse("int").unwrap(), &Json::Null), Ok(None));
    }
}
