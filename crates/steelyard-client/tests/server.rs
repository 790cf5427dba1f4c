//! Hand-written servers: frames in, answers out.

use std::net::TcpStream;

use steelyard_cql::request::Request;
use steelyard_cql::{ColumnSpec, ColumnType, Frame, HEADER_LENGTH, Header, Opcode, put_null, put_string};
pub use steelyard_testing::server::Server as Listening;

/// Starts a server. `answer` appends the answer to each request of a connection; false closes the connection. After `accepts`
/// connections it listens no more.
pub fn start(
    accepts: usize,
    answer: impl Fn(&TcpStream, &Header, &Request<'_>, &mut Vec<u8>) -> bool + Send + Sync + 'static,
) -> Listening {
    let address = "127.0.0.1:0".parse().unwrap();
    Listening::start(address, accepts, move |stream, input, out| {
        let Some(header) = Frame::header(input).unwrap() else {
            return Some(0);
        };
        let end = header.frame_length();
        if input.len() < end {
            return Some(0);
        }
        let request = Request::decode(&header, &input[HEADER_LENGTH..end]).unwrap();
        answer(stream, &header, &request, out).then_some(end)
    })
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
