//! The null server: answers every statement of a load at once, so that the ceiling of a load generator can be measured. Every
//! record exists, with what YCSB's key 0 would hold, and it is the primary.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use steelyard_channel::answering::{self, Answered};
use steelyard_workload::ycsb::{null_name, null_value};

use crate::messages::{code, header, put, put_text, put_value, text};

const READY: &[u8] = b"Z\0\0\0\x05I";
/// The type of all columns.
const TEXT_OID: u32 = 25;

/// Listens and serves, on one thread, until the kernel refuses; one statement after the other, each after `service`. Calls
/// `listening` with the bound address.
///
/// # Errors
///
/// What the kernel says.
pub fn serve(listen: SocketAddr, service: Duration, listening: impl FnOnce(SocketAddr)) -> io::Result<()> {
    answering::serve(listen, |address| {
        listening(address);
        move |session: &mut Session, input: &[u8], out: &mut Vec<u8>| {
            let (mut used, mut closes) = (0, false);
            while let Some(bytes) = session.next(&input[used..])? {
                let message = &input[used..used + bytes];
                if message[0] == b'E' && !service.is_zero() {
                    thread::sleep(service);
                }
                closes |= session.answer(message, out)?;
                used += bytes;
            }
            Ok(Answered { used, closes })
        }
    })
}

/// What is answered to a statement.
struct Statement {
    columns: Vec<u8>,
    rows: Vec<u8>,
}

/// A connection.
#[derive(Default)]
struct Session {
    has_begun: bool,
    statements: HashMap<Vec<u8>, Statement>,
    /// The name of the statement that is bound.
    bound: Vec<u8>,
}

fn broken() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

impl Session {
    /// How many bytes the first message has, if all of it has come.
    fn next(&self, input: &[u8]) -> io::Result<Option<usize>> {
        let bytes = if self.has_begun {
            header(input).map_err(|_| broken())?.map(|(_, bytes)| bytes)
        } else {
            // The first message has no kind.
            let length = input.first_chunk().map(|length| u32::from_be_bytes(*length));
            match length {
                Some(length) if !(8..10_000).contains(&length) => return Err(broken()),
                length => length.map(|length| length as usize),
            }
        };
        Ok(bytes.filter(|bytes| *bytes <= input.len()))
    }

    /// Appends the answer to a message; whether that is the last. Errors: it is none.
    fn answer(&mut self, message: &[u8], out: &mut Vec<u8>) -> io::Result<bool> {
        if !self.has_begun {
            return self.begin(message, out);
        }
        let mut body = &message[5..];
        match message[0] {
            b'P' => {
                let (name, sql) = text(&mut body).zip(text(&mut body)).ok_or_else(broken)?;
                let statement = Statement::of(&String::from_utf8_lossy(sql));
                self.statements.insert(name.to_vec(), statement);
                out.extend_from_slice(b"1\0\0\0\x04");
            }
            b'B' => {
                let (_, name) = text(&mut body).zip(text(&mut body)).ok_or_else(broken)?;
                self.bound.clear();
                self.bound.extend_from_slice(name);
                out.extend_from_slice(b"2\0\0\0\x04");
            }
            b'D' => out.extend_from_slice(&self.bound()?.columns),
            b'E' => out.extend_from_slice(&self.bound()?.rows),
            b'S' => out.extend_from_slice(READY),
            b'C' => out.extend_from_slice(b"3\0\0\0\x04"),
            b'H' => {}
            b'Q' => {
                out.extend_from_slice(b"I\0\0\0\x04");
                out.extend_from_slice(READY);
            }
            b'X' => return Ok(true),
            _ => return Err(broken()),
        }
        Ok(false)
    }

    fn begin(&mut self, message: &[u8], out: &mut Vec<u8>) -> io::Result<bool> {
        let code = message[4..].first_chunk().map(|code| u32::from_be_bytes(*code));
        match code {
            Some(code::TLS | code::GSS) => out.push(b'N'),
            Some(code::VERSION) => {
                self.has_begun = true;
                put(Some(b'R'), out, |out| out.extend_from_slice(&[0; 4]));
                for (name, value) in [
                    ("server_version", "null"),
                    ("in_hot_standby", "off"),
                    ("client_encoding", "UTF8"),
                ] {
                    put(Some(b'S'), out, |out| {
                        put_text(name.as_bytes(), out);
                        put_text(value.as_bytes(), out);
                    });
                }
                out.extend_from_slice(READY);
            }
            // A request to cancel.
            _ => return Ok(true),
        }
        Ok(false)
    }

    fn bound(&self) -> io::Result<&Statement> {
        self.statements.get(&self.bound).ok_or_else(broken)
    }
}

impl Statement {
    fn of(sql: &str) -> Self {
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        let first = sql.split(' ').next().unwrap_or_default();
        let names = sql.strip_prefix("SELECT ").and_then(|rest| rest.split(" FROM ").next());
        let Some(names) = names.map(|names| names.split(", ").collect::<Vec<_>>()) else {
            put(Some(b'n'), &mut columns, |_| {});
            let tag = if first == "INSERT" {
                "INSERT 0 1".to_owned()
            } else {
                format!("{first} 1")
            };
            put(Some(b'C'), &mut rows, |out| put_text(tag.as_bytes(), out));
            return Self { columns, rows };
        };
        let count = (names.len() as u16).to_be_bytes();
        put(Some(b'T'), &mut columns, |out| {
            out.extend_from_slice(&count);
            for name in &names {
                put_text(name.as_bytes(), out);
                // No table's column, of any length, as text.
                out.extend_from_slice(&[0; 6]);
                out.extend_from_slice(&TEXT_OID.to_be_bytes());
                out.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
            }
        });
        put(Some(b'D'), &mut rows, |out| {
            out.extend_from_slice(&count);
            for name in &names {
                let field = name.strip_prefix("field").and_then(|number| number.parse().ok());
                let value = field.map_or_else(|| null_name().into_bytes(), null_value);
                put_value(out, |out| out.extend_from_slice(&value));
            }
        });
        put(Some(b'C'), &mut rows, |out| put_text(b"SELECT 1", out));
        Self { columns, rows }
    }
}
