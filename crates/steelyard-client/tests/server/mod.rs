//! The scaffold of hand-written servers: a listener, a thread for each connection, frames in, answers out.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use steelyard_cql::request::Request;
use steelyard_cql::{ColumnSpec, ColumnType, Frame, HEADER_LENGTH, Header, Opcode, put_null, put_string};

/// Appends the answer to a request of a connection; false closes the connection.
type Answer = dyn Fn(&TcpStream, &Header, &Request<'_>, &mut Vec<u8>) -> bool + Send + Sync;

/// A listening server; it accepts no more connections once this is dropped.
pub struct Listening {
    pub address: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // The listener waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

/// Starts a server. `answer` appends the answer to each request of a connection; false closes the connection. After `accepts`
/// connections nobody listens any more.
pub fn start(
    accepts: usize,
    answer: impl Fn(&TcpStream, &Header, &Request<'_>, &mut Vec<u8>) -> bool + Send + Sync + 'static,
) -> Listening {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let (closing, answer) = (Arc::clone(&ended), Arc::new(answer));
    thread::spawn(move || {
        for stream in listener.incoming().take(accepts) {
            if closing.load(Ordering::Relaxed) {
                return;
            }
            let answer = Arc::clone(&answer);
            thread::spawn(move || serve(stream.unwrap(), &*answer));
        }
    });
    Listening { address, ended }
}

fn serve(mut stream: TcpStream, answer: &Answer) {
    let (mut input, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let (mut out, mut at) = (Vec::new(), 0);
        while let Some(header) = Frame::header(&input[at..]).unwrap() {
            let end = at + header.frame_length();
            if input.len() < end {
                break;
            }
            let request = Request::decode(&header, &input[at + HEADER_LENGTH..end]).unwrap();
            if !answer(&stream, &header, &request, &mut out) {
                return;
            }
            at = end;
        }
        input.drain(..at);
        if stream.write_all(&out).is_err() {
            return;
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return,
            Ok(count) => input.extend_from_slice(&chunk[..count]),
        }
    }
}

/// A column of a table that does not matter.
pub fn column(name: &str, kind: ColumnType) -> ColumnSpec {
    ColumnSpec {
        keyspace: "system".into(),
        table: "t".into(),
        name: name.into(),
        kind,
    }
}

/// `AUTHENTICATE`: the class that wants a password.
pub fn authenticate(out: &mut Vec<u8>, header: &Header, class: &str) {
    Frame::response(out, header.version, header.stream, Opcode::Authenticate, |body| {
        put_string(body, class);
    });
}

/// `AUTH_SUCCESS`.
pub fn auth_success(out: &mut Vec<u8>, header: &Header) {
    Frame::response(out, header.version, header.stream, Opcode::AuthSuccess, put_null);
}
