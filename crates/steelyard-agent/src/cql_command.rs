//! `cql`: send statements and print their rows as JSON, for people and for the conductor.

use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::json;
use steelyard_channel::{ClientTls, Deadline};
use steelyard_client::blocking_connection::{Access, BlockingConnection, Credentials};
use steelyard_client::error::ConnectionError;
use steelyard_cql::response::Rows;
use steelyard_cql::{ColumnSpec, Compression, Consistency, Value};
use steelyard_wire::{Tls, Verify};

use crate::cql_json::Written;
use crate::cql_watch::{self, Wanted};
use crate::exit::{Exit, UNREACHABLE};
use crate::seconds::{interval, within};
use crate::wall_clock::WallClock;

const SHORTEST_TIMEOUT_S: f64 = 0.001;
const LONGEST_TIMEOUT_S: f64 = 86_400.0;
/// Text that is kept before it is printed. An answer that is shorter is printed whole or not at all.
const PRINTED_BYTES: usize = 1 << 20;

#[derive(clap::Args)]
pub struct Arguments {
    /// The node to query. May be repeated: the first that is not away.
    #[arg(long, value_name = "ADDRESS:PORT", required = true)]
    contact: Vec<String>,
    /// Longest time for the connection with its handshake, and for each answer, its printing included.
    #[arg(long, default_value_t = 10.0, value_parser = timeout)]
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
    /// Execute all statements again at every whole multiple of this many seconds, over one connection: a line of JSON each
    /// time, until standard output is closed.
    #[arg(long, value_name = "S", value_parser = interval)]
    every: Option<f64>,
    /// A statement of which one is executed per interval, in turn. May be repeated; answers follow those of the others.
    #[arg(long, value_name = "STATEMENT", requires = "every")]
    in_turn: Vec<String>,
    /// A column that counts: lines have its increase per second in its place. May be repeated.
    #[arg(long, value_name = "COLUMN", requires = "every")]
    rate: Vec<String>,
    /// Leave out rows whose text in this column begins so. May be repeated.
    #[arg(long, value_name = "COLUMN=BEGINNING", requires = "every", value_parser = beginning)]
    without: Vec<(String, String)>,
    /// Statements, executed one after another; the first that fails is the last.
    #[arg(required_unless_present = "in_turn")]
    statements: Vec<String>,
}

#[derive(clap::Args)]
struct Encryption {
    /// Trusted certificate authorities (PEM); default: those of this machine.
    #[arg(long, value_name = "FILE", requires = "tls")]
    tls_ca: Option<String>,
    /// Certificate of this client (PEM).
    #[arg(long, value_name = "FILE", requires = "tls")]
    tls_certificate: Option<String>,
    /// Its key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls")]
    tls_key: Option<String>,
    /// Which parts of the node's certificate are checked: full, chain (all but the name), none.
    #[arg(long, value_name = "WHAT", default_value = "full", value_parser = verify, requires = "tls")]
    tls_verify: Verify,
    /// Name that the certificate must have; default: the contact's.
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

fn timeout(text: &str) -> Result<f64, String> {
    within(text, SHORTEST_TIMEOUT_S..=LONGEST_TIMEOUT_S)
}

fn beginning(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .filter(|(column, beginning)| !column.is_empty() && !beginning.is_empty())
        .map(|(column, beginning)| (column.to_owned(), beginning.to_owned()))
        .ok_or_else(|| "allowed: COLUMN=BEGINNING".to_owned())
}

fn level(name: &str) -> Result<Consistency, String> {
    let names = Consistency::ALL_LEVELS.map(Consistency::name).join(", ");
    Consistency::from_name(name).ok_or_else(|| format!("allowed: {names}"))
}

/// One JSON line per statement, or with `--every` one per interval. Exit codes: 1 when the server refuses a statement, 3 when it cannot be reached.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let timeout = Duration::from_secs_f64(arguments.timeout_s);
    let access = arguments.access().map_err(|error| unreachable(&error))?;
    let mut connection =
        BlockingConnection::open_first(&arguments.contact, &access, timeout).map_err(|error| unreachable(&error))?;
    if let Some(interval_s) = arguments.every {
        let wanted = Wanted {
            clock: WallClock::from_environment()?,
            interval_s,
            timeout,
            consistency: arguments.consistency,
            in_turn: arguments.in_turn.len(),
            rates: arguments.rate.clone(),
            without: arguments.without.clone(),
        };
        let reopen = || BlockingConnection::open_first(&arguments.contact, &access, timeout);
        let statements: Vec<&str> = arguments
            .statements
            .iter()
            .chain(&arguments.in_turn)
            .map(String::as_str)
            .collect();
        return Ok(cql_watch::run(connection, reopen, &statements, &wanted)?);
    }
    let mut out = io::stdout().lock();
    for statement in &arguments.statements {
        let deadline = Deadline::new(connection.contact(), timeout);
        match connection.query(statement, arguments.consistency) {
            Ok(None) => writeln!(out, "{}", json!({"rows": []}))?,
            Ok(Some(rows)) => print(rows, &mut out, &deadline)?,
            Err(ConnectionError::Server { code, message, .. }) => {
                writeln!(out, "{}", json!({"error": {"code": code, "message": message}}))?;
                return Err(Exit {
                    code: 1,
                    message,
                    reported: true,
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
        message: format!("{error}\n{}", error.hint()),
        reported: false,
    }
    .into()
}

/// Prints rows as one line, each as it is read: they may be more than memory holds as JSON.
fn print(mut rows: Rows<'_>, out: impl Write, deadline: &Deadline) -> Result<(), Box<dyn Error>> {
    let mut line = Line {
        out,
        text: Vec::new(),
        deadline,
    };
    let columns: Vec<&str> = rows.columns.iter().map(|column| column.name.as_str()).collect();
    write!(line, "{{\"columns\":{},\"rows\":[", json!(columns))?;
    for number in 0..rows.count {
        let values = rows
            .row()
            .map_err(|source| unreachable(&ConnectionError::broken(deadline.contact(), source)))?;
        if number > 0 {
            line.write_all(b",")?;
        }
        serde_json::to_writer(
            &mut line,
            &Object {
                columns: &rows.columns,
                values: &values,
            },
        )
        .map_err(|error| match deadline.left() {
            Err(over) => unreachable(&over.into()),
            Ok(_) => error.into(),
        })?;
    }
    line.write_all(b"]}\n")?;
    Ok(line.flush()?)
}

/// A row as an object of JSON.
struct Object<'a> {
    columns: &'a [ColumnSpec],
    values: &'a [Value<'a>],
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = self.columns.iter().map(|column| &column.name);
        serializer.collect_map(names.zip(self.values.iter().map(Written)))
    }
}

/// A line that is being printed: within a bounded memory, and not beyond the deadline. What was not flushed is not printed.
struct Line<'a, W> {
    out: W,
    text: Vec<u8>,
    deadline: &'a Deadline,
}

impl<W: Write> Write for Line<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.deadline.left().is_err() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.text.extend_from_slice(bytes);
        if self.text.len() >= PRINTED_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.text)?;
        self.text.clear();
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consistency_and_time_out_are_checked() {
        assert_eq!(level("local_quorum"), Ok(Consistency::LocalQuorum));
        assert!(level("MOST").unwrap_err().contains("LOCAL_QUORUM"));
        assert!(timeout("0").is_err() && timeout("x").is_err() && timeout("0.5").is_ok());
    }
}
