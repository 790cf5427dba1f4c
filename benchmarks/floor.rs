//! The least that a client of one connection can do: so many commands in one write, and reads until all answers have come.
//! It looks at no byte of them, so its processor time is the kernel's share of such an exchange.
//!
//! `floor HOST:PORT IN_FLIGHT SECONDS`, of a server whose answers are all equally long; prints `did N`.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const COMMAND: &[u8] = b"*2\r\n$7\r\nHGETALL\r\n$24\r\nuser00000000000000000000\r\n";

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let [_, contact, in_flight, seconds] = words.as_slice() else {
        return Err(Error::other("floor HOST:PORT IN_FLIGHT SECONDS"));
    };
    let in_flight: usize = in_flight.parse().map_err(Error::other)?;
    let lasts = Duration::from_secs_f64(seconds.parse().map_err(Error::other)?);
    let mut stream = TcpStream::connect(contact)?;
    stream.set_nodelay(true)?;
    let mut room = vec![0; 256 << 10];
    stream.write_all(COMMAND)?;
    let answer_bytes = first_answer(&mut stream, &mut room)?;
    let commands = COMMAND.repeat(in_flight);
    let (began, mut did) = (Instant::now(), 0);
    while began.elapsed() < lasts {
        stream.write_all(&commands)?;
        let mut left = in_flight * answer_bytes;
        while left > 0 {
            match stream.read(&mut room)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => left -= count,
            }
        }
        did += in_flight;
    }
    println!("did {did}");
    Ok(())
}

/// Its length: what has come when nothing more comes.
fn first_answer(stream: &mut TcpStream, room: &mut [u8]) -> Result<usize> {
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut bytes = 0;
    loop {
        match stream.read(room) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => bytes += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    stream.set_read_timeout(None)?;
    Ok(bytes)
}
