//! The least that a client of one connection can do: so many commands in one write, and reads until all answers have come.
//! It looks at no byte of them, so its processor time is the kernel's share of such an exchange.
//!
//! `floor HOST:PORT IN_FLIGHT SECONDS resp|postgresql`, of a server whose answers are all equally long; prints `did N`.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What a connection begins with, and a read.
struct Words {
    begin: Vec<u8>,
    read: Vec<u8>,
}

fn of_resp() -> Words {
    let read = b"*2\r\n$7\r\nHGETALL\r\n$24\r\nuser00000000000000000000\r\n".to_vec();
    Words {
        begin: read.clone(),
        read,
    }
}

/// A statement is prepared; a read binds and executes it, in a group of its own.
fn of_postgresql() -> Words {
    let message = |kind: &[u8], body: &[u8]| [kind, &(body.len() as u32 + 4).to_be_bytes(), body].concat();
    let startup = message(b"", b"\0\x03\0\0user\0steelyard\0database\0steelyard\0\0");
    let fields: Vec<String> = (0..10).map(|number| format!("field{number}")).collect();
    let statement = format!("s0\0SELECT {} FROM usertable WHERE y_id = $1\0\0\0", fields.join(", "));
    let prepare = message(b"P", statement.as_bytes());
    let bind = message(b"B", b"\0s0\0\0\0\0\x01\0\0\0\x18user00000000000000000000\0\0");
    let (execute, sync) = (message(b"E", b"\0\0\0\0\0"), message(b"S", b""));
    Words {
        begin: [startup, prepare, sync.clone()].concat(),
        read: [bind, execute, sync].concat(),
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, contact, in_flight, seconds, protocol] = arguments.as_slice() else {
        return Err(Error::other("floor HOST:PORT IN_FLIGHT SECONDS resp|postgresql"));
    };
    let words = if protocol == "postgresql" {
        of_postgresql()
    } else {
        of_resp()
    };
    let in_flight: usize = in_flight.parse().map_err(Error::other)?;
    let lasts = Duration::from_secs_f64(seconds.parse().map_err(Error::other)?);
    let mut stream = TcpStream::connect(contact)?;
    stream.set_nodelay(true)?;
    let mut room = vec![0; 256 << 10];
    stream.write_all(&words.begin)?;
    answer_bytes(&mut stream, &mut room)?;
    stream.write_all(&words.read)?;
    let answer_bytes = answer_bytes(&mut stream, &mut room)?;
    let commands = words.read.repeat(in_flight);
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

/// The length of an answer: what has come when nothing more comes.
fn answer_bytes(stream: &mut TcpStream, room: &mut [u8]) -> Result<usize> {
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
