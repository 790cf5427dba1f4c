//! `rtt`: round-trip times to another node, with nothing installed there.
//!
//! A connection to a port that nobody listens on is refused by the other node's kernel: that answer takes one round trip, no
//! server, and no right to send ICMP packets. The first connection includes finding the neighbour's hardware address and is left out.

use std::error::Error;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::exit::{Exit, UNREACHABLE};

const MOST: u32 = 1000;

#[derive(clap::Args)]
pub struct Arguments {
    /// IP address of the other node.
    #[arg(long)]
    address: IpAddr,
    /// Port that nobody listens on; 1 is tcpmux, which no server uses.
    #[arg(long, default_value_t = 1)]
    port: u16,
    /// Round trips that are counted.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST)))]
    count: u32,
    /// Longest wait for one answer.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    timeout_ms: u64,
}

/// Prints one line of JSON: `{"times_ms": [...]}`. Errors: exit code 3 if there is no answer.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let to = SocketAddr::new(arguments.address, arguments.port);
    let timeout = Duration::from_millis(arguments.timeout_ms);
    let mut times_ms = Vec::new();
    for _ in 0..=arguments.count {
        let begun = Instant::now();
        match TcpStream::connect_timeout(&to, timeout) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => {
                return Err(Box::new(Exit {
                    code: UNREACHABLE,
                    message: format!("no answer from {}: {error}", arguments.address),
                    reported: false,
                }));
            }
        }
        times_ms.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    println!("{}", serde_json::json!({ "times_ms": times_ms[1..] }));
    Ok(())
}
