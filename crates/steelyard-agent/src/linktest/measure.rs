//! `linktest measure`: probes first, while the path is idle; then one TCP stream; then waits until the path is empty again.

use std::cell::Cell;
use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_linger;
use serde_json::json;

use super::protocol::{ANSWER_BYTES, Answer, LONGEST, PROBE_BYTES, echoed, probe, stream_header};
use crate::exit::{Exit, UNREACHABLE};
use crate::seconds;

/// Most probes.
const MOST_PROBES: i64 = 100_000;
/// Probes that look whether anybody answers: the first one also finds the neighbour's hardware address.
const FIRST_PROBE_EVERY: Duration = Duration::from_millis(200);
/// Longest wait for a stream's answer after its end, behind what still waits in the queues of the path.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Longest wait until queues that a stream has filled are empty.
const EMPTY_LIMIT: Duration = Duration::from_secs(20);
/// Above the numbers of all probes whose time is measured.
const FIRST_LOOK: u64 = 1 << 63;
const CHUNK_BYTES: usize = 64 << 10;

#[derive(clap::Args)]
pub struct Arguments {
    /// IP address of the node that serves.
    #[arg(long)]
    address: IpAddr,
    /// Its port.
    #[arg(long)]
    port: u16,
    /// Length of the TCP stream; 0: none.
    #[arg(long, default_value = "2", value_name = "S", value_parser = stream_seconds)]
    seconds: Duration,
    /// Probes whose round trip is measured; 0: none.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=MOST_PROBES))]
    probes: u32,
    /// Time between probes: longer than a round trip keeps the path idle.
    #[arg(long, default_value_t = 5, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    interval_ms: u64,
    /// Longest wait for the first answer, for a connection, and for an echo after the last probe was sent.
    #[arg(long, default_value_t = 2000, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    timeout_ms: u64,
}

/// Prints one line of JSON. Exit code 3 if nobody answers.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let to = SocketAddr::new(arguments.address, arguments.port);
    let timeout = Duration::from_millis(arguments.timeout_ms);
    let silent = |what: &str| Exit::boxed(UNREACHABLE, format!("linktest: no answer from {to}: {what}"));
    let prober = Prober::connect(to).map_err(|error| silent(&error.to_string()))?;
    if prober.first_echo(timeout).is_none() {
        return Err(silent(&format!("no echo within {} ms", arguments.timeout_ms)));
    }
    let interval = Duration::from_millis(arguments.interval_ms);
    let mut times_ms = prober.round_trips_ms(arguments.probes, interval, timeout)?;
    times_ms.sort_by(f64::total_cmp);
    let mbit_per_s = if arguments.seconds.is_zero() {
        None
    } else {
        let answer = stream(to, arguments.seconds, timeout).map_err(|error| silent(&error.to_string()))?;
        // So that what is measured next does not meet this stream's queues.
        prober.first_echo(EMPTY_LIMIT);
        Some(answer.mbit_per_s())
    };
    #[allow(clippy::cast_precision_loss)] // at most 100,000
    let mean = (!times_ms.is_empty()).then(|| times_ms.iter().sum::<f64>() / times_ms.len() as f64);
    println!(
        "{}",
        json!({
            "mbit_per_s": mbit_per_s,
            "rtt_ms_min": times_ms.first(),
            "rtt_ms_mean": mean,
            "rtt_ms_p99": percentile_99(&times_ms),
            "sent": arguments.probes,
            "lost": arguments.probes as usize - times_ms.len(),
        })
    );
    Ok(())
}

/// The smallest time that at least 99% do not exceed.
fn percentile_99(sorted: &[f64]) -> Option<f64> {
    let rank = (sorted.len() * 99).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

/// A socket for probes. No number is used twice, so a late echo of an earlier probe is known as such.
struct Prober {
    socket: UdpSocket,
    /// Number of the next probe that only looks whether there is an echo; those whose time is measured count from 0.
    next_look: Cell<u64>,
}

impl Prober {
    fn connect(to: SocketAddr) -> io::Result<Self> {
        let any: IpAddr = if to.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            next_look: Cell::new(FIRST_LOOK),
        })
    }

    /// Sends probes until one of them comes back, or `None` after the limit.
    fn first_echo(&self, limit: Duration) -> Option<()> {
        let begun = Instant::now();
        let first = self.next_look.get();
        let mut next = begun;
        while begun.elapsed() < limit {
            let now = Instant::now();
            if now >= next {
                let number = self.next_look.get();
                self.next_look.set(number + 1);
                // Refused while nobody listens yet: asked again.
                let _ = self.socket.send(&probe(number));
                next = now + FIRST_PROBE_EVERY;
            }
            wait(&self.socket, PollFlags::IN, next.min(begun + limit)).ok()?;
            while let Some(echo) = self.echo() {
                if echo >= first {
                    return Some(());
                }
            }
        }
        None
    }

    /// Round trips of those that came back.
    fn round_trips_ms(&self, count: u32, interval: Duration, timeout: Duration) -> io::Result<Vec<f64>> {
        let begun = Instant::now();
        let mut sent: Vec<Instant> = Vec::new();
        let mut times_ms: Vec<Option<f64>> = vec![None; count as usize];
        let mut missing = count;
        while missing > 0 {
            let due = match u32::try_from(sent.len()) {
                Ok(number) if number < count => begun + interval * number,
                _ => sent.last().map_or(begun, |last| *last + timeout),
            };
            if Instant::now() >= due {
                if sent.len() == times_ms.len() {
                    break;
                }
                let number = sent.len() as u64;
                sent.push(Instant::now());
                // A queue that is full loses a probe here as elsewhere.
                let _ = self.socket.send(&probe(number));
                continue;
            }
            wait(&self.socket, PollFlags::IN, due)?;
            while let Some(number) = self.echo() {
                let now = Instant::now();
                let place = usize::try_from(number).ok().filter(|place| *place < sent.len());
                if let Some(place) = place.filter(|place| times_ms[*place].is_none()) {
                    times_ms[place] = Some((now - sent[place]).as_secs_f64() * 1e3);
                    missing -= 1;
                }
            }
        }
        Ok(times_ms.into_iter().flatten().collect())
    }

    /// The number of the next probe that has come back, if there is one.
    fn echo(&self) -> Option<u64> {
        let mut datagram = [0; 2 * PROBE_BYTES];
        loop {
            match self.socket.recv(&mut datagram) {
                Ok(bytes) => {
                    if let Some(number) = echoed(&datagram[..bytes]) {
                        return Some(number);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A port that was closed when a probe came says so once.
                Err(_) => return None,
            }
        }
    }
}

/// Sends as much as fits, for so long, and returns what the other side has counted.
fn stream(to: SocketAddr, length: Duration, timeout: Duration) -> io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&to, timeout)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(timeout))?;
    stream.write_all(&stream_header(length))?;
    stream.set_nonblocking(true)?;
    // What is not sent when the time is over is thrown away.
    set_socket_linger(&stream, Some(Duration::ZERO))?;
    let deadline = Instant::now() + length + ANSWER_LIMIT;
    let stop_sending = Instant::now() + length;
    let chunk = vec![0; CHUNK_BYTES];
    let mut answer = [0; ANSWER_BYTES];
    let mut read = 0;
    while read < ANSWER_BYTES {
        let now = Instant::now();
        if now >= deadline {
            return Err(io::Error::new(ErrorKind::TimedOut, "no count of the stream's bytes"));
        }
        let sending = now < stop_sending;
        let wanted = if sending {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        };
        wait(&stream, wanted, if sending { stop_sending } else { deadline })?;
        if sending {
            ignore_blocked(stream.write(&chunk))?;
        }
        match ignore_blocked(stream.read(&mut answer[read..]))? {
            Some(0) => return Err(ErrorKind::UnexpectedEof.into()),
            bytes => read += bytes.unwrap_or_default(),
        }
    }
    Ok(Answer::from_bytes(answer))
}

fn ignore_blocked(outcome: io::Result<usize>) -> io::Result<Option<usize>> {
    match outcome {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Waits for an event or until an instant.
fn wait(file: &impl AsFd, wanted: PollFlags, until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    let limit = Timespec::try_from(left).map_err(|_| ErrorKind::InvalidInput)?;
    match poll(&mut [PollFd::new(file, wanted)], Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn stream_seconds(text: &str) -> Result<Duration, String> {
    seconds::length(text, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_is_a_time_that_was_measured() {
        let times: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile_99(&times), Some(198.0));
        assert_eq!(percentile_99(&times[..1]), Some(1.0));
        assert_eq!(percentile_99(&[]), None);
    }

    #[test]
    fn a_stream_has_an_end() {
        assert_eq!(stream_seconds("0.5"), Ok(Duration::from_millis(500)));
        for refused in ["-1", "601", "inf", "NaN", "soon"] {
            assert!(stream_seconds(refused).is_err(), "{refused}");
        }
    }
}
