//! Hand-written servers: statements in, answers out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steelyard_postgresql::messages::{header, put, put_text, put_value, text};
pub use steelyard_testing::server::Server;

/// What a server says to a login.
pub const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x01\0\0\0\x01";

/// The name of the statement that asks the primary for its replicas.
pub const REPLICAS: &str = "replicas";

/// The primary. `answer` is given the names of statements (s0 reads, s1 updates, s2 inserts, s3 scans, or `REPLICAS`) and appends
/// what comes between that they are bound and that the server is ready; false closes the connection.
pub fn start(answer: impl Fn(&str, &mut Vec<u8>) -> bool + Send + Sync + 'static) -> Server {
    start_at("127.0.0.1:0".parse().unwrap(), WELCOME, Arc::default(), answer)
}

/// A server that is a replica as long as that is set.
pub fn start_at(
    address: SocketAddr,
    login: &'static [u8],
    is_replica: Arc<AtomicBool>,
    answer: impl Fn(&str, &mut Vec<u8>) -> bool + Send + Sync + 'static,
) -> Server {
    Server::start(address, usize::MAX, move |_, input, out| {
        let Some(end) = end_of_request(input) else {
            return Some(0);
        };
        match input[0] {
            0 => out.extend_from_slice(login),
            b'P' => out.extend_from_slice(b"1\0\0\0\x04"),
            b'B' => {
                let mut body = &input[6..];
                let name = std::str::from_utf8(text(&mut body).unwrap()).unwrap();
                out.extend_from_slice(b"2\0\0\0\x04");
                if !answer(name, out) {
                    return None;
                }
            }
            b'Q' => {
                answer(REPLICAS, out);
            }
            _ => {}
        }
        if matches!(input[0], 0 | b'B' | b'Q' | b'S') && !out.ends_with(b"\0R") {
            put(Some(b'S'), out, |out| {
                put_text(b"in_hot_standby", out);
                let standby: &[u8] = if is_replica.load(Ordering::Relaxed) {
                    b"on"
                } else {
                    b"off"
                };
                put_text(standby, out);
            });
            out.extend_from_slice(b"Z\0\0\0\x05I");
        }
        Some(end)
    })
}

/// Where the first request ends: with a bound statement go what executes it and what ends its group.
fn end_of_request(input: &[u8]) -> Option<usize> {
    let end = |from: usize| {
        let (_, bytes) = header(input.get(from..)?).unwrap()?;
        (from + bytes <= input.len()).then_some(from + bytes)
    };
    match input.first()? {
        0 => {
            let length = u32::from_be_bytes(*input.first_chunk()?) as usize;
            (length <= input.len()).then_some(length)
        }
        b'B' => end(end(end(0)?)?),
        _ => end(0),
    }
}

/// Appends that a statement has ended well, with a row if it reads.
pub fn done(name: &str, out: &mut Vec<u8>) {
    let tag = match name {
        "s1" => "UPDATE 1",
        "s2" => "INSERT 0 1",
        _ => "SELECT 1",
    };
    if tag == "SELECT 1" {
        row(Some("value"), out);
    }
    put(Some(b'C'), out, |out| put_text(tag.as_bytes(), out));
}

/// Appends a row of one value; `None`: null.
pub fn row(value: Option<&str>, out: &mut Vec<u8>) {
    put(Some(b'D'), out, |out| {
        out.extend_from_slice(&[0, 1]);
        match value {
            Some(value) => put_value(out, |out| out.extend_from_slice(value.as_bytes())),
            None => out.extend_from_slice(&[0xff; 4]),
        }
    });
}

/// Appends an error.
pub fn error(code: &str, out: &mut Vec<u8>) {
    put(Some(b'E'), out, |out| {
        out.extend_from_slice(format!("SERROR\0C{code}\0Mmade up\0\0").as_bytes());
    });
}
