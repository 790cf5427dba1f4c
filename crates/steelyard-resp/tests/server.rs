//! Hand-written servers: commands in, answers out.

use std::net::SocketAddr;

use steelyard_resp::protocol::{Answer, Scanner};
pub use steelyard_testing::server::Server;

/// A server of which `answer` appends the answer to a command; false closes the connection.
pub fn start(answer: impl Fn(&[&[u8]], &mut Vec<u8>) -> bool + Send + Sync + 'static) -> Server {
    start_at("127.0.0.1:0".parse().unwrap(), answer)
}

pub fn start_at(
    address: SocketAddr,
    answer: impl Fn(&[&[u8]], &mut Vec<u8>) -> bool + Send + Sync + 'static,
) -> Server {
    Server::start(address, usize::MAX, move |_, input, out| {
        let Some(end) = Scanner::default().end(input).unwrap() else {
            return Some(0);
        };
        let command = Answer::read(&input[..end]).unwrap();
        let parts: Vec<&[u8]> = command.elements().iter().map(part).collect();
        answer(&parts, out).then_some(end)
    })
}

fn part<'a>(part: &Answer<'a>) -> &'a [u8] {
    match part {
        Answer::Bulk(Some(bytes)) => bytes,
        other => panic!("{other:?}"),
    }
}

/// Answers of a single server at the start of a connection; whether the command was one of those.
pub fn greet(parts: &[&[u8]], out: &mut Vec<u8>) -> bool {
    let answer: &[u8] = match parts[0] {
        b"PING" => b"+PONG\r\n",
        b"INFO" => b"$19\r\nredis_version:7.0\r\n\r\n",
        b"CLUSTER" => b"-ERR This instance has cluster support disabled\r\n",
        _ => return false,
    };
    out.extend_from_slice(answer);
    true
}
