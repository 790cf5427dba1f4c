//! What every medium does: frames in, deliveries out, on a virtual clock.

use serde::Serialize;

/// A frame that a port sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The caller's name for it; comes back in its deliveries.
    pub id: u64,
    /// Port that sends it.
    pub from: usize,
    /// Port that it is for; None: every other port (broadcast).
    pub to: Option<usize>,
    /// Ethernet payload (the IP packet), in bytes.
    pub bytes: usize,
}

/// A frame that arrives at a port. A broadcast has one delivery per receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The frame's.
    pub id: u64,
    /// Port at which it arrives.
    pub to: usize,
    /// When, in virtual nanoseconds.
    pub at_ns: u64,
}

/// Why an accepted frame does not arrive at a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A queue on its way was full.
    QueueFull,
    /// It was lost at random, damaged, or given up.
    Lost,
}

/// What a medium has done so far. A medium leaves at 0 what it does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Frames offered.
    pub offered: u64,
    /// Deliveries: a broadcast counts once per receiver.
    pub delivered: u64,
    /// Bytes of those.
    pub delivered_bytes: u64,
    /// Frames that found a full queue, at the sender or at the access point.
    pub queue_drops: u64,
    /// Frames lost at random (`loss_percent`), or, on 802.11, given up at the retry limit and broadcasts not received: once per
    /// receiver.
    pub lost: u64,
    /// 802.11: attempts at the medium, an aggregate or an RTS counted once.
    pub attempts: u64,
    /// 802.11: attempts that overlapped another transmission at their receiver.
    pub collisions: u64,
    /// 802.11: attempts that were not the first one of their frames.
    pub retries: u64,
    /// Time during which at least one transmission was in the air, in virtual nanoseconds (full duplex: of all senders together).
    pub busy_ns: u64,
}

/// A medium between ports: a state machine on a virtual clock.
///
/// Times never go backwards: `now_ns` is at least that of the call before. `offer` at a time later than `due_ns` first needs
/// `advance` to that time.
pub trait Medium: Send {
    /// Takes a frame at `now_ns`; false if the sender's queue is full and the frame is dropped.
    fn offer(&mut self, now_ns: u64, frame: Frame) -> bool;
    /// Virtual time of the next event; None while nothing is under way.
    fn due_ns(&self) -> Option<u64>;
    /// No earlier than `due_ns`, no later than the next delivery if nothing is offered; None while nothing is under way. Events
    /// before it may be carried out at any later time, before anything is offered: what comes out, and its virtual times, is the
    /// same.
    fn wake_ns(&self) -> Option<u64> {
        self.due_ns()
    }
    /// Carries out all events up to `now_ns`, in order, and appends what arrives. Lost frames never come out.
    fn advance(&mut self, now_ns: u64, out: &mut Vec<Delivery>);
    /// Appends the accepted frames that will not arrive, by id, once per receiver, as far as they are known since the call before:
    /// whoever keeps their bytes may then forget them.
    fn losses(&mut self, _out: &mut Vec<(u64, Loss)>) {}
    /// What it has done so far.
    fn counters(&self) -> Counters;
}
