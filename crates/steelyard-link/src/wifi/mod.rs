//! 802.11: stations around access points, on one channel.
//!
//! Every port is a station, or hangs on the access points by a wire. A frame between stations goes over the medium twice: the access
//! point contends for it as one more station, with a queue of its own. Several access points are joined by a wire.

mod contention;
mod dcf;
pub mod phy;
mod queue;

use std::collections::{HashMap, HashSet};

use crate::config::{ConfigError, Port, WifiConfig};
use crate::medium::{Counters, Delivery, Frame, Loss, Medium};
use crate::wifi::dcf::{Arrival, Dcf, Member, Settings};
use crate::wifi::phy::{MOST_AGGREGATE, Phy, Rate, Standard};
use crate::wifi::queue::Packet;

/// Most ports, and most frames of a queue: what a mistake in a configuration must not exceed.
const MOST_PORTS: usize = 1000;
const MOST_QUEUE_FRAMES: usize = 1_000_000;
/// Most access points on the channel.
const MOST_ACCESS_POINTS: usize = 16;

/// Ports on an 802.11 medium.
pub struct Wifi {
    dcf: Dcf,
    /// Node of each port; None: wired.
    node_of: Vec<Option<usize>>,
    /// Port of each station, which is a node of the same number.
    port_of: Vec<usize>,
    access_points: usize,
    /// What wired ports receive, not handed over yet.
    over_wires: Vec<Delivery>,
    arrivals: Vec<Arrival>,
    /// Accepted frames that will not arrive, not asked for yet.
    losses: Vec<(u64, Loss)>,
    counters: Counters,
}

impl Wifi {
    /// The medium of a configuration. All stations have its rate, but those for which `rate_of` gives a lower one.
    pub fn new(
        config: &WifiConfig,
        ports: &[Port],
        rate_of: impl Fn(usize) -> Option<Rate>,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        let phy = Phy::parse(&config.phy).map_err(|message| ConfigError::Setting("phy", message))?;
        check(config, phy, ports)?;
        let mut node_of = vec![None; ports.len()];
        let mut port_of = Vec::new();
        for (place, _) in ports.iter().enumerate().filter(|(_, port)| !port.wired) {
            node_of[place] = Some(port_of.len());
            port_of.push(place);
        }
        let stations = port_of.len();
        let mut members: Vec<Member> = port_of
            .iter()
            .enumerate()
            .map(|(station, port)| Member {
                rate: rate_of(*port).unwrap_or(phy.rate),
                access_point: Some(access_point(stations, config.access_points, station)),
            })
            .collect();
        members.extend((0..config.access_points).map(|_| Member {
            rate: phy.rate,
            access_point: None,
        }));
        let nodes = port_of.iter().enumerate();
        let node_named: HashMap<&str, usize> = nodes.map(|(node, port)| (ports[*port].name.as_str(), node)).collect();
        let pair = |(first, second): &(String, String)| {
            Some((*node_named.get(first.as_str())?, *node_named.get(second.as_str())?))
        };
        let apart: HashSet<(usize, usize)> = config.hidden.iter().filter_map(pair).collect();
        let hears = |a: usize, b: usize| !apart.contains(&(a, b)) && !apart.contains(&(b, a));
        Ok(Self {
            dcf: Dcf::new(settings(config, phy.standard), &members, hears, seed),
            node_of,
            port_of,
            access_points: config.access_points,
            over_wires: Vec::new(),
            arrivals: Vec::new(),
            losses: Vec::new(),
            counters: Counters::default(),
        })
    }

    /// Frames that wait at a port's station; none at a wired port.
    pub fn waiting(&self, port: usize) -> usize {
        self.node_of[port].map_or(0, |node| self.dcf.waiting(node))
    }

    /// Frames that wait at the access point of a port's station; none at a wired port.
    pub fn waiting_at_access_point(&self, port: usize) -> usize {
        self.node_of[port].map_or(0, |node| self.dcf.waiting(self.access_point(node)))
    }

    /// Node to which a station sends, or which sends to it.
    fn access_point(&self, station: usize) -> usize {
        access_point(self.port_of.len(), self.access_points, station)
    }

    /// A frame has come to the access points, from a station or over a wire; false if it finds a full queue. A broadcast has
    /// several receivers: those who will not get it are losses.
    fn at_access_points(&mut self, now_ns: u64, frame: Frame) -> bool {
        let Some(to) = frame.to else {
            for port in 0..self.node_of.len() {
                if self.node_of[port].is_none() && port != frame.from {
                    self.over_wire(now_ns, frame, port);
                }
            }
            let first = self.port_of.len();
            for access_point in first..first + self.access_points {
                if !self.enqueue(now_ns, frame, access_point, None) {
                    let of_it = |station: &usize| self.access_point(*station) == access_point;
                    let receivers = (0..first)
                        .filter(of_it)
                        .filter(|station| self.port_of[*station] != frame.from);
                    self.lose(frame.id, Loss::QueueFull, receivers.count());
                }
            }
            return true;
        };
        match self.node_of[to] {
            Some(station) => self.enqueue(now_ns, frame, self.access_point(station), Some(station)),
            None => self.over_wire(now_ns, frame, to),
        }
    }

    /// A frame will not arrive at so many receivers.
    fn lose(&mut self, id: u64, loss: Loss, receivers: usize) {
        self.losses.extend(std::iter::repeat_n((id, loss), receivers));
    }

    /// What the medium lost: a broadcast that does not even reach its access point is lost to everybody else.
    fn lost(&mut self, packet: &Packet) {
        let to_access_point = packet.next.is_some_and(|node| node >= self.port_of.len());
        let everybody_else = packet.frame.to.is_none() && to_access_point;
        let receivers = if everybody_else { self.node_of.len() - 1 } else { 1 };
        self.counters.lost += receivers as u64;
        self.lose(packet.frame.id, Loss::Lost, receivers);
    }

    fn enqueue(&mut self, now_ns: u64, frame: Frame, node: usize, next: Option<usize>) -> bool {
        let origin = self.node_of[frame.from].unwrap_or(node);
        let relayed = next.is_some_and(|next| next >= self.port_of.len()) && !self.reaches_wires(frame);
        let packet = Packet {
            frame,
            origin,
            next,
            relayed,
        };
        let room = self.dcf.enqueue(now_ns, node, packet);
        self.counters.queue_drops += u64::from(!room);
        room
    }

    /// Whether a wired port receives the frame.
    fn reaches_wires(&self, frame: Frame) -> bool {
        match frame.to {
            Some(to) => self.node_of[to].is_none(),
            None => self.port_of.len() < self.node_of.len(),
        }
    }

    /// Ethernet takes no time here.
    fn over_wire(&mut self, now_ns: u64, frame: Frame, to: usize) -> bool {
        let delivery = self.delivery(now_ns, frame, to);
        self.over_wires.push(delivery);
        true
    }

    const fn delivery(&mut self, at_ns: u64, frame: Frame, to: usize) -> Delivery {
        self.counters.delivered += 1;
        self.counters.delivered_bytes += frame.bytes as u64;
        Delivery {
            id: frame.id,
            to,
            at_ns,
        }
    }

    /// What the next instant brings.
    fn step(&mut self, out: &mut Vec<Delivery>) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        self.dcf.step(&mut arrivals);
        for arrival in arrivals.drain(..) {
            if let Some(port) = self.port_of.get(arrival.node).copied() {
                let delivery = self.delivery(arrival.at_ns, arrival.frame, port);
                out.push(delivery);
            } else if !self.at_access_points(arrival.at_ns, arrival.frame) {
                self.lose(arrival.frame.id, Loss::QueueFull, 1);
            }
        }
        self.arrivals = arrivals;
        let lost: Vec<Packet> = self.dcf.lost().collect();
        for packet in &lost {
            self.lost(packet);
        }
        out.append(&mut self.over_wires);
    }
}

impl Medium for Wifi {
    fn offer(&mut self, now_ns: u64, frame: Frame) -> bool {
        self.counters.offered += 1;
        match self.node_of[frame.from] {
            Some(station) => self.enqueue(now_ns, frame, station, Some(self.access_point(station))),
            None => self.at_access_points(now_ns, frame),
        }
    }

    fn due_ns(&self) -> Option<u64> {
        // What came over a wire is due since it was offered.
        self.over_wires
            .first()
            .map(|delivery| delivery.at_ns)
            .or_else(|| self.dcf.due_ns())
    }

    fn wake_ns(&self) -> Option<u64> {
        let over_wires = self.over_wires.first().map(|delivery| delivery.at_ns);
        over_wires.or_else(|| self.dcf.wake_ns())
    }

    fn advance(&mut self, now_ns: u64, out: &mut Vec<Delivery>) {
        out.append(&mut self.over_wires);
        while self.dcf.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.step(out);
        }
    }

    fn losses(&mut self, out: &mut Vec<(u64, Loss)>) {
        out.append(&mut self.losses);
    }

    fn counters(&self) -> Counters {
        let medium = self.dcf.counters();
        Counters {
            attempts: medium.attempts,
            collisions: medium.collisions,
            retries: medium.retries,
            busy_ns: medium.busy_ns,
            ..self.counters
        }
    }
}

/// Access points are the nodes behind the stations, which associate with them in turn.
const fn access_point(stations: usize, access_points: usize, station: usize) -> usize {
    stations + station % access_points
}

fn settings(config: &WifiConfig, standard: Standard) -> Settings {
    Settings {
        standard,
        control_rate: config.ack_rate_mbit.map(Rate::of_mbit),
        rts_threshold_bytes: config.rts_threshold_bytes,
        aggregate: config.aggregate,
        retry_limit: config.retry_limit,
        frame_error: config.frame_error,
        queue_frames: config.queue_frames,
    }
}

fn check(config: &WifiConfig, phy: Phy, ports: &[Port]) -> Result<(), ConfigError> {
    let fail = |name: &'static str, message: String| Err(ConfigError::Setting(name, message));
    let between = |name: &'static str, value: usize, least: usize, most: usize| {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        fail(name, format!("{value} is not from {least} to {most}"))
    };
    between("ports", ports.len(), 1, MOST_PORTS)?;
    between("queue_frames", config.queue_frames, 1, MOST_QUEUE_FRAMES)?;
    between("aggregate", config.aggregate, 1, MOST_AGGREGATE)?;
    between("access_points", config.access_points, 1, MOST_ACCESS_POINTS)?;
    if config.aggregate > 1 && phy.standard != Standard::N {
        return fail("aggregate", format!("{phy} cannot aggregate; 802.11n can"));
    }
    if config.retry_limit == Some(0) {
        return fail("retry_limit", "0 attempts send nothing; null means no limit".to_owned());
    }
    if !(0.0..1.0).contains(&config.frame_error) {
        return fail(
            "frame_error",
            format!("{} is not a probability below 1", config.frame_error),
        );
    }
    let basic = phy.standard.basic_rates();
    if let Some(asked) = config.ack_rate_mbit.filter(|mbit| {
        let rate = Rate::of_mbit(*mbit);
        !basic.contains(&rate) || rate > phy.rate
    }) {
        let allowed: Vec<String> = basic
            .iter()
            .filter(|rate| **rate <= phy.rate)
            .map(ToString::to_string)
            .collect();
        return fail(
            "ack_rate_mbit",
            format!("{asked} is not one of {} ({phy})", allowed.join(", ")),
        );
    }
    let stations: Vec<&str> = ports
        .iter()
        .filter(|port| !port.wired)
        .map(|port| port.name.as_str())
        .collect();
    for name in config.hidden.iter().flat_map(|(first, second)| [first, second]) {
        if !stations.contains(&name.as_str()) {
            return fail(
                "hidden",
                format!("{name:?} is none of the stations {}", stations.join(", ")),
            );
        }
    }
    Ok(())
}
