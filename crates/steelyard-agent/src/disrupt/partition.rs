//! `disrupt partition`, or `packet`: packets between this node and some of its peers, all or some of them, dropped in silence by a
//! packet filter of the node's network.

use std::error::Error;
use std::io;
use std::net::IpAddr;

use super::act::{Act, Held};
use super::filter;
use super::record::{Record, Undo};
use crate::exit::{Exit, REFUSED};

const CHANCES: f64 = 10_000.0;
/// What passes at once beyond the rate: the kernel hands on up to 64 KiB of a stream together.
const LEAST_BURST_BYTES: f64 = 131_072.0;
const BURST_S: f64 = 0.05;
/// A table of this name is nobody's.
const TRIAL: &str = "steelyard_trial";

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub held: Held,
    /// Address of a node from which this one is cut off; may be repeated.
    #[arg(long, required = true, value_name = "ADDRESS")]
    peer: Vec<IpAddr>,
    /// Which packets are lost.
    #[arg(long, value_enum, default_value_t = Direction::Both)]
    direction: Direction,
    /// Share of them, at random.
    #[arg(long, value_name = "PERCENT", default_value_t = 100.0, value_parser = percent)]
    loss_percent: f64,
    /// And those beyond this rate, of each peer and direction.
    #[arg(long, value_name = "MBIT", value_parser = rate)]
    rate_mbit: Option<f64>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Direction {
    /// Those to this node and those from it.
    Both,
    /// Those to this node.
    To,
    /// Those from this node.
    From,
}

impl Direction {
    /// Hook of the kernel, and field of the packet that holds the peer.
    fn ways(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Both => &[("input", "saddr"), ("output", "daddr")],
            Self::To => &[("input", "saddr")],
            Self::From => &[("output", "daddr")],
        }
    }
}

pub(super) struct Partition {
    peers: Vec<IpAddr>,
    direction: Direction,
    statements: Vec<String>,
    network: u64,
}

impl Partition {
    /// Errors: without the program, the kernel's part or the right to filter. What could not be undone is not begun.
    pub(super) fn of(arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        let network = filter::own_network()?;
        filter::remove(network, TRIAL)
            .map_err(|error| Exit::boxed(REFUSED, format!("disrupt: packets cannot be filtered here: {error}")))?;
        Ok(Self {
            peers: arguments.peer.clone(),
            direction: arguments.direction,
            statements: statements(arguments.loss_percent, arguments.rate_mbit),
            network,
        })
    }
}

impl Act for Partition {
    fn undo(&self) -> Result<Vec<Undo>, Box<dyn Error>> {
        Ok(vec![Undo::Rejoin { network: self.network }])
    }

    fn begin(&mut self, record: &mut Record) -> Result<(), Box<dyn Error>> {
        let table = table(&record.table(), &self.peers, self.direction, &self.statements);
        let begun = filter::add(&table);
        begun.map_err(|error| format!("disrupt: cannot filter packets: {error}").into())
    }

    fn end(&mut self, record: &Record) -> io::Result<()> {
        record.undone()
    }
}

/// Conditions on which a packet is dropped.
fn statements(loss_percent: f64, rate_mbit: Option<f64>) -> Vec<String> {
    let by_chance = format!("numgen random mod {CHANCES} < {:.0} ", loss_percent / 100.0 * CHANCES);
    let loss = if loss_percent < 100.0 { by_chance } else { String::new() };
    let beyond = rate_mbit.map(|rate_mbit| {
        let bytes_per_s = rate_mbit * 1e6 / 8.0;
        let burst = (bytes_per_s * BURST_S).max(LEAST_BURST_BYTES);
        format!("limit rate over {bytes_per_s:.0} bytes/second burst {burst:.0} bytes ")
    });
    let lost = (loss_percent > 0.0).then_some(loss);
    lost.into_iter().chain(beyond).collect()
}

/// All rules of a table come into force at once.
fn table(name: &str, peers: &[IpAddr], direction: Direction, statements: &[String]) -> String {
    let chains = direction.ways().iter().map(|(hook, field)| {
        let rules = peers.iter().flat_map(|peer| {
            let family = if peer.is_ipv4() { "ip" } else { "ip6" };
            let rule = move |statement: &String| format!("{family} {field} {peer} {statement}drop\n");
            statements.iter().map(rule)
        });
        let rules: String = rules.collect();
        format!("chain {hook} {{\ntype filter hook {hook} priority -300\n{rules}}}\n")
    });
    format!("table inet {name} {{\n{}}}\n", chains.collect::<String>())
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "a share is from 0 to 100".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.001..=1e6).contains(number));
    number.ok_or_else(|| "a rate is from 0.001 to 1000000 Mb/s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_rule_for_each_peer_and_way() {
        let peers = ["10.0.0.2".parse().unwrap(), "fd00::3".parse().unwrap()];
        let of = |direction| table("t", &peers, direction, &statements(100.0, None));
        let both = of(Direction::Both);
        for rule in [
            "ip saddr 10.0.0.2",
            "ip daddr 10.0.0.2",
            "ip6 saddr fd00::3",
            "ip6 daddr fd00::3",
        ] {
            assert!(both.contains(&format!("\n{rule} drop\n")), "{both}");
        }
        let to = of(Direction::To);
        assert!(to.contains("hook input") && !to.contains("daddr"), "{to}");
        let from = of(Direction::From);
        assert!(from.contains("hook output") && !from.contains("saddr"), "{from}");
    }

    #[test]
    fn some_packets_are_dropped_by_chance_or_beyond_a_rate() {
        assert_eq!(statements(5.0, None), ["numgen random mod 10000 < 500 "]);
        let rate = "limit rate over 125000 bytes/second burst 131072 bytes ";
        assert_eq!(statements(0.0, Some(1.0)), [rate]);
        assert_eq!(statements(5.0, Some(1.0)).len(), 2);
        for refused in ["-1", "101", "NaN", ""] {
            assert!(percent(refused).is_err(), "{refused}");
        }
        assert!(super::rate("0").is_err() && super::rate("0.1").is_ok());
    }
}
