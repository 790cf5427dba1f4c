//! Membership as its members see it: one node at a time joins or leaves, says so to every member step by step, and the ring
//! changes in all of them at one instant. Of one that has died another says it.

use std::net::SocketAddr;

use steelyard_cql::{code, response};

use crate::refusal::{Refusal, invalid};
use crate::ring::Ring;

/// In which direction the ring changes, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Joins,
    Leaves,
    /// It has died.
    Down,
}

/// What is said to every member, in this order: by the node that joins or leaves, or by the one that watches the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The address of the node that the change is about. From now on until the ring has changed, or until the connection ends, no other may begin.
    Begin(Way, SocketAddr),
    /// Whether it streams, which costs the members time.
    Streams(bool),
    /// The ring changes so many microseconds from now: the instant is the same in all members whatever their clocks say.
    Switch(u64),
}

impl Step {
    /// The statement that says it.
    pub fn statement(&self) -> String {
        match self {
            Self::Begin(Way::Joins, address) => format!("JOINING '{address}'"),
            Self::Begin(Way::Leaves, address) => format!("LEAVING '{address}'"),
            Self::Begin(Way::Down, address) => format!("DOWN '{address}'"),
            Self::Streams(true) => "STREAMING".to_owned(),
            Self::Streams(false) => "STREAMED".to_owned(),
            Self::Switch(in_us) => format!("SWITCH IN {in_us}"),
        }
    }
}

/// A change that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub way: Way,
    pub address: SocketAddr,
    /// When the ring changes, once that is known.
    pub at_ns: Option<u64>,
}

impl Change {
    /// The first step, if it is possible; `pending`: a change that has begun and not ended.
    pub fn begin(way: Way, address: SocketAddr, ring: &Ring, pending: Option<&Self>) -> Result<Self, Refusal> {
        let member = ring.addresses().any(|other| other == address);
        if let Some(other) = pending {
            let doing = match other.way {
                Way::Joins => "joins",
                Way::Leaves => "leaves",
                Way::Down => "is down",
            };
            let message = format!(
                "Other bootstrapping/leaving/moving nodes detected: {} {doing}; try again when that has ended",
                other.address
            );
            return Err(Refusal {
                code: code::SERVER,
                message,
            });
        }
        match way {
            Way::Joins if member => Err(invalid(format!(
                "A node with address {address} already exists, cancelling join"
            ))),
            Way::Leaves if !member => Err(invalid(format!("{address} is not a member of the ring"))),
            Way::Leaves if ring.size() == 1 => Err(invalid(
                "no other normal nodes in the ring; decommission would be pointless",
            )),
            _ => Ok(Self {
                way,
                address,
                at_ns: None,
            }),
        }
    }

    /// Changes the ring.
    pub fn apply(&self, ring: &mut Ring) {
        match self.way {
            Way::Joins => ring.add(self.address),
            Way::Leaves | Way::Down => ring.remove(self.address),
        }
    }

    /// What every member logs when the ring has changed, in Cassandra's words.
    pub fn log_line(&self) -> String {
        match self.way {
            Way::Joins => format!("Node /{} state jump to NORMAL", self.address),
            Way::Leaves => format!("Removing tokens [] for /{}", self.address),
            Way::Down => format!("InetAddress /{} is now DOWN", self.address),
        }
    }

    /// Appends the events that a client who has registered for `kinds` gets, as Cassandra sends them.
    pub fn put_events(&self, version: u8, kinds: &[String], out: &mut Vec<u8>) {
        let events: &[(&str, &str)] = match self.way {
            Way::Joins => &[("TOPOLOGY_CHANGE", "NEW_NODE"), ("STATUS_CHANGE", "UP")],
            Way::Leaves => &[("TOPOLOGY_CHANGE", "REMOVED_NODE")],
            Way::Down => &[("STATUS_CHANGE", "DOWN")],
        };
        for (kind, change) in events {
            if kinds.iter().any(|wanted| wanted == kind) {
                response::event(out, version, kind, change, self.address);
            }
        }
    }
}
