//! The point-to-point medium: a switch, and from every port a cable of its own to it, with rate, delay, jitter, loss and
//! queues.
//!
//! A frame waits in its port's queue, takes its time on the cable up, crosses the switch after the delay, waits in the queue
//! of the port that it goes to, and takes its time on the cable down. On a half-duplex cable one direction sends at a time;
//! where both have something to send they take turns. Nothing collides: that is the business of the 802.11 medium.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use crate::config::{ConfigError, Duplex, PointConfig};
use crate::medium::{Counters, Delivery, Frame, Loss, Medium};

/// Bytes of an Ethernet header. The rate counts them and the payload, without preamble, checksum and gap: so does the
/// kernel's token bucket filter, and a link has one rate whichever of the two makes it.
const HEADER_BYTES: usize = 14;
const MOST_DELAY_MS: f64 = 60_000.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Up,
    Down,
}

impl Way {
    fn other(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

/// A frame on a cable or in its queue; on the way down it has one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    id: u64,
    to: Option<usize>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Direction {
    queue: VecDeque<Waiting>,
    sending: Option<Waiting>,
}

/// The cable of one port.
#[derive(Debug)]
struct Cable {
    up: Direction,
    down: Direction,
    /// Which direction of a half-duplex cable sent last.
    last: Way,
}

impl Cable {
    fn new() -> Self {
        Self {
            up: Direction::default(),
            down: Direction::default(),
            last: Way::Down,
        }
    }

    fn direction(&mut self, way: Way) -> &mut Direction {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }

    /// The direction that may begin to send now, if `way` has just got a frame or become free.
    fn next(&self, way: Way, duplex: Duplex) -> Option<Way> {
        let waits = |way: Way| match way {
            Way::Up => !self.up.queue.is_empty(),
            Way::Down => !self.down.queue.is_empty(),
        };
        let sends = |direction: &Direction| direction.sending.is_some();
        match duplex {
            Duplex::Full => {
                let free = !sends(if way == Way::Up { &self.up } else { &self.down });
                (free && waits(way)).then_some(way)
            }
            Duplex::Half if sends(&self.up) || sends(&self.down) => None,
            Duplex::Half => [self.last.other(), self.last].into_iter().find(|way| waits(*way)),
        }
    }
}

/// What happens at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// The last bit of a frame has left the cable.
    Sent { port: usize, way: Way },
    /// A frame has crossed the switch.
    Crossed { to: usize, frame: Waiting },
}

/// In order of time; what happens at the same instant, in the order in which it was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at_ns: u64,
    order: u64,
    happening: Happening,
}

/// The way from one port to another across the switch.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    /// Frames that have come to it, which number its random draws.
    frames: u64,
    last_ns: u64,
}

/// A switch with a cable to every port.
#[derive(Debug)]
pub struct PointToPoint {
    config: PointConfig,
    seed: u64,
    cables: Vec<Cable>,
    paths: Vec<Path>,
    events: BinaryHeap<Reverse<Event>>,
    planned: u64,
    losses: Vec<(u64, Loss)>,
    counters: Counters,
}

impl PointToPoint {
    /// Between so many ports. All randomness comes from `seed`. Errors name the setting.
    pub fn new(config: &PointConfig, ports: usize, seed: u64) -> Result<Self, ConfigError> {
        check(config)?;
        Ok(Self {
            config: config.clone(),
            seed,
            cables: (0..ports).map(|_| Cable::new()).collect(),
            paths: vec![Path::default(); ports * ports],
            events: BinaryHeap::new(),
            planned: 0,
            losses: Vec::new(),
            counters: Counters::default(),
        })
    }

    fn plan(&mut self, at_ns: u64, happening: Happening) {
        self.events.push(Reverse(Event {
            at_ns,
            order: self.planned,
            happening,
        }));
        self.planned += 1;
    }

    /// Takes out the next event, if it is due by then.
    fn next_until(&mut self, now_ns: u64) -> Option<Event> {
        let next = self.events.peek_mut().filter(|next| next.0.at_ns <= now_ns)?;
        Some(PeekMut::pop(next).0)
    }

    fn sent(&mut self, now_ns: u64, port: usize, way: Way, out: &mut Vec<Delivery>) {
        if let Some(frame) = self.cables[port].direction(way).sending.take() {
            match way {
                Way::Up => self.cross(now_ns, port, frame),
                Way::Down => {
                    self.counters.delivered += 1;
                    self.counters.delivered_bytes += frame.bytes as u64;
                    out.push(Delivery {
                        id: frame.id,
                        to: port,
                        at_ns: now_ns,
                    });
                }
            }
        }
        self.begin(now_ns, port, way);
    }

    /// Begins to send whatever may be sent.
    fn begin(&mut self, now_ns: u64, port: usize, way: Way) {
        let cable = &mut self.cables[port];
        let Some(way) = cable.next(way, self.config.duplex) else {
            return;
        };
        cable.last = way;
        let direction = cable.direction(way);
        direction.sending = direction.queue.pop_front();
        if let Some(frame) = direction.sending {
            let on_cable_ns = self.time_on_cable_ns(frame.bytes);
            self.counters.busy_ns += on_cable_ns;
            self.plan(now_ns + on_cable_ns, Happening::Sent { port, way });
        }
    }

    /// Through the switch, to one port or to all others.
    fn cross(&mut self, now_ns: u64, from: usize, frame: Waiting) {
        match frame.to {
            Some(to) => self.cross_to(now_ns, from, to, frame),
            None => (0..self.cables.len())
                .filter(|to| *to != from)
                .for_each(|to| self.cross_to(now_ns, from, to, frame)),
        }
    }

    fn cross_to(&mut self, now_ns: u64, from: usize, to: usize, frame: Waiting) {
        let pair = from * self.cables.len() + to;
        let number = self.paths[pair].frames;
        self.paths[pair].frames += 1;
        if self.draw(pair, number, 0) * 100.0 < self.config.loss_percent {
            self.counters.lost += 1;
            self.losses.push((frame.id, Loss::Lost));
            return;
        }
        let varied_ms = self.config.jitter_ms * (2.0 * self.draw(pair, number, 1) - 1.0);
        let delay_ns = nanoseconds((self.config.delay_ms + varied_ms).max(0.0) * 1e6);
        let at_ns = self.paths[pair].last_ns.max(now_ns + delay_ns);
        self.paths[pair].last_ns = at_ns;
        self.plan(at_ns, Happening::Crossed { to, frame });
    }

    fn crossed(&mut self, now_ns: u64, to: usize, frame: Waiting) {
        let queue = &mut self.cables[to].down.queue;
        if queue.len() >= self.config.queue_frames {
            self.counters.queue_drops += 1;
            self.losses.push((frame.id, Loss::QueueFull));
            return;
        }
        queue.push_back(frame);
        self.begin(now_ns, to, Way::Down);
    }

    fn time_on_cable_ns(&self, bytes: usize) -> u64 {
        #[allow(clippy::cast_precision_loss)] // a frame has few bits
        let bits = (8 * (bytes + HEADER_BYTES)) as f64;
        self.config
            .rate_mbit
            .map_or(0, |rate_mbit| nanoseconds(bits * 1e3 / rate_mbit))
    }

    /// Uniform in [0, 1), a pure function of the seed, the two ports and the number of the frame between them: which frames
    /// are lost does not depend on when they come.
    fn draw(&self, pair: usize, number: u64, purpose: u64) -> f64 {
        let bits = mix(mix(mix(mix(self.seed) ^ pair as u64) ^ number) ^ purpose);
        #[allow(clippy::cast_precision_loss)] // 53 bits fit
        let unit = (bits >> 11) as f64 / (1_u64 << 53) as f64;
        unit
    }
}

impl Medium for PointToPoint {
    fn offer(&mut self, now_ns: u64, frame: Frame) -> bool {
        self.counters.offered += 1;
        let queue = &mut self.cables[frame.from].up.queue;
        if queue.len() >= self.config.queue_frames {
            self.counters.queue_drops += 1;
            return false;
        }
        queue.push_back(Waiting {
            id: frame.id,
            to: frame.to,
            bytes: frame.bytes,
        });
        self.begin(now_ns, frame.from, Way::Up);
        true
    }

    fn due_ns(&self) -> Option<u64> {
        self.events.peek().map(|Reverse(event)| event.at_ns)
    }

    fn advance(&mut self, now_ns: u64, out: &mut Vec<Delivery>) {
        while let Some(event) = self.next_until(now_ns) {
            match event.happening {
                Happening::Sent { port, way } => self.sent(event.at_ns, port, way, out),
                Happening::Crossed { to, frame } => self.crossed(event.at_ns, to, frame),
            }
        }
    }

    fn losses(&mut self, out: &mut Vec<(u64, Loss)>) {
        out.append(&mut self.losses);
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

fn check(config: &PointConfig) -> Result<(), ConfigError> {
    let within = |name: &'static str, value: f64, most: f64, what: &str| {
        if (0.0..=most).contains(&value) {
            return Ok(());
        }
        Err(ConfigError::Setting(name, format!("{value} is not from 0 to {what}")))
    };
    if let Some(rate_mbit) = config.rate_mbit.filter(|rate| !(*rate > 0.0 && rate.is_finite())) {
        let message = format!("{rate_mbit} is not above 0; use null for no limit");
        return Err(ConfigError::Setting("rate_mbit", message));
    }
    within("delay_ms", config.delay_ms, MOST_DELAY_MS, "60000")?;
    within("jitter_ms", config.jitter_ms, config.delay_ms, "delay_ms")?;
    within("loss_percent", config.loss_percent, 100.0, "100")?;
    if config.queue_frames == 0 {
        return Err(ConfigError::Setting("queue_frames", "0 is not 1 or more".to_owned()));
    }
    Ok(())
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // times are positive and below 584 years
fn nanoseconds(time_ns: f64) -> u64 {
    time_ns.round() as u64
}

/// Finaliser of SplitMix64 (Steele, Lea and Flood 2014).
const fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
#[path = "point_tests.rs"]
mod tests;
