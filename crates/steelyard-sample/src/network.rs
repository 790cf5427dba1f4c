//! Sampler of network interfaces: those of the namespace that it runs in, charged to the node or to the machine.

use std::collections::HashSet;
use std::path::Path;

use crate::counter::Counter;
use crate::hardware::with_hardware;
use crate::proc_file::ProcFile;
use crate::{Readings, SampleError, Sampler, parse};

const LOOPBACK: &str = "lo";
const DEV: &str = "/proc/self/net/dev";

/// Whose interfaces these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The namespace (or the whole machine) belongs to the node alone.
    Node,
    /// Several nodes share it, so nothing in it can be charged to one of them.
    Machine,
}

/// Reads /proc/self/net/dev, which stays that of the namespace in which it was opened.
#[derive(Debug)]
pub struct NetworkSampler {
    dev: ProcFile,
    scope: Scope,
    hardware: HashSet<String>,
    received: Counter,
    transmitted: Counter,
    loopback: Counter,
}

impl NetworkSampler {
    /// Opens the interfaces of the present namespace. Errors: /proc/self/net/dev cannot be read.
    pub fn open(scope: Scope) -> Result<Self, SampleError> {
        let dev = ProcFile::open(DEV).map_err(|source| SampleError::Unreadable {
            path: DEV.into(),
            source,
        })?;
        // /sys shows the interfaces of the namespace in which it was mounted: of no use inside a node's own.
        let hardware = match scope {
            Scope::Machine => with_hardware(Path::new("/sys/class/net")),
            Scope::Node => HashSet::new(),
        };
        Ok(Self {
            dev,
            scope,
            hardware,
            received: Counter::default(),
            transmitted: Counter::default(),
            loopback: Counter::default(),
        })
    }
}

impl Sampler for NetworkSampler {
    fn read(&mut self, elapsed_s: f64, into: &mut Readings) {
        let sums = self.dev.read().map(|text| sum(text, &self.hardware));
        let received = self.received.rate(sums.map(|sums| sums.received), elapsed_s);
        let transmitted = self.transmitted.rate(sums.map(|sums| sums.transmitted), elapsed_s);
        let loopback = self.loopback.rate(sums.map(|sums| sums.loopback), elapsed_s);
        match self.scope {
            Scope::Node => {
                into.put("node_network_receive_bytes_per_s", received);
                into.put("node_network_transmit_bytes_per_s", transmitted);
            }
            Scope::Machine => {
                into.put("machine_network_receive_bytes_per_s", received);
                into.put("machine_network_transmit_bytes_per_s", transmitted);
                into.put("machine_loopback_bytes_per_s", loopback);
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    received: u64,
    transmitted: u64,
    loopback: u64,
}

/// Interfaces with hardware behind them, or, where none has, all but the loopback: a bridge and its ports would count twice.
fn sum(dev: &str, hardware: &HashSet<String>) -> Sums {
    let mut sums = Sums::default();
    for (name, received, transmitted) in parse::interfaces(dev) {
        if name == LOOPBACK {
            sums.loopback = received;
        } else if hardware.is_empty() || hardware.contains(name) {
            sums.received += received;
            sums.transmitted += transmitted;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bridges_do_not_count_twice() {
        let dev = "lo: 5 0 0 0 0 0 0 0 5 0 0 0 0 0 0 0\neth0: 10 0 0 0 0 0 0 0 20 0 0 0 0 0 0 0\nbr0: 10 0 0 0 0 0 0 0 20 0 0 0 0 0 0 0\n";
        let all = sum(dev, &HashSet::new());
        assert_eq!(
            all,
            Sums {
                received: 20,
                transmitted: 40,
                loopback: 5
            }
        );
        let hardware = sum(dev, &HashSet::from(["eth0".to_string()]));
        assert_eq!(
            hardware,
            Sums {
                received: 10,
                transmitted: 20,
                loopback: 5
            }
        );
    }

    #[test]
    fn scope_decides_the_names() {
        for (scope, present, absent) in [
            (
                Scope::Node,
                "node_network_receive_bytes_per_s",
                "machine_network_receive_bytes_per_s",
            ),
            (
                Scope::Machine,
                "machine_loopback_bytes_per_s",
                "node_network_receive_bytes_per_s",
            ),
        ] {
            let mut sampler = NetworkSampler::open(scope).unwrap();
            let mut readings = Readings::default();
            sampler.read(0.0, &mut readings);
            sampler.read(1.0, &mut readings);
            assert!(readings.get(present).is_some_and(|rate| rate >= 0.0));
            assert_eq!(readings.get(absent), None);
        }
    }
}
