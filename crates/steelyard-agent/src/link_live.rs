//! `link --config FILE`: a TAP device in each node's network namespace, and one medium between them, for as long as standard
//! input is open. Its lines are words, JSON objects: frames that are late for a while.

use std::error::Error;
use std::fs;
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use steelyard_link::{
    Late, Lateness, Live, Mac, MediumConfig, Port, Report, Scheduling, Tap, TapConfig, build, parse_address, parse_mac,
    real_time,
};

use crate::exit::{Exit, REFUSED};
use crate::seconds::interval;

/// Least and most bytes of an IP packet of a TAP device.
const MTU: std::ops::RangeInclusive<u32> = 68..=65_521;
const MOST_PORTS: usize = 1000;

/// The file that `--config` names.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkConfig {
    #[serde(default = "one_seed")]
    seed: u64,
    #[serde(default = "no_dilation")]
    dilation: f64,
    #[serde(default = "ethernet_mtu")]
    mtu: u32,
    medium: MediumConfig,
    ports: Vec<PortConfig>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PortConfig {
    name: String,
    namespace: PathBuf,
    #[serde(default = "first_interface")]
    interface: String,
    address: String,
    mac: String,
    #[serde(default)]
    wired: bool,
}

fn one_seed() -> u64 {
    1
}

fn no_dilation() -> f64 {
    1.0
}

fn ethernet_mtu() -> u32 {
    1500
}

fn first_interface() -> String {
    "eth0".to_owned()
}

#[derive(clap::Args)]
#[group(skip)] // its name would be that of the command's own
pub struct Arguments {
    /// Live: the file with the configuration (JSON): seed, dilation, MTU, medium, ports.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Live: print counters at this interval.
    #[arg(long, value_name = "S", value_parser = interval, requires = "config")]
    every_s: Option<f64>,
    /// Live: do not ask for real-time priority.
    #[arg(long, requires = "config")]
    ordinary: bool,
}

/// Moves frames until standard input ends, SIGTERM, SIGINT or SIGHUP comes, or nobody reads standard output. Exit code 2 for a
/// configuration that is refused.
pub fn run(path: &Path, arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    // Before the devices: a signal in between must not end the program without its last line.
    let (stopped, stop) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, stop.try_clone()?)?;
    }
    let (config, taps) = read_config(path)?;
    let ports: Vec<Port> = config.ports.iter().map(port).collect();
    let medium = build(&config.medium, &ports, config.dilation, config.seed)
        .map_err(|error| refused(path, &error.to_string()))?;
    let mut devices: Vec<(Mac, Tap)> = Vec::new();
    for (port, tap) in config.ports.iter().zip(&taps) {
        let device = Tap::create(tap).map_err(|error| format!("link: port {}: {error}", port.name))?;
        devices.push((tap.mac, device));
    }
    let words = words(stop);
    let scheduling = if arguments.ordinary { None } else { Some(real_time()) };
    let names = ports.iter().map(|port| port.name.clone()).collect();
    let medium = Late::around(medium, ports.len(), config.seed);
    let mut live = Live::new(medium, names, devices, config.mtu).map_err(|error| format!("link: {error}"))?;
    let mut ready = json!({"ready": true, "ports": ports.len(), "scheduling": "ordinary"});
    match scheduling {
        Some(Scheduling::Fifo) => ready["scheduling"] = json!("fifo"),
        Some(Scheduling::Ordinary(error)) => ready["scheduling_refused"] = json!(error.to_string()),
        None => {}
    }
    let every = arguments.every_s.map(Duration::from_secs_f64);
    let mut heard = tell(&ready);
    let mut tell_report = |report: &Report| {
        heard = serde_json::to_value(report).is_ok_and(|line| tell(&line));
        heard
    };
    let last = live
        .run(stopped.as_fd(), every, &words, &mut tell_report)
        .map_err(|error| format!("link: {error}"))?;
    if heard {
        let mut line = serde_json::to_value(last)?;
        line["ended"] = json!(true);
        tell(&line);
    }
    Ok(())
}

/// Whether somebody reads.
fn tell(line: &serde_json::Value) -> bool {
    let mut out = io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}

/// The words on standard input, at whose end `stop` is written to. In a thread of its own, because an input that is a file or
/// /dev/null cannot be waited for.
fn words(mut stop: UnixStream) -> Receiver<Result<Lateness, String>> {
    let (tell, told) = channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            let word = serde_json::from_str(&line).map_err(|error| format!("{error}: {line:?}"));
            // This, and what follows, fails only if the link has ended.
            let _ = tell.send(word);
        }
        let _ = stop.write_all(&[0]);
    });
    told
}

fn port(config: &PortConfig) -> Port {
    Port {
        name: config.name.clone(),
        wired: config.wired,
    }
}

fn read_config(path: &Path) -> Result<(LinkConfig, Vec<TapConfig>), Box<dyn Error>> {
    let text = fs::read(path).map_err(|error| refused(path, &error.to_string()))?;
    parse_config(&text).map_err(|message| refused(path, &message))
}

fn refused(path: &Path, message: &str) -> Box<dyn Error> {
    Exit::boxed(REFUSED, format!("link: {}: {message}", path.display()))
}

/// A configuration with its devices, or which field is wrong and what is allowed.
fn parse_config(text: &[u8]) -> Result<(LinkConfig, Vec<TapConfig>), String> {
    let config: LinkConfig = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if !MTU.contains(&config.mtu) {
        return Err(format!(
            "mtu: {} is not from {} to {}",
            config.mtu,
            MTU.start(),
            MTU.end()
        ));
    }
    if !(2..=MOST_PORTS).contains(&config.ports.len()) {
        return Err(format!("ports: {} of them, not 2 to {MOST_PORTS}", config.ports.len()));
    }
    let mut taps: Vec<TapConfig> = Vec::new();
    for port in &config.ports {
        let wrong = |field: &str, value: &str, example: &str| {
            format!("ports: {}: {field} {value:?} is none; an example: {example}", port.name)
        };
        let (address, prefix_length) =
            parse_address(&port.address).ok_or_else(|| wrong("address", &port.address, "10.113.0.1/16"))?;
        let mac = parse_mac(&port.mac)
            .filter(|mac| mac[0] & 1 == 0)
            .ok_or_else(|| wrong("mac", &port.mac, "02:00:00:00:00:01"))?;
        if taps.iter().any(|other| other.mac == mac) {
            return Err(format!(
                "ports: {}: another port has the same mac {}",
                port.name, port.mac
            ));
        }
        taps.push(TapConfig {
            namespace: port.namespace.clone(),
            interface: port.interface.clone(),
            address,
            prefix_length,
            mac,
            mtu: config.mtu,
        });
    }
    Ok((config, taps))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(change: impl Fn(&mut serde_json::Value)) -> Result<usize, String> {
        let mut value = json!({
            "seed": 1, "dilation": 1.0, "mtu": 1500,
            "medium": {"kind": "point-to-point", "rate_mbit": 100.0, "delay_ms": 0.1},
            "ports": [
                {"name": "n1", "namespace": "/run/netns/a", "interface": "eth0", "address": "10.113.0.1/16",
                 "mac": "02:00:00:00:00:01", "wired": false},
                {"name": "n2", "namespace": "/run/netns/b", "address": "fd00::2/64", "mac": "02:00:00:00:00:02"},
            ],
        });
        change(&mut value);
        parse_config(value.to_string().as_bytes()).map(|(_, taps)| taps.len())
    }

    #[test]
    fn a_configuration_is_read_and_refused_by_field() {
        assert_eq!(config(|_| {}), Ok(2));
        type Change = fn(&mut serde_json::Value);
        let changes: [(Change, &str); 7] = [
            (|value| value["mtu"] = json!(40), "mtu: 40"),
            (|value| value["ports"] = json!([]), "ports: 0 of them"),
            (
                |value| value["ports"][0]["address"] = json!("10.0.0.1"),
                "address \"10.0.0.1\"",
            ),
            (
                |value| value["ports"][0]["mac"] = json!("03:00:00:00:00:01"),
                "mac \"03",
            ),
            (
                |value| value["ports"][1]["mac"] = json!("02:00:00:00:00:01"),
                "n2: another port",
            ),
            (|value| value["medium"]["kind"] = json!("string"), "string"),
            (|value| value["medium"]["rate"] = json!(1), "rate"),
        ];
        for (change, message) in changes {
            let error = config(change).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
