//! An 802.11 medium without packets: sources of frames on the virtual clock, as fast as it computes.

use serde::Serialize;

use crate::config::{ConfigError, Port, WifiConfig};
use crate::medium::{Counters, Delivery, Frame, Loss, Medium};
use crate::random::Random;
use crate::wifi::Wifi;
use crate::wifi::phy::{ACK_BYTES, Phy, Rate, Standard};

const NS_PER_S: f64 = 1e9;
/// Most stations, longest simulation, and most payload of a frame (the largest MSDU of 802.11).
const MOST_STATIONS: usize = 500;
const LONGEST_S: f64 = 86_400.0;
const MOST_PAYLOAD_BYTES: usize = 2304;
/// Bits of a frame's id that hold its station; the others hold when it was offered, in ns: enough for three days.
const STATION_BITS: u32 = 16;

/// Where the stations' frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Traffic {
    /// To a port that hangs on the access points by a wire.
    Uplink,
    /// From that port to the stations.
    Downlink,
    /// From each station to the next, through the access point.
    Relay,
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The medium; its `hidden` is made from `hidden` here.
    pub medium: WifiConfig,
    /// Stations.
    pub stations: usize,
    /// How many of them, the last ones, have the standard's lowest rate.
    pub slow: usize,
    /// Whether stations of even and of odd number do not hear each other.
    pub hidden: bool,
    /// Virtual seconds.
    pub seconds: f64,
    /// Ethernet payload of every frame.
    pub payload_bytes: usize,
    /// Where frames go.
    pub traffic: Traffic,
    /// Poisson arrivals, of all sources together, as a fraction of what one station alone can send; None: saturated sources.
    pub load: Option<f64>,
    /// Seed of the medium and of the arrivals.
    pub seed: u64,
}

/// Delays from the offer of a frame to its delivery, in ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delays {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Payload delivered, of all sources together.
    pub throughput_mbit_per_s: f64,
    /// The same of each station.
    pub stations_mbit_per_s: Vec<f64>,
    /// Jain's index of those (Jain, Chiu and Hawe 1984): 1 if all are equal, 1 / n if one has everything.
    pub jain_index: f64,
    /// Collisions over attempts.
    pub collision_fraction: f64,
    /// What one station alone can send, by arithmetic: the `load` is a fraction of it.
    pub single_station_mbit_per_s: f64,
    /// Rate of ACK, block ACK, RTS and CTS at the data rate.
    pub control_rate_mbit: f64,
    /// Fraction of the time in which something was in the air.
    pub busy_fraction: f64,
    /// Delays of what was delivered; None of saturated sources, whose queues are never empty.
    pub delay_ms: Option<Delays>,
    /// What the medium counted: deliveries, attempts, collisions, retries, drops.
    #[serde(flatten)]
    pub counters: Counters,
}

/// Throughput of one saturated station that never collides, frames by themselves: payload over DIFS, mean back-off, data, SIFS, ACK.
pub fn single_station_mbit_per_s(phy: Phy, most_control: Option<Rate>, payload_bytes: usize) -> f64 {
    let timing = phy.standard.timing();
    let control = phy.standard.control_rate(phy.rate, most_control);
    let exchange_ns = timing.ifs_ns
        + phy.standard.data_ns(phy.rate, payload_bytes)
        + timing.sifs_ns
        + phy.standard.control_ns(control, ACK_BYTES);
    let backoff_ns = to_f64(timing.slot_ns) * f64::from(timing.cw_min) / 2.0;
    to_f64(payload_bytes as u64) * 8_000.0 / (to_f64(exchange_ns) + backoff_ns)
}

/// Simulates a scenario.
pub fn simulate(scenario: &Scenario) -> Result<Outcome, ConfigError> {
    check(scenario)?;
    let phy = Phy::parse(&scenario.medium.phy).map_err(|message| ConfigError::Setting("phy", message))?;
    let most_control = scenario.medium.ack_rate_mbit.map(Rate::of_mbit);
    let capacity = single_station_mbit_per_s(phy, most_control, scenario.payload_bytes);
    let mut run = Run::new(scenario, phy.standard)?;
    match scenario.load {
        None => run.saturated(),
        Some(load) => run.offered(load * capacity),
    }
    Ok(run.outcome(capacity, phy.standard.control_rate(phy.rate, most_control).mbit()))
}

struct Run<'a> {
    scenario: &'a Scenario,
    medium: Wifi,
    end_ns: u64,
    /// Frames delivered of each station.
    frames: Vec<u64>,
    delays_ns: Vec<u64>,
    deliveries: Vec<Delivery>,
    losses: Vec<(u64, Loss)>,
    /// Station that the wired port sends to next.
    turn: usize,
}

impl<'a> Run<'a> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most a day
    fn new(scenario: &'a Scenario, standard: Standard) -> Result<Self, ConfigError> {
        let name = |station: usize| format!("s{station}");
        let mut ports: Vec<Port> = (0..scenario.stations)
            .map(|station| Port {
                name: name(station),
                wired: false,
            })
            .collect();
        ports.push(Port {
            name: "wired".to_owned(),
            wired: true,
        });
        let mut config = scenario.medium.clone();
        if scenario.hidden {
            let all = || 0..scenario.stations;
            let pairs = all().flat_map(|first| all().map(move |second| (first, second)));
            let apart = pairs.filter(|(first, second)| first < second && (first + second) % 2 == 1);
            config.hidden = apart.map(|(first, second)| (name(first), name(second))).collect();
        }
        let first_slow = scenario.stations - scenario.slow;
        let rate_of = |port: usize| (port >= first_slow).then(|| standard.rates()[0]);
        Ok(Self {
            medium: Wifi::new(&config, &ports, rate_of, scenario.seed)?,
            scenario,
            end_ns: (scenario.seconds * NS_PER_S) as u64,
            frames: vec![0; scenario.stations],
            delays_ns: Vec::new(),
            deliveries: Vec::new(),
            losses: Vec::new(),
            turn: 0,
        })
    }

    /// Every source always has frames to send.
    fn saturated(&mut self) {
        // What is in the air, and the next aggregate.
        let wanted = (2 * self.scenario.medium.aggregate).min(self.scenario.medium.queue_frames);
        let mut now_ns = 0;
        loop {
            if self.scenario.traffic == Traffic::Downlink {
                // The queues of the access points are the sources.
                while self.medium.waiting_at_access_point(self.turn) < self.scenario.medium.queue_frames {
                    self.offer(now_ns, self.turn);
                    self.turn = (self.turn + 1) % self.scenario.stations;
                }
            } else {
                for station in 0..self.scenario.stations {
                    while self.medium.waiting(station) < wanted && self.offer(now_ns, station) {}
                }
            }
            match self.medium.due_ns().filter(|due_ns| *due_ns <= self.end_ns) {
                Some(due_ns) => now_ns = due_ns,
                None => return,
            }
            self.advance(now_ns);
        }
    }

    /// Poisson arrivals of that rate, the same at each station.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // gaps of far less than 2^63 ns
    fn offered(&mut self, mbit_per_s: f64) {
        let stations = self.scenario.stations;
        let frame_bits = to_f64(self.scenario.payload_bytes as u64) * 8.0;
        let gap_ns = frame_bits * 1_000.0 / mbit_per_s * to_f64(stations as u64);
        // Not the medium's own numbers, which begin with the seed itself.
        let mut random = Random::new(!self.scenario.seed);
        let mut gap = || (random.exponential() * gap_ns) as u64;
        let mut next_ns: Vec<u64> = (0..stations).map(|_| gap()).collect();
        while let Some((arrival_ns, station)) = next_ns.iter().copied().zip(0..).min() {
            match self.medium.due_ns().filter(|due_ns| *due_ns <= arrival_ns) {
                Some(due_ns) if due_ns <= self.end_ns => self.advance(due_ns),
                None if arrival_ns <= self.end_ns => {
                    self.offer(arrival_ns, station);
                    next_ns[station] = arrival_ns + gap();
                }
                _ => return,
            }
        }
    }

    fn offer(&mut self, now_ns: u64, station: usize) -> bool {
        let wired = self.scenario.stations;
        let (from, to) = match self.scenario.traffic {
            Traffic::Uplink => (station, wired),
            Traffic::Downlink => (wired, station),
            Traffic::Relay => (station, (station + 1) % self.scenario.stations),
        };
        let frame = Frame {
            id: now_ns << STATION_BITS | station as u64,
            from,
            to: Some(to),
            bytes: self.scenario.payload_bytes,
        };
        self.medium.offer(now_ns, frame)
    }

    fn advance(&mut self, now_ns: u64) {
        self.medium.advance(now_ns, &mut self.deliveries);
        self.medium.losses(&mut self.losses);
        self.losses.clear();
        for delivery in self.deliveries.drain(..) {
            #[allow(clippy::cast_possible_truncation)] // the station's bits
            let station = (delivery.id & ((1 << STATION_BITS) - 1)) as usize;
            self.frames[station] += 1;
            if self.scenario.load.is_some() {
                self.delays_ns.push(delivery.at_ns - (delivery.id >> STATION_BITS));
            }
        }
    }

    fn outcome(mut self, single_station_mbit_per_s: f64, control_rate_mbit: f64) -> Outcome {
        let counters = self.medium.counters();
        let mbit_of_frame = to_f64(self.scenario.payload_bytes as u64) * 8e-6;
        let rate = |frames: &u64| to_f64(*frames) * mbit_of_frame / self.scenario.seconds;
        let stations_mbit_per_s: Vec<f64> = self.frames.iter().map(rate).collect();
        self.delays_ns.sort_unstable();
        Outcome {
            throughput_mbit_per_s: stations_mbit_per_s.iter().sum(),
            jain_index: jain_index(&stations_mbit_per_s),
            stations_mbit_per_s,
            collision_fraction: to_f64(counters.collisions) / to_f64(counters.attempts.max(1)),
            single_station_mbit_per_s,
            control_rate_mbit,
            busy_fraction: to_f64(counters.busy_ns) / (self.scenario.seconds * NS_PER_S),
            delay_ms: delays(&self.delays_ns),
            counters,
        }
    }
}

fn delays(sorted_ns: &[u64]) -> Option<Delays> {
    let last = sorted_ns.len().checked_sub(1)?;
    let at = |per_cent: usize| to_f64(sorted_ns[last * per_cent / 100]) / 1e6;
    Some(Delays {
        mean: to_f64(sorted_ns.iter().sum()) / to_f64(sorted_ns.len() as u64) / 1e6,
        p50: at(50),
        p99: at(99),
    })
}

/// (sum x)^2 / (n sum x^2); 1 of nothing at all.
pub fn jain_index(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (to_f64(values.len() as u64) * squares)
}

fn check(scenario: &Scenario) -> Result<(), ConfigError> {
    let fail = |name: &'static str, message: String| Err(ConfigError::Setting(name, message));
    if !(1..=MOST_STATIONS).contains(&scenario.stations) {
        return fail(
            "stations",
            format!("{} is not from 1 to {MOST_STATIONS}", scenario.stations),
        );
    }
    if scenario.slow > scenario.stations {
        return fail("slow", format!("{} of {} stations", scenario.slow, scenario.stations));
    }
    if !(scenario.seconds > 0.0 && scenario.seconds <= LONGEST_S) {
        return fail(
            "seconds",
            format!("{} is not above 0 and at most {LONGEST_S}", scenario.seconds),
        );
    }
    if !(1..=MOST_PAYLOAD_BYTES).contains(&scenario.payload_bytes) {
        let message = format!("{} is not from 1 to {MOST_PAYLOAD_BYTES} bytes", scenario.payload_bytes);
        return fail("payload", message);
    }
    if scenario.load.is_some_and(|load| !(load > 0.0 && load <= 10.0)) {
        return fail("load", "it is not above 0 and at most 10".to_owned());
    }
    if scenario.traffic == Traffic::Relay && scenario.stations < 2 {
        return fail("traffic", "relay needs at least 2 stations".to_owned());
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // counts and times below 2^53
const fn to_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_of_equals_and_one_nth_of_a_monopoly() {
        assert!((jain_index(&[3.0, 3.0, 3.0]) - 1.0).abs() < 1e-12);
        assert!((jain_index(&[5.0, 0.0]) - 0.5).abs() < 1e-12);
        assert!((jain_index(&[0.0; 4]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn one_station_alone_is_arithmetic() {
        // 34 us DIFS, 67.5 us mean back-off, 248 us data, 16 us SIFS, 28 us ACK at 24 Mb/s.
        let phy = Phy::parse("802.11g-54").unwrap();
        let mbit = single_station_mbit_per_s(phy, None, 1500);
        assert!((mbit - 12_000.0 / 393.5).abs() < 1e-9, "{mbit}");
    }
}
