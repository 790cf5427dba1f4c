//! The distributed coordination function: nodes that share one half-duplex medium, event by event.
//!
//! IEEE 802.11-2016, 10.3 (DCF) and 10.24 (block ACK). Every node has a view of its own of the medium: it hears those whom it
//! hears, and cannot decode what overlaps. Transmissions that begin at the same instant do not hear each other; one that begins
//! later, by however little, does: propagation and carrier sensing take no time. Nothing is captured: whatever overlaps is lost.

mod foresight;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::medium::{Counters, Frame};
use crate::random::Random;
use crate::wifi::contention::Contention;
use crate::wifi::phy::{ACK_BYTES, BLOCK_ACK_BYTES, RTS_BYTES, Rate, Standard, Timing};
use crate::wifi::queue::{Packet, Queue, Selection};

/// What all nodes have in common.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The standard.
    pub standard: Standard,
    /// Highest rate of control frames; None: as the standard says.
    pub control_rate: Option<Rate>,
    /// Bytes of a transmission from which on it is announced by RTS; None: never.
    pub rts_threshold_bytes: Option<usize>,
    /// Most frames of an A-MPDU; 1: none.
    pub aggregate: usize,
    /// Attempts after which a frame is given up; None: never.
    pub retry_limit: Option<u32>,
    /// Probability that a data frame is damaged though nothing overlapped it.
    pub frame_error: f64,
    /// Most frames that wait at a node.
    pub queue_frames: usize,
}

/// A frame that a node received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The frame.
    pub frame: Frame,
    /// The node.
    pub node: usize,
    /// When its transmission ended.
    pub at_ns: u64,
}

/// A node as it takes part.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Highest rate of data frames to and from it.
    pub rate: Rate,
    /// Node of its access point, whose broadcasts are for it; None: an access point.
    pub access_point: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Data,
    Rts,
    Cts,
    Ack,
}

/// A transmission in the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Transmission {
    kind: Kind,
    from: usize,
    /// None: broadcast.
    to: Option<usize>,
    lasts_ns: u64,
    /// From its end on: how long those who decode it leave the medium alone.
    reserves_ns: u64,
    /// Airtime of its answer, which those who cannot decode it leave room for (EIFS, dot11DynamicEIFSActivated).
    answer_ns: u64,
}

/// What happens at an instant, in this order: what ends does so before anything begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    End {
        id: u64,
        transmission: Transmission,
    },
    Timeout {
        node: usize,
    },
    /// An answer, or the data after a CTS.
    Begin(Transmission),
}

/// What a node is sending, from its first transmission to the answer.
#[derive(Clone, Debug)]
struct Exchange {
    selection: Selection,
    data: Transmission,
    /// When the answer that is waited for must have come.
    deadline_ns: Option<u64>,
}

#[derive(Clone, Debug)]
struct Node {
    member: Member,
    contention: Contention,
    queue: Queue,
    exchange: Option<Exchange>,
    /// The transmission that it receives; None also if there are several, or if it sends itself.
    receives: Option<u64>,
}

impl Node {
    /// When it will send what waits; None if nothing waits, or while the medium is busy.
    fn access_ns(&self) -> Option<u64> {
        (self.exchange.is_none() && !self.queue.is_empty())
            .then(|| self.contention.access_ns())
            .flatten()
    }
}

/// Nodes on one medium.
pub struct Dcf {
    settings: Settings,
    timing: Timing,
    nodes: Vec<Node>,
    /// Who hears each node.
    heard_by: Vec<Vec<usize>>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    next_access_ns: Option<u64>,
    random: Random,
    next_id: u64,
    in_the_air: u32,
    busy_since_ns: u64,
    counters: Counters,
    lost: Vec<Packet>,
}

impl Dcf {
    /// Silent nodes. `hears(a, b)`: whether a and b hear each other.
    pub fn new(settings: Settings, members: &[Member], hears: impl Fn(usize, usize) -> bool, seed: u64) -> Self {
        let timing = settings.standard.timing();
        let node = |member: &Member| Node {
            member: *member,
            contention: Contention::new(timing),
            queue: Queue::new(settings.queue_frames),
            exchange: None,
            receives: None,
        };
        let all = 0..members.len();
        let heard_by = all
            .clone()
            .map(|sender| {
                all.clone()
                    .filter(|other| *other != sender && hears(sender, *other))
                    .collect()
            })
            .collect();
        Self {
            nodes: members.iter().map(node).collect(),
            heard_by,
            timing,
            settings,
            events: BinaryHeap::new(),
            next_access_ns: None,
            random: Random::new(seed),
            next_id: 0,
            in_the_air: 0,
            busy_since_ns: 0,
            counters: Counters::default(),
            lost: Vec::new(),
        }
    }

    /// What was given up, and broadcasts with each node that did not receive them, since the call before.
    pub fn lost(&mut self) -> std::vec::Drain<'_, Packet> {
        self.lost.drain(..)
    }

    /// Attempts, collisions, retries and busy time of the medium; the rest is for who knows where frames come from and go to.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Frames that wait at a node, what it is sending included.
    pub fn waiting(&self, node: usize) -> usize {
        self.nodes[node].queue.len()
    }

    /// Gives a node a frame to send; false if its queue is full. Everything due before `now_ns` must have been done.
    pub fn enqueue(&mut self, now_ns: u64, node: usize, packet: Packet) -> bool {
        let node = &mut self.nodes[node];
        let idle = node.queue.is_empty();
        if !node.queue.push(packet) {
            return false;
        }
        if idle {
            node.contention.ready(now_ns, &mut self.random);
            self.next_access_ns = earlier(self.next_access_ns, node.access_ns());
        }
        true
    }

    /// Time of the next event.
    pub fn due_ns(&self) -> Option<u64> {
        let event = self.events.peek().map(|Reverse((at_ns, _))| *at_ns);
        earlier(event, self.next_access_ns)
    }

    /// Carries out everything of the next instant at which something is due, and appends what arrives.
    pub fn step(&mut self, out: &mut Vec<Arrival>) {
        let Some(now_ns) = self.due_ns() else {
            return;
        };
        let mut begins = Vec::new();
        while let Some(event) = self.pop(now_ns) {
            match event {
                Event::End { id, transmission } => self.end(now_ns, id, &transmission, out),
                Event::Timeout { node } => self.time_out(now_ns, node, out),
                Event::Begin(transmission) => begins.push((transmission, false)),
            }
        }
        for node in 0..self.nodes.len() {
            if self.nodes[node].access_ns() == Some(now_ns) {
                begins.push((self.contend(node), true));
            }
        }
        self.begin(now_ns, &begins);
        self.next_access_ns = self.nodes.iter().filter_map(Node::access_ns).min();
    }

    fn pop(&mut self, now_ns: u64) -> Option<Event> {
        let due = self.events.peek().is_some_and(|Reverse((at_ns, _))| *at_ns == now_ns);
        due.then(|| self.events.pop())
            .flatten()
            .map(|Reverse((_, event))| event)
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.events.push(Reverse((at_ns, event)));
    }

    /// The first transmission of a node that has won the medium: an RTS, or the data at once.
    fn contend(&mut self, node: usize) -> Transmission {
        let standard = self.settings.standard;
        let sender = &self.nodes[node];
        let to = sender.queue.next_receiver();
        let rate = to.map_or(sender.member.rate, |to| {
            sender.member.rate.min(self.nodes[to].member.rate)
        });
        let selection = sender.queue.select(standard, rate, self.settings.aggregate);
        let first = selection.places[0];
        let payload_bytes = sender.queue.packet(first).frame.bytes;
        let control_rate = standard.control_rate(rate, self.settings.control_rate);
        let (lasts_ns, answer_bytes) = match (to, selection.aggregate_bytes) {
            (None, _) => (standard.broadcast_ns(payload_bytes), ACK_BYTES),
            (Some(_), None) => (standard.data_ns(rate, payload_bytes), ACK_BYTES),
            (Some(_), Some(bytes)) => (standard.aggregate_ns(rate, bytes), BLOCK_ACK_BYTES),
        };
        let answer_ns = standard.control_ns(control_rate, answer_bytes);
        let data = Transmission {
            kind: Kind::Data,
            from: node,
            to,
            lasts_ns,
            reserves_ns: to.map_or(0, |_| self.timing.sifs_ns + answer_ns),
            answer_ns,
        };
        self.counters.attempts += 1;
        self.counters.retries += u64::from(sender.queue.attempts(first) > 0);
        let bytes = selection.aggregate_bytes.unwrap_or(standard.frame_bytes(payload_bytes));
        let announced = to.is_some()
            && self
                .settings
                .rts_threshold_bytes
                .is_some_and(|threshold| bytes >= threshold);
        self.nodes[node].exchange = Some(Exchange {
            selection,
            data,
            deadline_ns: None,
        });
        if announced {
            self.request_to_send(&data, control_rate)
        } else {
            data
        }
    }

    fn request_to_send(&self, data: &Transmission, control_rate: Rate) -> Transmission {
        let cts_ns = self.settings.standard.control_ns(control_rate, ACK_BYTES);
        Transmission {
            kind: Kind::Rts,
            lasts_ns: self.settings.standard.control_ns(control_rate, RTS_BYTES),
            // The medium is free again unless the data begin by then (10.3.2.4); they say themselves how long they take it.
            reserves_ns: 2 * self.timing.sifs_ns + cts_ns + 2 * self.timing.slot_ns,
            answer_ns: cts_ns,
            ..*data
        }
    }

    /// Transmissions that begin at one instant, so without hearing each other; each with whether it was contended for.
    fn begin(&mut self, now_ns: u64, begins: &[(Transmission, bool)]) {
        for (transmission, contended) in begins {
            let sender = &mut self.nodes[transmission.from];
            sender.contention.send_begin(*contended);
            sender.receives = None;
            let end_ns = now_ns + transmission.lasts_ns;
            if transmission.to.is_some() && matches!(transmission.kind, Kind::Data | Kind::Rts) {
                let deadline_ns = end_ns + self.timing.sifs_ns + transmission.answer_ns;
                sender.contention.reserve(deadline_ns);
                if let Some(exchange) = &mut sender.exchange {
                    exchange.deadline_ns = Some(deadline_ns);
                }
                self.schedule(
                    deadline_ns,
                    Event::Timeout {
                        node: transmission.from,
                    },
                );
            }
        }
        for (transmission, _) in begins {
            let id = self.next_id;
            self.next_id += 1;
            for other in &self.heard_by[transmission.from] {
                let node = &mut self.nodes[*other];
                node.receives = node.contention.silent().then_some(id);
                let waiting = node.exchange.is_none() && !node.queue.is_empty();
                node.contention.heard_begin(now_ns, waiting, &mut self.random);
            }
            if self.in_the_air == 0 {
                self.busy_since_ns = now_ns;
            }
            self.in_the_air += 1;
            let transmission = *transmission;
            self.schedule(now_ns + transmission.lasts_ns, Event::End { id, transmission });
        }
    }

    fn end(&mut self, now_ns: u64, id: u64, transmission: &Transmission, out: &mut Vec<Arrival>) {
        self.in_the_air -= 1;
        if self.in_the_air == 0 {
            self.counters.busy_ns += now_ns - self.busy_since_ns;
        }
        self.nodes[transmission.from].contention.heard_end(now_ns, None);
        let eifs_ns = self.eifs_ns(transmission);
        let mut decoded_by = Vec::new();
        for other in &self.heard_by[transmission.from] {
            let node = &mut self.nodes[*other];
            let decoded = node.receives == Some(id);
            node.contention.heard_end(now_ns, (!decoded).then_some(eifs_ns));
            if decoded {
                node.receives = None;
                decoded_by.push(*other);
                if transmission.to != Some(*other) {
                    node.contention.reserve(now_ns + transmission.reserves_ns);
                }
            }
        }
        match transmission.to {
            None => self.broadcast_ends(now_ns, transmission.from, &decoded_by, out),
            Some(to) if decoded_by.contains(&to) => self.receive(now_ns, transmission, to, out),
            Some(_) => {
                let attempt = matches!(transmission.kind, Kind::Data | Kind::Rts);
                self.counters.collisions += u64::from(attempt);
            }
        }
    }

    /// EIFS: room for the answer that those who did not decode the transmission do not know of.
    const fn eifs_ns(&self, transmission: &Transmission) -> u64 {
        self.timing.sifs_ns + transmission.answer_ns + self.timing.ifs_ns
    }

    /// The node to which a transmission is addressed has decoded it.
    fn receive(&mut self, now_ns: u64, transmission: &Transmission, node: usize, out: &mut Vec<Arrival>) {
        let begin_ns = now_ns + self.timing.sifs_ns;
        match transmission.kind {
            Kind::Data => self.receive_data(now_ns, transmission, out),
            Kind::Rts => {
                if !self.nodes[node].contention.reserved(now_ns) {
                    self.clear_to_send(begin_ns, transmission);
                }
            }
            Kind::Cts => {
                if let Some(exchange) = &mut self.nodes[node].exchange {
                    exchange.deadline_ns = None;
                    let data = exchange.data;
                    self.nodes[node].contention.reserve(begin_ns);
                    self.schedule(begin_ns, Event::Begin(data));
                }
            }
            Kind::Ack => self.acknowledged(now_ns, node, out),
        }
    }

    fn clear_to_send(&mut self, begin_ns: u64, request: &Transmission) {
        let (Some(node), Some(exchange)) = (request.to, &self.nodes[request.from].exchange) else {
            return;
        };
        let data = exchange.data;
        let cts = Transmission {
            kind: Kind::Cts,
            from: node,
            to: Some(request.from),
            lasts_ns: request.answer_ns,
            reserves_ns: self.timing.sifs_ns + data.lasts_ns + data.reserves_ns,
            answer_ns: request.answer_ns,
        };
        // Until the data must have begun.
        let until_ns = begin_ns + cts.lasts_ns + self.timing.sifs_ns + self.timing.slot_ns;
        self.nodes[node].contention.reserve(until_ns);
        self.schedule(begin_ns, Event::Begin(cts));
    }

    fn receive_data(&mut self, now_ns: u64, data: &Transmission, out: &mut Vec<Arrival>) {
        let (Some(node), Some(exchange)) = (data.to, &self.nodes[data.from].exchange) else {
            return;
        };
        let mut answered = false;
        for place in exchange.selection.places.clone() {
            if !self.damaged() {
                answered = true;
                self.nodes[data.from].queue.receive(place);
            }
        }
        if !answered {
            let eifs_ns = self.eifs_ns(data);
            self.nodes[node].contention.damaged(eifs_ns);
            return;
        }
        self.pass_up(now_ns, data.from, node, out);
        let begin_ns = now_ns + self.timing.sifs_ns;
        self.nodes[node].contention.reserve(begin_ns + data.answer_ns);
        let ack = Transmission {
            kind: Kind::Ack,
            from: node,
            to: Some(data.from),
            lasts_ns: data.answer_ns,
            reserves_ns: 0,
            answer_ns: data.answer_ns,
        };
        self.schedule(begin_ns, Event::Begin(ack));
    }

    fn damaged(&mut self) -> bool {
        self.settings.frame_error > 0.0 && self.random.unit() < self.settings.frame_error
    }

    /// What the receiver can pass up of the frames of a sender.
    fn pass_up(&mut self, now_ns: u64, sender: usize, receiver: usize, out: &mut Vec<Arrival>) {
        self.nodes[sender].queue.pass_up(receiver, |frame| {
            out.push(Arrival {
                frame,
                node: receiver,
                at_ns: now_ns,
            });
        });
    }

    fn broadcast_ends(&mut self, now_ns: u64, sender: usize, decoded_by: &[usize], out: &mut Vec<Arrival>) {
        let Some(exchange) = self.nodes[sender].exchange.take() else {
            return;
        };
        let place = exchange.selection.places[0];
        let packet = self.nodes[sender].queue.packet(place);
        for node in 0..self.nodes.len() {
            if self.nodes[node].member.access_point != Some(sender) || node == packet.origin {
                continue;
            }
            if decoded_by.contains(&node) && !self.damaged() {
                out.push(Arrival {
                    frame: packet.frame,
                    node,
                    at_ns: now_ns,
                });
            } else {
                self.lost.push(Packet {
                    next: Some(node),
                    ..packet
                });
            }
        }
        self.nodes[sender].queue.remove(place);
        self.nodes[sender].contention.succeeded(&mut self.random);
    }

    fn acknowledged(&mut self, now_ns: u64, node: usize, out: &mut Vec<Arrival>) {
        if let Some(exchange) = self.nodes[node].exchange.take() {
            let sender = &mut self.nodes[node];
            sender.queue.acknowledge(&exchange.selection.places);
            sender.contention.succeeded(&mut self.random);
            self.give_up(now_ns, node, exchange.data.to, out);
        }
    }

    /// No answer came in time.
    fn time_out(&mut self, now_ns: u64, node: usize, out: &mut Vec<Arrival>) {
        let sender = &mut self.nodes[node];
        let due = |exchange: &mut Exchange| exchange.deadline_ns == Some(now_ns);
        if let Some(exchange) = sender.exchange.take_if(due) {
            sender.queue.miss(&exchange.selection.places);
            if self.give_up(now_ns, node, exchange.data.to, out) {
                self.nodes[node].contention.succeeded(&mut self.random);
            } else {
                self.nodes[node].contention.failed(&mut self.random);
            }
        }
    }

    /// Whether frames were given up: the receiver then passes up what they held back.
    fn give_up(&mut self, now_ns: u64, node: usize, receiver: Option<usize>, out: &mut Vec<Arrival>) -> bool {
        let (Some(limit), Some(receiver)) = (self.settings.retry_limit, receiver) else {
            return false;
        };
        let any = self.nodes[node].queue.give_up(limit, &mut self.lost);
        if any {
            self.pass_up(now_ns, node, receiver, out);
            self.nodes[node].queue.forget();
        }
        any
    }
}

fn earlier(first: Option<u64>, second: Option<u64>) -> Option<u64> {
    match (first, second) {
        (Some(first), Some(second)) => Some(first.min(second)),
        (first, second) => first.or(second),
    }
}
