//! `cql`: send statements and print their rows as JSON, for people and for the conductor.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use steelyard_channel::ClientTls;
use steelyard_client::blocking_connection::{Access, BlockingConnection, Credentials};
use steelyard_client::error::ConnectionError;
use steelyard_cql::response::Rows;
use steelyard_cql::{Compression, Consistency, CqlError, Value};
use steelyard_wire::{Tls, Verify};

use crate::{Exit, UNREACHABLE};

#[derive(clap::Args)]
pub struct Arguments {
    /// The node to ask.
    #[arg(long, value_name = "ADDRESS:PORT")]
    contact: String,
    /// Longest wait for the connection, and for each answer.
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    timeout_s: f64,
    /// How many replicas must answer.
    #[arg(long, default_value = "ONE", value_parser = level)]
    consistency: Consistency,
    /// Compress frames: lz4 or snappy.
    #[arg(long, value_parser = compression)]
    compression: Option<Compression>,
    /// Encrypt the connection.
    #[arg(long)]
    tls: bool,
    #[command(flatten)]
    encryption: Encryption,
    /// Statements, executed one after another; the first that fails is the last.
    #[arg(required = true)]
    statements: Vec<String>,
}

#[derive(clap::Args)]
struct Encryption {
    /// Authorities that are trusted (PEM); this machine's without it.
    #[arg(long, value_name = "FILE", requires = "tls")]
    tls_ca: Option<String>,
    /// Certificate of this client (PEM).
    #[arg(long, value_name = "FILE", requires = "tls")]
    tls_certificate: Option<String>,
    /// Its key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls")]
    tls_key: Option<String>,
    /// What of the node's certificate is checked: full, chain (all but the name), none.
    #[arg(long, value_name = "WHAT", default_value = "full", value_parser = verify, requires = "tls")]
    tls_verify: Verify,
    /// Name that the certificate must bear; the contact's without it.
    #[arg(long, value_name = "NAME", requires = "tls")]
    tls_name: Option<String>,
}

impl Arguments {
    fn access(&self) -> Result<Access, ConnectionError> {
        let tls = self.tls.then(|| Tls {
            ca: self.encryption.tls_ca.clone(),
            certificate: self.encryption.tls_certificate.clone(),
            key: self.encryption.tls_key.clone(),
            verify: self.encryption.tls_verify,
            name: self.encryption.tls_name.clone(),
        });
        Ok(Access {
            credentials: Credentials::from_environment(),
            tls: tls.as_ref().map(ClientTls::new).transpose()?,
            compression: self.compression,
        })
    }
}

fn compression(name: &str) -> Result<Compression, String> {
    let names = Compression::ALL.map(Compression::name).join(", ");
    Compression::from_name(name).ok_or_else(|| format!("allowed: {names}"))
}

fn verify(name: &str) -> Result<Verify, String> {
    match name {
        "full" => Ok(Verify::Full),
        "chain" => Ok(Verify::Chain),
        "none" => Ok(Verify::None),
        _ => Err("allowed: full, chain, none".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|seconds| *seconds > 0.0 && *seconds <= 86_400.0)
        .ok_or_else(|| "allowed: above 0, up to 86400".to_owned())
}

fn level(name: &str) -> Result<Consistency, String> {
    let names = Consistency::ALL_LEVELS.map(Consistency::name).join(", ");
    Consistency::from_name(name).ok_or_else(|| format!("allowed: {names}"))
}

/// One JSON line a statement. Exit codes: 1 when the server refuses a statement, 3 when it cannot be reached.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    let timeout = Duration::from_secs_f64(arguments.timeout_s);
    let mut connection = arguments
        .access()
        .and_then(|access| BlockingConnection::open(&arguments.contact, &access, timeout))
        .map_err(|error| unreachable(&error))?;
    for statement in &arguments.statements {
        match connection.query(statement, arguments.consistency) {
            Ok(None) => writeln!(out, "{}", json!({"rows": []}))?,
            Ok(Some(rows)) => writeln!(out, "{}", table(rows)?)?,
            Err(ConnectionError::Server { code, message, .. }) => {
                writeln!(out, "{}", json!({"error": {"code": code, "message": message}}))?;
                return Err(Exit {
                    code: 1,
                    message,
                    said: true,
                }
                .into());
            }
            Err(error) => return Err(unreachable(&error)),
        }
    }
    Ok(())
}

fn unreachable(error: &ConnectionError) -> Box<dyn Error> {
    Exit {
        code: UNREACHABLE,
        message: format!("{error} ({})", error.hint()),
        said: false,
    }
    .into()
}

fn table(mut rows: Rows<'_>) -> Result<Json, CqlError> {
    let mut listed = Vec::new();
    for _ in 0..rows.count {
        let values = rows.row()?;
        let row: Map<String, Json> = rows
            .columns
            .iter()
            .zip(&values)
            .map(|(column, value)| (column.name.clone(), to_json(value)))
            .collect();
        listed.push(Json::Object(row));
    }
    let columns: Vec<&str> = rows.columns.iter().map(|column| column.name.as_str()).collect();
    Ok(json!({"columns": columns, "rows": listed}))
}

/// The value as JSON has it. Integers beyond 64 bits, decimals, times, addresses and identifiers become strings, bytes
/// become hexadecimal after 0x; a map becomes an object, its keys written as strings.
pub(crate) fn to_json(value: &Value<'_>) -> Json {
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
            .map(|(name, value)| (name.clone(), to_json(value)))
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

    #[test]
    fn consistency_and_time_out_are_checked() {
        assert_eq!(level("local_quorum"), Ok(Consistency::LocalQuorum));
        assert!(level("MOST").unwrap_err().contains("LOCAL_QUORUM"));
        assert!(seconds("0").is_err() && seconds("x").is_err() && seconds("0.5").is_ok());
    }
}
