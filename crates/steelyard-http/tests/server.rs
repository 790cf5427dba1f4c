//! Hand-written servers: requests in, answers out.

use std::net::SocketAddr;

pub use steelyard_testing::server::Server;

/// A server of which `answer` appends the answer to a request, which is given whole; false closes the connection. What asks
/// whether this is a server of HTTP is answered already.
pub fn start(answer: impl Fn(&str, &mut Vec<u8>) -> bool + Send + Sync + 'static) -> Server {
    start_at("127.0.0.1:0".parse().unwrap(), answer)
}

pub fn start_at(address: SocketAddr, answer: impl Fn(&str, &mut Vec<u8>) -> bool + Send + Sync + 'static) -> Server {
    Server::start(address, usize::MAX, move |_, input, out| {
        let Some(end) = end_of_request(input) else {
            return Some(0);
        };
        let request = std::str::from_utf8(&input[..end]).unwrap();
        if request.starts_with("HEAD ") {
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\nServer: hand-written\r\n\r\n");
            return Some(end);
        }
        answer(request, out).then_some(end)
    })
}

/// Where the first request ends, with its body.
fn end_of_request(input: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(input);
    let head = text.find("\r\n\r\n")? + 4;
    let length = text[..head]
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let end = head + length.map_or(0, |length| length.parse().unwrap());
    (end <= input.len()).then_some(end)
}

/// Appends a whole answer.
pub fn put(status: &str, body: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes());
    out.extend_from_slice(body);
}
