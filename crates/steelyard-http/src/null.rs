//! The null server: answers every request of a load at once, so that the ceiling of a load generator can be measured. A document
//! of any length is at `/LENGTH.bin`; to etcd's gateway every range is that of YCSB's key 0, with ten fields of a hundred bytes.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use steelyard_channel::answering::{self, Answered};
use steelyard_protocol::base64;
use steelyard_workload::requests::letters;
use steelyard_workload::ycsb::{null_name, null_value};

use crate::answer::{decimal, is_named, lines};

/// Most bytes of a document, of a request's head, and of its body.
const MAX_DOCUMENT_BYTES: usize = 16 << 20;
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_BODY_BYTES: u64 = 16 << 20;
const FIELDS: u32 = 10;

/// Listens and serves, on one thread, until the kernel refuses; one request after the other, each after `service`. Calls
/// `listening` with the bound address.
///
/// # Errors
///
/// What the kernel says.
pub fn serve(listen: SocketAddr, service: Duration, listening: impl FnOnce(SocketAddr)) -> io::Result<()> {
    answering::serve(listen, |address| {
        listening(address);
        let mut answers = Answers::new();
        move |(): &mut (), input: &[u8], out: &mut Vec<u8>| {
            let mut used = 0;
            while let Some(request) = Request::read(&input[used..])? {
                used += request.bytes;
                let closes = request.closes;
                if !service.is_zero() {
                    thread::sleep(service);
                }
                answers.put(&request, out);
                if closes {
                    return Ok(Answered { used, closes });
                }
            }
            Ok(Answered { used, closes: false })
        }
    })
}

/// A request, as far as it matters here.
struct Request<'a> {
    method: &'a [u8],
    path: &'a [u8],
    body: &'a [u8],
    /// Whether the connection ends with the answer: by default with HTTP/1.0.
    closes: bool,
    /// Whether a client of HTTP/1.0 has asked to keep the connection, and waits for the same word.
    keeps: bool,
    bytes: usize,
}

impl<'a> Request<'a> {
    /// The request that `input` begins with, if all of it has come. Errors: it is none.
    fn read(input: &'a [u8]) -> io::Result<Option<Self>> {
        let none = || io::Error::from(io::ErrorKind::InvalidData);
        let Some(end) = input.windows(4).position(|window| window == b"\r\n\r\n") else {
            return if input.len() > MAX_HEAD_BYTES {
                Err(none())
            } else {
                Ok(None)
            };
        };
        let head = end + 4;
        let mut lines = lines(&input[..end]);
        let mut words = lines.next().unwrap_or_default().split(|byte| *byte == b' ');
        let (method, path) = words.next().zip(words.next()).ok_or_else(none)?;
        let is_old = words.next() == Some(b"HTTP/1.0");
        let (mut length, mut closes) = (0, is_old);
        for line in lines {
            if is_named(line, "content-length") {
                length = decimal(line[15..].trim_ascii()).map_err(|_| none())?;
            } else if is_named(line, "connection") {
                let word = line[11..].trim_ascii();
                closes = word.eq_ignore_ascii_case(b"close") || is_old && !word.eq_ignore_ascii_case(b"keep-alive");
            }
        }
        if length > MAX_BODY_BYTES {
            return Err(none());
        }
        let bytes = head + length as usize;
        Ok(input.get(head..bytes).map(|body| Self {
            method,
            path,
            body,
            closes,
            keeps: is_old && !closes,
            bytes,
        }))
    }
}

/// What is answered, made once.
struct Answers {
    /// As long as the longest document that was asked for.
    letters: Vec<u8>,
    record: Vec<u8>,
    field: Vec<u8>,
}

impl Answers {
    fn new() -> Self {
        Self {
            letters: Vec::new(),
            record: range(FIELDS),
            field: range(1),
        }
    }

    fn put(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        let json = "application/json";
        match request.path {
            b"/v3/kv/range" => {
                let several = request.body.windows(9).any(|window| window == b"range_end");
                put(
                    request,
                    "200 OK",
                    json,
                    if several { &self.record } else { &self.field },
                    out,
                );
            }
            b"/v3/kv/put" => put(request, "200 OK", json, br#"{"header":{}}"#, out),
            b"/v3/kv/txn" => put(request, "200 OK", json, br#"{"header":{},"succeeded":true}"#, out),
            b"/version" => put(
                request,
                "200 OK",
                json,
                br#"{"etcdserver":"null","etcdcluster":"null"}"#,
                out,
            ),
            path => match length(path) {
                Some(length) => {
                    if self.letters.len() < length {
                        self.letters = letters(length);
                    }
                    put(
                        request,
                        "200 OK",
                        "application/octet-stream",
                        &self.letters[..length],
                        out,
                    );
                }
                None => put(request, "404 Not Found", "text/plain", b"Allowed: /LENGTH.bin\n", out),
            },
        }
    }
}

/// The length of the document at that path.
fn length(path: &[u8]) -> Option<usize> {
    let digits = path.strip_prefix(b"/")?.strip_suffix(b".bin")?;
    let length = usize::try_from(decimal(digits).ok()?).ok()?;
    (length <= MAX_DOCUMENT_BYTES).then_some(length)
}

/// Appends an answer.
fn put(request: &Request<'_>, status: &str, kind: &str, body: &[u8], out: &mut Vec<u8>) {
    let connection = match (request.closes, request.keeps) {
        (true, _) => "Connection: close\r\n",
        (_, true) => "Connection: keep-alive\r\n",
        _ => "",
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nServer: null\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{connection}\r\n"
    );
    out.extend_from_slice(head.as_bytes());
    if request.method != b"HEAD" {
        out.extend_from_slice(body);
    }
}

/// The answer to a range of so many keys.
fn range(keys: u32) -> Vec<u8> {
    let mut out = br#"{"header":{"revision":"2"},"kvs":["#.to_vec();
    for field in 0..keys {
        let comma = if field > 0 { "," } else { "" };
        out.extend_from_slice(format!(r#"{comma}{{"key":""#).as_bytes());
        base64::put(format!("{}/field{field}", null_name()).as_bytes(), &mut out);
        out.extend_from_slice(br#"","create_revision":"2","mod_revision":"2","version":"1","value":""#);
        base64::put(&null_value(field), &mut out);
        out.extend_from_slice(b"\"}");
    }
    out.extend_from_slice(format!(r#"],"count":"{keys}"}}"#).as_bytes());
    out
}
