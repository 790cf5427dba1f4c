//! What waits at a station: frames in order of arrival, of which those for one receiver go together in an A-MPDU.
//!
//! The queue also holds what the receiver has but cannot pass up yet, because a frame before it is still missing: frames leave in
//! the order in which they came, as the reordering buffer of a block ACK makes them do.

use std::collections::VecDeque;

use crate::medium::Frame;
use crate::wifi::phy::{MOST_AGGREGATE, Rate, Standard, subframe_bytes};

/// A frame on its way over the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The frame.
    pub frame: Frame,
    /// Node that put it on the medium for the first time; the access point for frames from a wire.
    pub origin: usize,
    /// Node that is to receive it; None: all of the access point that sends it (broadcast).
    pub next: Option<usize>,
    /// Whether its reception is nothing that a port sees: an access point only passes it on over the medium.
    pub relayed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    packet: Packet,
    attempts: u32,
    /// The receiver has it.
    received: bool,
    /// The sender knows.
    acknowledged: bool,
    /// The receiver has passed it up.
    passed: bool,
}

/// The frames of one transmission, by their places in the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Places, ascending; all for one receiver.
    pub places: Vec<usize>,
    /// Bytes of the A-MPDU; None: one frame by itself.
    pub aggregate_bytes: Option<usize>,
}

/// The queue of one node.
#[derive(Clone, Debug)]
pub struct Queue {
    entries: VecDeque<Entry>,
    most: usize,
}

impl Queue {
    /// An empty queue for at most that many frames.
    pub const fn new(most: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            most,
        }
    }

    /// Frames in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is to be sent. What is only held back for order has a frame before it that is to be sent.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends a frame; false if there is no room.
    pub fn push(&mut self, packet: Packet) -> bool {
        let room = self.entries.len() < self.most;
        if room {
            self.entries.push_back(Entry {
                packet,
                attempts: 0,
                received: false,
                acknowledged: false,
                passed: false,
            });
        }
        room
    }

    /// Least payload of what the next two transmissions may begin with, with up to `most` frames each; 0 if nothing waits.
    pub fn least_bytes(&self, most: usize) -> usize {
        let bytes = self.next(most).map(|packet| packet.frame.bytes);
        bytes.min().unwrap_or(0)
    }

    /// Whether a port sees the reception of any of them.
    pub fn surfaces(&self, most: usize) -> bool {
        self.next(most).any(|packet| !packet.relayed)
    }

    /// Whether the receiver has frames that it cannot pass up yet.
    pub fn holds_back(&self) -> bool {
        self.entries.iter().any(|entry| entry.received && !entry.passed)
    }

    /// What the next two transmissions may hold. Frames that go one by one go in order: the first one is sent, or sent again, and
    /// then the second one.
    fn next(&self, most: usize) -> impl Iterator<Item = &Packet> {
        let reach = if most < 2 { 2 } else { self.entries.len() };
        self.entries.iter().take(reach).map(|entry| &entry.packet)
    }

    /// The frame in that place.
    pub fn packet(&self, place: usize) -> Packet {
        self.entries[place].packet
    }

    /// Attempts so far of the frame in that place.
    pub fn attempts(&self, place: usize) -> u32 {
        self.entries[place].attempts
    }

    /// Receiver of what is to be sent next; None: all.
    pub fn next_receiver(&self) -> Option<usize> {
        let head = self.entries.iter().find(|entry| !entry.acknowledged);
        head.and_then(|entry| entry.packet.next)
    }

    /// What to send next: the oldest frame that is not acknowledged, with up to `most` frames for the same receiver.
    pub fn select(&self, standard: Standard, rate: Rate, most: usize) -> Selection {
        let Some(head) = self.entries.iter().position(|entry| !entry.acknowledged) else {
            return Selection::default();
        };
        let next = self.entries[head].packet.next;
        let alone = Selection {
            places: vec![head],
            aggregate_bytes: None,
        };
        if most < 2 || next.is_none() {
            return alone;
        }
        let mut places = Vec::new();
        let mut bytes = 0;
        let of_receiver = self
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.packet.next == next);
        // The window of a block ACK begins at the oldest frame for this receiver.
        for (place, entry) in of_receiver.take(MOST_AGGREGATE) {
            if entry.acknowledged {
                continue;
            }
            let with = bytes + subframe_bytes(standard.frame_bytes(entry.packet.frame.bytes));
            if places.len() == most || !standard.may_aggregate(rate, with) {
                break;
            }
            bytes = with;
            places.push(place);
        }
        if places.len() < 2 {
            return alone;
        }
        Selection {
            places,
            aggregate_bytes: Some(bytes),
        }
    }

    /// The receiver has the frame in that place.
    pub fn receive(&mut self, place: usize) {
        self.entries[place].received = true;
    }

    /// Frames that the receiver can pass up now: in order, up to the first one that is missing.
    pub fn pass_up(&mut self, receiver: usize, mut pass: impl FnMut(Frame)) {
        for entry in &mut self.entries {
            if entry.packet.next == Some(receiver) {
                if !entry.received {
                    return;
                }
                if !entry.passed {
                    entry.passed = true;
                    pass(entry.packet.frame);
                }
            }
        }
    }

    /// The answer has come: what was received leaves the queue, what was damaged has one more attempt.
    pub fn acknowledge(&mut self, places: &[usize]) {
        for place in places {
            let entry = &mut self.entries[*place];
            entry.acknowledged = entry.received;
            entry.attempts += u32::from(!entry.received);
        }
        self.forget();
    }

    /// No answer has come: one more attempt for each.
    pub fn miss(&mut self, places: &[usize]) {
        for place in places {
            self.entries[*place].attempts += 1;
        }
    }

    /// Gives up frames that had `limit` attempts; whether there were any. Those that never arrived are appended to `lost`; one
    /// that arrived although its answer never came is the receiver's, who passes it up in its turn.
    pub fn give_up(&mut self, limit: u32, lost: &mut Vec<Packet>) -> bool {
        let mut any = false;
        self.entries.retain_mut(|entry| {
            if entry.acknowledged || entry.attempts < limit {
                return true;
            }
            any = true;
            if entry.received {
                entry.acknowledged = true;
            } else {
                lost.push(entry.packet);
            }
            entry.received
        });
        any
    }

    /// Takes out the frame in that place: a broadcast, which is sent once.
    pub fn remove(&mut self, place: usize) {
        self.entries.remove(place);
    }

    /// Lets go of what was acknowledged and passed up.
    pub fn forget(&mut self) {
        self.entries.retain(|entry| !(entry.acknowledged && entry.passed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: Standard = Standard::N;

    fn queue(receivers: &[Option<usize>]) -> Queue {
        let mut queue = Queue::new(receivers.len());
        for (id, next) in receivers.iter().enumerate() {
            let frame = Frame {
                id: id as u64,
                from: 0,
                to: *next,
                bytes: 1500,
            };
            assert!(queue.push(Packet {
                frame,
                origin: 0,
                next: *next,
                relayed: false
            }));
        }
        queue
    }

    fn places(queue: &Queue, most: usize) -> Vec<usize> {
        queue.select(N, Rate::of_mbit(65.0), most).places
    }

    fn passed(queue: &mut Queue) -> Vec<u64> {
        let mut ids = Vec::new();
        queue.pass_up(1, |frame| ids.push(frame.id));
        ids
    }

    #[test]
    fn a_full_queue_takes_no_more() {
        let mut full = queue(&[Some(1); 3]);
        assert!(!full.push(full.packet(0)));
        assert_eq!(full.len(), 3);
    }

    #[test]
    fn frames_for_one_receiver_go_together() {
        let mixed = queue(&[Some(1), Some(2), Some(1), None, Some(1)]);
        assert_eq!(places(&mixed, 1), [0]);
        assert_eq!(places(&mixed, 2), [0, 2]);
        assert_eq!(places(&mixed, 9), [0, 2, 4]);
        assert_eq!(places(&queue(&[None, None]), 9), [0]);
        // At 65 Mb/s an A-MPDU of 28 frames lasts 5.36 ms; more are too long.
        assert_eq!(places(&queue(&[Some(1); 64]), 64).len(), 28);
    }

    #[test]
    fn what_is_damaged_holds_back_what_follows_until_it_arrives() {
        let mut sent = queue(&[Some(1); 4]);
        for place in [0, 2, 3] {
            sent.receive(place);
        }
        assert_eq!(passed(&mut sent), [0]);
        sent.acknowledge(&[0, 1, 2, 3]);
        assert_eq!(sent.len(), 3);
        assert_eq!(places(&sent, 4), [0]);
        assert_eq!(sent.attempts(0), 1);
        sent.receive(0);
        assert_eq!(passed(&mut sent), [1, 2, 3]);
        sent.acknowledge(&[0]);
        assert!(sent.is_empty());
    }

    #[test]
    fn what_is_given_up_lets_the_others_pass() {
        let mut sent = queue(&[Some(1); 3]);
        sent.receive(1);
        sent.acknowledge(&[0, 1]);
        let mut lost = Vec::new();
        assert!(!sent.give_up(2, &mut lost));
        sent.miss(&[0]);
        let first = sent.packet(0);
        assert!(sent.give_up(2, &mut lost));
        assert_eq!(lost, [first]);
        assert_eq!(passed(&mut sent), [1]);
        sent.forget();
        assert_eq!(sent.len(), 1);
    }

    #[test]
    fn what_arrived_and_is_given_up_is_passed_up_behind_what_is_missing() {
        let mut sent = queue(&[Some(1); 2]);
        // The second arrived behind a gap, and the answer that said so was lost.
        sent.receive(1);
        assert!(passed(&mut sent).is_empty());
        sent.miss(&[1]);
        let mut lost = Vec::new();
        assert!(sent.give_up(1, &mut lost));
        assert!(lost.is_empty());
        assert_eq!(places(&sent, 4), [0], "it is not sent again");
        sent.receive(0);
        assert_eq!(passed(&mut sent), [0, 1]);
        sent.acknowledge(&[0]);
        assert!(sent.is_empty());
    }

    #[test]
    fn a_frame_whose_answer_was_lost_arrives_once() {
        let mut sent = queue(&[Some(1)]);
        sent.receive(0);
        assert_eq!(passed(&mut sent), [0]);
        sent.miss(&[0]);
        assert_eq!(places(&sent, 4), [0]);
        sent.receive(0);
        assert!(passed(&mut sent).is_empty());
        sent.acknowledge(&[0]);
        assert!(sent.is_empty());
    }
}
