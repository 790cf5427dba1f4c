//! `linktest serve`: echoes probes and swallows streams on one port, until standard input ends.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::protocol::{ANSWER_BYTES, Answer, PROBE_BYTES, STREAM_HEADER_BYTES, left_out, stream_length, turn};
use crate::exit::{Exit, REFUSED};

/// Longest wait for the beginning of a stream, and for the end of a client that has its answer.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_STREAMS: usize = 64;
const BUFFER_BYTES: usize = 256 << 10;
const PAUSE: Duration = Duration::from_millis(10);

#[derive(clap::Args)]
pub struct Arguments {
    /// IP address to listen on.
    #[arg(long)]
    address: IpAddr,
    /// Port for datagrams and streams; 0 selects a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

/// Prints `{"listening": true, "port": N}` and serves. Exit code 2 if it cannot listen there.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let at = SocketAddr::new(arguments.address, arguments.port);
    let cannot = |error: io::Error| Exit::boxed(REFUSED, format!("linktest: cannot listen at {at}: {error}"));
    let listener = TcpListener::bind(at).map_err(cannot)?;
    let at = listener.local_addr()?;
    let socket = UdpSocket::bind(at).map_err(cannot)?;
    thread::spawn(move || echo(&socket));
    thread::spawn(move || accept(&listener));
    let mut out = io::stdout();
    writeln!(out, "{}", json!({"listening": true, "port": at.port()})).and_then(|()| out.flush())?;
    let mut ignored = [0; 4096];
    let mut input = io::stdin().lock();
    while !matches!(input.read(&mut ignored), Ok(0) | Err(_)) {}
    Ok(())
}

fn echo(socket: &UdpSocket) {
    let mut datagram = [0; 2 * PROBE_BYTES];
    loop {
        match socket.recv_from(&mut datagram) {
            Ok((bytes, from)) if turn(&mut datagram[..bytes]) => {
                // Whoever asked has gone: that is no reason to stop.
                let _ = socket.send_to(&datagram[..bytes], from);
            }
            Ok(_) => {}
            // Such as that an earlier echo met a closed port.
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

fn accept(listener: &TcpListener) {
    let streams = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        if streams.fetch_add(1, Ordering::Relaxed) >= MOST_STREAMS {
            streams.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let streams = Arc::clone(&streams);
        thread::spawn(move || {
            // What fails here, the client sees as a stream without an answer.
            let _ = swallow(stream);
            streams.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Reads a stream for as long as it says, and answers how much came.
fn swallow(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut header = [0; STREAM_HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let length = stream_length(&header).ok_or(io::ErrorKind::InvalidData)?;
    let begun = Instant::now();
    let counted_from = begun + left_out(length);
    let end = begun + length;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut bytes = 0;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                let now = Instant::now();
                if now >= counted_from && now < end {
                    bytes += read as u64;
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let answer: [u8; ANSWER_BYTES] = Answer {
        bytes,
        time: length.saturating_sub(left_out(length)),
    }
    .to_bytes();
    stream.write_all(&answer)?;
    // Closing now, with bytes unread, would reset the connection before the answer is there.
    let end = Instant::now() + PATIENCE;
    stream.set_read_timeout(Some(PATIENCE))?;
    while Instant::now() < end && stream.read(&mut buffer)? > 0 {}
    Ok(())
}
