//! `sim`: one node of a simulated cluster, or the null server.

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use steelyard_sim::{Config, Distribution, Growth, Law, Stall, Timing, TlsFiles, WarmUp, serve};

use crate::protocols::Protocol;
use crate::seconds::within;
use crate::wall_clock::WallClock;

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ServiceDistribution {
    /// Every operation takes the same time.
    Constant,
    /// Memoryless: the standard deviation equals the mean.
    Exponential,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// Address that this node listens on; port 0 selects a free one. The address is printed.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// The other nodes of the cluster, separated by commas.
    #[arg(long, value_name = "ADDRESS:PORT,...", value_delimiter = ',')]
    peers: Vec<SocketAddr>,
    /// Join the running cluster of this member, which names the others. The steps are printed as Cassandra logs them.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["peers", "remember", "null"])]
    join: Option<SocketAddr>,
    /// With --join: from the start until the node talks to the members.
    #[arg(long, value_name = "MS", default_value_t = 0.0, value_parser = parse_ms)]
    boot_ms: f64,
    /// From announcing that the node joins or leaves until its data move. A node that has left goes on answering for so
    /// long again, 2 s at least.
    #[arg(long, value_name = "MS", default_value_t = 0.0, value_parser = parse_ms)]
    ring_delay_ms: f64,
    /// All data of the cluster. A node that makes it n nodes, or is one of n that leaves, streams 1 / n of them.
    #[arg(long, value_name = "BYTES", default_value_t = 0.0, value_parser = parse_bytes, requires = "stream_bytes_per_s")]
    data_bytes: f64,
    /// How fast.
    #[arg(long, value_name = "BYTES", value_parser = parse_rate)]
    stream_bytes_per_s: Option<f64>,
    /// This node's service times are multiplied by FACTOR while a node of its cluster streams.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_positive)]
    stream_cost: f64,
    /// Take a member that has died out of the ring after this time. Without this option it stays in the ring. The member that is
    /// started again then joins again.
    #[arg(long, value_name = "MS", value_parser = parse_positive, conflicts_with_all = ["remember", "null"])]
    detect_ms: Option<f64>,
    /// Mean service time of an operation on a cluster of one node, s(1).
    #[arg(long, value_name = "US", default_value_t = 500.0, value_parser = parse_positive)]
    service_us: f64,
    /// s(n) = s(1) * (1 + contention * (n - 1) + coherency * n * (n - 1)).
    #[arg(long, default_value_t = 0.02, value_name = "SHARE", value_parser = parse_share)]
    contention: f64,
    /// See contention.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = parse_share)]
    coherency: f64,
    /// Operations that a node serves at the same time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    servers: u32,
    #[arg(long, value_enum, default_value_t = ServiceDistribution::Constant)]
    service_distribution: ServiceDistribution,
    /// Seed of every random draw; must be the same for all nodes of a cluster.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Coefficient of variation of a factor on service times, drawn once from the seed.
    #[arg(long, default_value_t = 0.0, value_name = "CV", value_parser = parse_share)]
    start_cv: f64,
    /// Coefficient of variation of a factor that is drawn anew for each burst of operations. A new burst begins after
    /// TRUNCATE, when all clients of the previous burst have disconnected, and after more than 1 s without an operation.
    #[arg(long, default_value_t = 0.0, value_name = "CV", value_parser = parse_share)]
    trial_cv: f64,
    /// Service times begin at FACTOR times the planted one; the excess falls by 1 / e per OPERATIONS that this node has
    /// served itself.
    #[arg(long, value_name = "FACTOR:OPERATIONS", value_parser = parse_warm_up)]
    warm_up: Option<WarmUp>,
    /// Stop AT_S seconds after the first operation of each burst, for FOR_S seconds. May be repeated.
    #[arg(long, value_name = "AT_S:FOR_S", value_parser = parse_stall)]
    stall: Vec<Stall>,
    /// Keep rows, so that keys that were not written to this node are absent (one node, or token routing). Otherwise
    /// writes are discarded and every key exists, with a made-up row.
    #[arg(long)]
    remember: bool,
    /// Answer at once, to measure the ceiling of a load generator.
    #[arg(long, conflicts_with_all = ["stall", "remember", "start_cv", "trial_cv", "warm_up"])]
    null: bool,
    /// What is spoken. Over other protocols than CQL every answer is made up, at once with --null, else one after the other after
    /// --service-us each.
    #[arg(long, value_enum, default_value_t = Protocol::Cql)]
    protocol: Protocol,
    /// Time before an answer is due at which to stop sleeping and poll the clock: more precision for more CPU time.
    #[arg(long, default_value_t = 60, value_name = "US", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    spin_us: u32,
    /// Encrypt every connection with this certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<String>,
    /// Its key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<String>,
    /// Clients must present a certificate from one of these authorities (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_client_ca: Option<String>,
    /// Announce this many shards, as ScyllaDB does, and refuse operations that arrive at the wrong one.
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=256))]
    shards: u32,
}

/// Serves until it is ended, or has left its cluster (the statement `LEAVE`).
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    if arguments.join.is_some() && arguments.listen.port() == 0 {
        return Err("--listen: a node that joins needs a port that the members can be told, not 0".into());
    }
    let listening = |address: SocketAddr| {
        // The line may go unread.
        let _ = writeln!(std::io::stdout(), "listening {address}").and_then(|()| std::io::stdout().flush());
    };
    let service = match (arguments.null, arguments.service_us) {
        (true, _) => Duration::ZERO,
        (false, service_us) => Duration::from_secs_f64(service_us / 1e6),
    };
    if arguments.protocol != Protocol::Cql {
        return Ok(arguments.protocol.serve(arguments.listen, service, listening)?);
    }
    let config = config(arguments, WallClock::from_environment()?);
    serve(&config, listening)?;
    Ok(())
}

fn config(arguments: &Arguments, clock: WallClock) -> Config {
    let timing = (!arguments.null).then(|| Timing {
        law: Law {
            service_us: arguments.service_us,
            contention: arguments.contention,
            coherency: arguments.coherency,
            distribution: match arguments.service_distribution {
                ServiceDistribution::Constant => Distribution::Constant,
                ServiceDistribution::Exponential => Distribution::Exponential,
            },
        },
        servers: arguments.servers,
        start_cv: arguments.start_cv,
        trial_cv: arguments.trial_cv,
        warm_up: arguments.warm_up,
        stalls: arguments.stall.clone(),
        seed: arguments.seed,
        spin_us: arguments.spin_us,
    });
    Config {
        listen: arguments.listen,
        peers: arguments.peers.clone(),
        join: arguments.join,
        growth: Growth {
            boot: Duration::from_secs_f64(arguments.boot_ms / 1e3),
            ring_delay: Duration::from_secs_f64(arguments.ring_delay_ms / 1e3),
            data_bytes: arguments.data_bytes,
            stream_bytes_per_s: arguments.stream_bytes_per_s.unwrap_or(f64::INFINITY),
            stream_cost: arguments.stream_cost,
            detect: arguments.detect_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)),
        },
        clock_offset_s: clock.offset_s(),
        timing,
        remember: arguments.remember,
        tls: arguments
            .tls_certificate
            .clone()
            .zip(arguments.tls_key.clone())
            .map(|(certificate, key)| TlsFiles {
                certificate,
                key,
                client_ca: arguments.tls_client_ca.clone(),
            }),
        shards: arguments.shards,
    }
}

fn parse_positive(text: &str) -> Result<f64, String> {
    number(text, 1e-3, 1e9)
}

fn parse_ms(text: &str) -> Result<f64, String> {
    number(text, 0.0, 1e9)
}

fn parse_bytes(text: &str) -> Result<f64, String> {
    number(text, 0.0, 1e18)
}

fn parse_rate(text: &str) -> Result<f64, String> {
    number(text, 1.0, 1e18)
}

fn parse_share(text: &str) -> Result<f64, String> {
    number(text, 0.0, 1e3)
}

fn number(text: &str, least: f64, most: f64) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(format!("{text:?} is not a number from {least} to {most}")),
    }
}

fn parse_stall(text: &str) -> Result<Stall, String> {
    let (at, long) = text
        .split_once(':')
        .ok_or_else(|| format!("{text:?} is not AT_S:FOR_S"))?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most 1e15 ns
    let nanoseconds = |text: &str| within(text, 0.0..=1e6).map(|seconds| (seconds * 1e9).round() as u64);
    Ok(Stall {
        at_ns: nanoseconds(at)?,
        for_ns: nanoseconds(long)?,
    })
}

fn parse_warm_up(text: &str) -> Result<WarmUp, String> {
    let (factor, operations) = text
        .split_once(':')
        .ok_or_else(|| format!("{text:?} is not FACTOR:OPERATIONS"))?;
    Ok(WarmUp {
        factor: number(factor, 1.0, 1e6)?,
        operations: number(operations, 1.0, 1e12)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_is_a_factor_and_operations() {
        assert_eq!(
            parse_warm_up("3:2000"),
            Ok(WarmUp {
                factor: 3.0,
                operations: 2000.0
            })
        );
        for wrong in ["3", "0.5:10", "3:0", "3:nan", ":"] {
            assert!(parse_warm_up(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn stalls_are_seconds() {
        assert_eq!(
            parse_stall("2:0.5"),
            Ok(Stall {
                at_ns: 2_000_000_000,
                for_ns: 500_000_000
            })
        );
        for wrong in ["2", "2:", "a:1", "-1:1", "1:nan"] {
            assert!(parse_stall(wrong).is_err(), "{wrong}");
        }
    }
}
