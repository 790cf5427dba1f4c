//! `load`: carry out one order and print records.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use steelyard_load::client::{CannotBegin, Client};
use steelyard_load::clock::Clock;
use steelyard_load::drive::{self, DriveError};
use steelyard_load::output::write_record;
use steelyard_wire::{Connected, FORMAT, Failure, Hello, Order, Record};
use steelyard_workload::stream::settle;

use crate::exit::{Exit, UNREACHABLE};
use crate::protocols::{self, Drives};
use crate::wall_clock::WallClock;
use crate::words;

const WORDS_HINT: &str =
    "one JSON line each: go first, then phases and stop if the order has words; see schema/words.example.jsonl";

#[derive(clap::Args)]
pub struct Arguments {
    /// File with the order (JSON); - for standard input.
    #[arg(long)]
    order: PathBuf,
    /// Threads that drive the load, each with its share of the operations and its own connections.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    workers: u32,
}

/// Exit codes: 0 when the order was carried out or ended early by SIGINT or SIGTERM, 3 when the cluster cannot be
/// reached, 1 for anything else.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let wall_clock = WallClock::from_environment()?;
    write_record(&mut io::stdout(), &hello(wall_clock))?;
    let order = match read_order(&arguments.order) {
        Ok(order) => order,
        Err(message) => {
            return Err(fail(
                1,
                message,
                "see schema/order.example.json for the fields of an order",
            ));
        }
    };
    if (order.words || order.go) && arguments.order.as_os_str() == "-" {
        let field = if order.words { "words" } else { "go" };
        let message = format!("{field}: true, but standard input has the order");
        return Err(fail(
            1,
            message,
            "put the order into a file: words come on standard input",
        ));
    }
    let slots = match drive::slots(&order, arguments.workers) {
        Ok(slots) => slots,
        Err(error) => return Err(fail(1, error.to_string(), "change the order, or --workers")),
    };
    let load = Load {
        order: &order,
        wall_clock,
        stop,
    };
    protocols::drive(&load, &order, &slots)
}

/// A load that is ready but for its clients.
struct Load<'a> {
    order: &'a Order,
    wall_clock: WallClock,
    stop: Arc<AtomicBool>,
}

impl Drives for Load<'_> {
    fn drive<C: Client>(
        &self,
        connected: Result<(Vec<C>, Connected), impl Into<CannotBegin>>,
    ) -> Result<(), Box<dyn Error>> {
        let (clients, connected) = match connected.map_err(Into::into) {
            Ok(connected) => connected,
            Err(CannotBegin { message, hint, is_away }) => {
                return Err(fail(if is_away { UNREACHABLE } else { 1 }, message, &hint));
            }
        };
        let (order, stop, mut out) = (self.order, &self.stop, io::stdout());
        write_record(&mut out, &Record::Connected(connected))?;
        let clock = Clock::start_with_offset(self.wall_clock.offset_s());
        let driven = if order.words {
            let words = words::read(io::stdin(), stop);
            drive::run_by_words(clients, order, &words, clock, stop, &mut out)
        } else if order.go {
            let words = words::read_one(io::stdin());
            drive::run_on_go(clients, order, &words, clock, stop, &mut out)
        } else {
            drive::run(clients, order, clock, stop, &mut out)
        };
        match driven {
            Ok(()) => Ok(()),
            Err(DriveError::Output(error)) => Err(Exit {
                code: 1,
                message: format!("records could not be written: {error}"),
                reported: false,
            }
            .into()),
            Err(DriveError::Word(message)) => Err(fail(1, message, WORDS_HINT)),
            Err(error) => Err(fail(
                1,
                error.to_string(),
                "change the order, or look at this machine's limits",
            )),
        }
    }
}

fn hello(clock: WallClock) -> Record {
    Record::Hello(Hello {
        format: FORMAT,
        agent: env!("CARGO_PKG_VERSION").to_owned(),
        optimised: !cfg!(debug_assertions),
        t_s: clock.now_s(),
    })
}

/// Reports on both outputs why there is no load.
fn fail(code: u8, message: String, hint: &str) -> Box<dyn Error> {
    let record = Record::Error(Failure {
        message: message.clone(),
        hint: hint.to_owned(),
    });
    // If nobody reads standard output, standard error still says it.
    let _ = write_record(&mut io::stdout(), &record);
    Exit {
        code,
        message,
        reported: false,
    }
    .into()
}

/// The order, or what is wrong with it and what is allowed.
fn read_order(path: &Path) -> Result<Order, String> {
    let text = match path.to_str() {
        Some("-") => io::read_to_string(io::stdin()).map_err(|error| format!("standard input: {error}"))?,
        _ => fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?,
    };
    parse_order(&text)
}

fn parse_order(text: &str) -> Result<Order, String> {
    // The version first: another version's other fields would only mislead.
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("the order is not valid JSON: {error}"))?;
    let format = value.get("format").ok_or("the order has no format")?;
    if format.as_u64() != Some(u64::from(FORMAT)) {
        return Err(format!("format: read {format}; allowed: {FORMAT}"));
    }
    let mut order: Order = serde_json::from_str(text).map_err(|error| format!("the order: {error}"))?;
    settle(&mut order).map_err(|error| error.to_string())?;
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../../schema/order.example.json");

    #[test]
    fn the_example_is_an_order() {
        let order = parse_order(EXAMPLE).unwrap();
        assert_eq!(order.target.cql().unwrap().keyspace, "ycsb");
    }

    #[test]
    fn what_is_refused_is_named_with_what_is_allowed() {
        let cases = [
            ("\"format\": 1", "\"format\": 2", "format: read 2; allowed: 1"),
            (
                "\"cql\"",
                "\"smtp\"",
                "unknown variant `smtp`, expected one of `cql`, `resp`, `http`, `etcd`, `postgresql`",
            ),
            (
                "\"ycsb\",\n    \"fields",
                "\"jobs\",\n    \"fields",
                "unknown variant `jobs`, expected one of `ycsb`, `program`, `requests`",
            ),
            ("\"keyspace\"", "\"keyspaces\"", "unknown field `keyspaces`"),
            ("\"fields\"", "\"columns\"", "unknown field `columns`"),
            ("\"seed\"", "\"routing\"", "unknown field `routing`"),
        ];
        for (from, to, message) in cases {
            let text = EXAMPLE.replace(from, to);
            assert_ne!(text, EXAMPLE, "{from}");
            let refusal = parse_order(&text).unwrap_err();
            assert!(refusal.contains(message), "{refusal}");
        }
    }
}
