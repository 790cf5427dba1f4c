//! Late frames: a medium that delivers some of its frames later, for a while.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use serde::Deserialize;

use crate::medium::{Counters, Delivery, Frame, Loss, Medium};
use crate::random::Random;

/// Most delay and time, as far as they make sense.
const MOST_MS: f64 = 60_000.0;
const MOST_S: f64 = 86_400.0;

/// Which frames are late, by how much, and how long: a word to a running link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lateness {
    /// Names of ports.
    pub targets: Vec<String>,
    /// Names of the ports of which frames to and from targets are late.
    pub peers: Vec<String>,
    /// Whether those to targets are late.
    pub to: bool,
    /// Whether those from targets are late.
    pub from: bool,
    /// By how much, in ms.
    pub delay_ms: f64,
    /// Half width of its uniform variation, in ms.
    pub jitter_ms: f64,
    /// How long, in s; 0 ends what was said before.
    pub for_s: f64,
}

/// What is in force.
#[derive(Debug)]
struct Now {
    /// By sender and receiver.
    paths: Vec<bool>,
    delay_ns: f64,
    jitter_ns: f64,
    until_ns: u64,
}

/// A medium with frames that are late. Frames from one port to another never overtake each other.
pub struct Late {
    medium: Box<dyn Medium>,
    ports: usize,
    random: Random,
    now: Option<Now>,
    /// Senders of the frames that were offered since.
    senders: HashMap<u64, usize>,
    /// Deliveries that wait: when, in which order they came, and which.
    waiting: BinaryHeap<Reverse<(u64, u64, u64, usize)>>,
    order: u64,
    /// When the last delivery from one port to another is due, by both.
    last_ns: Vec<u64>,
    arrived: Vec<Delivery>,
}

impl Late {
    /// None are late yet. All randomness comes from `seed`.
    pub fn around(medium: Box<dyn Medium>, ports: usize, seed: u64) -> Self {
        Self {
            medium,
            ports,
            random: Random::new(seed),
            now: None,
            senders: HashMap::new(),
            waiting: BinaryHeap::new(),
            order: 0,
            last_ns: vec![0; ports * ports],
            arrived: Vec::new(),
        }
    }

    /// From `now_ns` on, in place of what was said before. `names`: of the ports. Errors: what is wrong.
    pub fn set(&mut self, now_ns: u64, lateness: &Lateness, names: &[String]) -> Result<(), String> {
        let place = |name: &String| {
            let found = names.iter().position(|other| other == name);
            found.ok_or_else(|| format!("there is no port {name:?}"))
        };
        for (field, value, most) in [
            ("delay_ms", lateness.delay_ms, MOST_MS),
            ("jitter_ms", lateness.jitter_ms, lateness.delay_ms),
            ("for_s", lateness.for_s, MOST_S),
        ] {
            if !(0.0..=most).contains(&value) {
                return Err(format!("{field}: {value} is not from 0 to {most}"));
            }
        }
        let mut paths = vec![false; self.ports * self.ports];
        for target in &lateness.targets {
            for peer in &lateness.peers {
                let (target, peer) = (place(target)?, place(peer)?);
                paths[peer * self.ports + target] |= lateness.to;
                paths[target * self.ports + peer] |= lateness.from;
            }
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within a day
        let for_ns = (lateness.for_s * 1e9) as u64;
        self.now = (for_ns > 0).then(|| Now {
            paths,
            delay_ns: lateness.delay_ms * 1e6,
            jitter_ns: lateness.jitter_ms * 1e6,
            until_ns: now_ns + for_ns,
        });
        Ok(())
    }

    /// When a frame that arrives at `at_ns` by that path is delivered.
    fn delivered_ns(&mut self, at_ns: u64, path: usize) -> u64 {
        let mut due_ns = at_ns;
        if let Some(now) = self.now.as_ref().filter(|now| at_ns < now.until_ns && now.paths[path]) {
            let way = 2.0 * self.random.unit() - 1.0;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // jitter is at most the delay
            let extra_ns = (now.delay_ns + way * now.jitter_ns) as u64;
            due_ns += extra_ns;
        }
        let due_ns = due_ns.max(self.last_ns[path]);
        self.last_ns[path] = due_ns;
        due_ns
    }
}

impl Medium for Late {
    fn offer(&mut self, now_ns: u64, frame: Frame) -> bool {
        if self.now.as_ref().is_some_and(|now| now_ns >= now.until_ns) {
            self.now = None;
        }
        if self.now.is_some() || !self.waiting.is_empty() {
            self.senders.insert(frame.id, frame.from);
        } else {
            // Nothing is late, and nothing can be overtaken.
            self.senders.clear();
        }
        self.medium.offer(now_ns, frame)
    }

    fn due_ns(&self) -> Option<u64> {
        let waiting = self.waiting.peek().map(|Reverse((at_ns, ..))| *at_ns);
        self.medium.due_ns().into_iter().chain(waiting).min()
    }

    fn wake_ns(&self) -> Option<u64> {
        let waiting = self.waiting.peek().map(|Reverse((at_ns, ..))| *at_ns);
        self.medium.wake_ns().into_iter().chain(waiting).min()
    }

    fn advance(&mut self, now_ns: u64, out: &mut Vec<Delivery>) {
        if self.now.is_none() && self.waiting.is_empty() {
            return self.medium.advance(now_ns, out);
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        self.medium.advance(now_ns, &mut arrived);
        for delivery in arrived.drain(..) {
            let Some(sender) = self.senders.get(&delivery.id) else {
                out.push(delivery);
                continue;
            };
            let at_ns = self.delivered_ns(delivery.at_ns, sender * self.ports + delivery.to);
            self.order += 1;
            self.waiting
                .push(Reverse((at_ns, self.order, delivery.id, delivery.to)));
        }
        self.arrived = arrived;
        while let Some(Reverse((at_ns, _, id, to))) = self.waiting.peek().copied()
            && at_ns <= now_ns
        {
            self.waiting.pop();
            out.push(Delivery { id, to, at_ns });
        }
    }

    fn losses(&mut self, out: &mut Vec<(u64, Loss)>) {
        self.medium.losses(out);
    }

    fn counters(&self) -> Counters {
        self.medium.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Duplex, MediumConfig, PointConfig, Port, build};

    const MS: u64 = 1_000_000;

    fn late() -> (Late, Vec<String>) {
        let config = MediumConfig::PointToPoint(PointConfig {
            rate_mbit: None,
            delay_ms: 1.0,
            jitter_ms: 0.0,
            loss_percent: 0.0,
            duplex: Duplex::Full,
            queue_frames: 1000,
        });
        let names: Vec<String> = ["n1", "n2", "n3"].map(str::to_owned).to_vec();
        let port = |name: &String| Port {
            name: name.clone(),
            wired: false,
        };
        let ports: Vec<Port> = names.iter().map(port).collect();
        (Late::around(build(&config, &ports, 1.0, 1).unwrap(), 3, 7), names)
    }

    fn word(change: impl FnOnce(&mut Lateness)) -> Lateness {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut word = Lateness {
            targets: list(&["n1"]),
            peers: list(&["n2"]),
            to: true,
            from: false,
            delay_ms: 100.0,
            jitter_ms: 0.0,
            for_s: 1.0,
        };
        change(&mut word);
        word
    }

    /// When a frame that is sent at `at_ms` arrives, in ms after it; all events up to then are carried out.
    fn takes_ms(late: &mut Late, id: u64, at_ms: u64, from: usize, to: usize) -> u64 {
        let mut out = Vec::new();
        late.advance(at_ms * MS, &mut out);
        assert!(late.offer(
            at_ms * MS,
            Frame {
                id,
                from,
                to: Some(to),
                bytes: 100
            }
        ));
        while let Some(due_ns) = late.due_ns() {
            late.advance(due_ns, &mut out);
        }
        out.iter().find(|delivery| delivery.id == id).unwrap().at_ns / MS - at_ms
    }

    #[test]
    fn only_frames_of_its_paths_are_late_and_only_while_it_lasts() {
        let (mut late, names) = late();
        assert_eq!(takes_ms(&mut late, 1, 0, 1, 0), 1);
        late.set(10 * MS, &word(|_| {}), &names).unwrap();
        assert_eq!(takes_ms(&mut late, 2, 10, 1, 0), 101);
        assert_eq!(takes_ms(&mut late, 3, 200, 0, 1), 1, "from the target");
        assert_eq!(takes_ms(&mut late, 4, 300, 2, 0), 1, "from another");
        assert_eq!(takes_ms(&mut late, 5, 1020, 1, 0), 1, "its time is over");
        late.set(2000 * MS, &word(|word| word.for_s = 100.0), &names).unwrap();
        assert_eq!(takes_ms(&mut late, 6, 2000, 1, 0), 101);
        late.set(3000 * MS, &word(|word| word.for_s = 0.0), &names).unwrap();
        assert_eq!(takes_ms(&mut late, 7, 3000, 1, 0), 1, "it was ended");
    }

    #[test]
    fn late_frames_vary_within_the_jitter_and_do_not_overtake_each_other() {
        let (mut late, names) = late();
        late.set(0, &word(|word| word.jitter_ms = 50.0), &names).unwrap();
        let mut out = Vec::new();
        for id in 0..=100 {
            // The last is sent when lateness is over, and still does not arrive before the others.
            let at_ns = id * 10 * MS + u64::from(id == 100) * MS;
            late.advance(at_ns, &mut out);
            late.offer(
                at_ns,
                Frame {
                    id,
                    from: 1,
                    to: Some(0),
                    bytes: 100,
                },
            );
        }
        late.advance(5000 * MS, &mut out);
        assert!(out.iter().map(|delivery| delivery.id).eq(0..=100));
        let extra = |place: usize| out[place].at_ns / MS - place as u64 * 10 - 1;
        let extras: Vec<u64> = (0..100).map(extra).collect();
        assert!(extras.iter().all(|ms| (50..=150).contains(ms)), "{extras:?}");
        assert!(extras.iter().any(|ms| *ms < 90) && extras.iter().any(|ms| *ms > 110));
        assert_eq!(late.due_ns(), None);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let (mut late, names) = late();
        type Change = fn(&mut Lateness);
        let changes: [(Change, &str); 4] = [
            (|word| word.targets[0] = "n9".to_owned(), "no port \"n9\""),
            (|word| word.delay_ms = -1.0, "delay_ms: -1"),
            (|word| word.jitter_ms = 101.0, "jitter_ms: 101 is not from 0 to 100"),
            (|word| word.for_s = f64::NAN, "for_s: NaN"),
        ];
        for (change, message) in changes {
            let error = late.set(0, &word(change), &names).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
