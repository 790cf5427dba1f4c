//! A node that joins or leaves: what it tells the members, and how long each step takes.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use steelyard_channel::ClientTls;
use steelyard_cql::Value;

use crate::config::Growth;
use crate::log::Log;
use crate::membership::{Step, Way};
use crate::peer::Peer;

/// From telling the members the instant at which the ring changes to that instant.
const SWITCH_AHEAD: Duration = Duration::from_millis(50);
/// How long a node that has left still answers, at least: Cassandra's twice two rounds of gossip.
const LEFT_AT_LEAST: Duration = Duration::from_secs(2);
const OWN: &str = "SELECT rpc_address, rpc_port FROM system.local";
const OTHERS: &str = "SELECT native_address, native_port FROM system.peers_v2";
const SCHEMA: &str = "SELECT keyspace_name, statement FROM system_views.simulated_schema";
const BURSTS: &str = "SELECT bursts FROM system_views.simulated_load";

/// A node on its way into the ring or out of it, with a connection to each member. That is what holds others off: when it dies,
/// they go on as if it had never begun.
pub struct Moving {
    own: SocketAddr,
    growth: Growth,
    log: Log,
    members: Vec<Peer>,
}

/// What a node must know before it is a member.
pub struct Learnt {
    /// All others.
    pub members: Vec<SocketAddr>,
    /// Statements and the keyspaces in which they were said; empty for none.
    pub schema: Vec<(String, String)>,
    /// Bursts that have begun.
    pub bursts: u64,
}

impl Moving {
    /// Boots and does everything that comes before membership. `contact` is any member.
    pub fn join(
        own: SocketAddr,
        contact: SocketAddr,
        growth: Growth,
        log: Log,
        tls: Option<&ClientTls>,
    ) -> Result<(Self, Learnt), String> {
        thread::sleep(growth.boot);
        log.info(&format!("Listening on address: (/{own})"));
        let members = members(contact, tls).map_err(|error| format!("the contact {contact}: {error}"))?;
        let mut moving = Self::begin(Way::Joins, own, &members, growth, log, tls)?;
        let delay_ms = growth.ring_delay.as_millis();
        log.info(&format!("JOINING: sleeping {delay_ms} ms for pending range setup"));
        thread::sleep(growth.ring_delay);
        log.info("JOINING: Starting to bootstrap...");
        moving.stream(members.len() + 1)?;
        log.info(&format!("Bootstrap completed for /{own}"));
        let text = |value: &Value<'_>| match value {
            Value::Text(text) => (*text).to_owned(),
            _ => String::new(),
        };
        let first = &mut moving.members[0];
        let schema = first.rows(SCHEMA, |row| Some((text(row.first()?), text(row.get(1)?))))?;
        let bursts = first.rows(BURSTS, |row| match row.first() {
            Some(Value::BigInt(bursts)) => u64::try_from(*bursts).ok(),
            _ => None,
        })?;
        let learnt = Learnt {
            members,
            schema,
            bursts: bursts.first().copied().unwrap_or_default(),
        };
        Ok((moving, learnt))
    }

    /// Waits until this node is a member.
    pub fn enter(mut self) -> Result<(), String> {
        let at = self.switch()?;
        thread::sleep(at.saturating_duration_since(Instant::now()));
        let own = self.own;
        self.log.info(&format!("Node /{own} state jump to NORMAL"));
        self.log
            .info(&format!("Starting listening for CQL clients on /{own}..."));
        Ok(())
    }

    /// Tells all members, in the order of their addresses, so that of two who begin at once one is first everywhere. `own`: the
    /// node that the change is about. The error names the member that refuses.
    pub fn begin(
        way: Way,
        own: SocketAddr,
        members: &[SocketAddr],
        growth: Growth,
        log: Log,
        tls: Option<&ClientTls>,
    ) -> Result<Self, String> {
        let mut addresses = members.to_vec();
        addresses.sort_unstable();
        let statement = Step::Begin(way, own).statement();
        let begin = |address: SocketAddr| {
            let told = Peer::connect(address, tls).and_then(|mut peer| peer.ask(&statement).map(|()| peer));
            told.map_err(|error| format!("the member {address}: {error}"))
        };
        Ok(Self {
            own,
            growth,
            log,
            members: addresses.into_iter().map(begin).collect::<Result<_, _>>()?,
        })
    }

    /// Everything from the beginning until this node may end.
    pub fn leave(mut self) -> Result<(), String> {
        let delay_ms = self.growth.ring_delay.as_millis();
        self.log.info(&format!(
            "LEAVING: sleeping {delay_ms} ms for batch processing and pending range setup"
        ));
        thread::sleep(self.growth.ring_delay);
        self.log
            .info("LEAVING: replaying batch log and streaming data to other nodes");
        self.stream(self.members.len())?;
        self.log.info("All sessions completed");
        let stays = self.growth.ring_delay.max(LEFT_AT_LEAST);
        let at = self.switch()?;
        let stays_ms = stays.as_millis();
        self.log
            .info(&format!("Announcing that I have left the ring for {stays_ms}ms"));
        thread::sleep((at + stays).saturating_duration_since(Instant::now()));
        self.log.info("DECOMMISSIONED");
        Ok(())
    }

    /// The equal share of one of `nodes` moves; the members serve more slowly meanwhile.
    fn stream(&mut self, nodes: usize) -> Result<(), String> {
        let takes = self.growth.stream(nodes);
        if takes.is_zero() {
            return Ok(());
        }
        self.tell(&Step::Streams(true))?;
        thread::sleep(takes);
        self.tell(&Step::Streams(false))
    }

    fn tell(&mut self, step: &Step) -> Result<(), String> {
        let statement = step.statement();
        self.members
            .iter_mut()
            .try_for_each(|peer| peer.ask(&statement).map_err(|error| of_member(peer, &error)))
    }

    /// Tells all members the instant at which the ring changes, none waiting for another's answer.
    pub fn switch(&mut self) -> Result<Instant, String> {
        let at = Instant::now() + SWITCH_AHEAD;
        for peer in &mut self.members {
            let in_us = at.saturating_duration_since(Instant::now()).as_micros();
            let step = Step::Switch(u64::try_from(in_us).unwrap_or(u64::MAX));
            peer.send(&step.statement()).map_err(|error| of_member(peer, &error))?;
        }
        for peer in &mut self.members {
            peer.receive().map_err(|error| of_member(peer, &error))?;
        }
        Ok(at)
    }
}

fn of_member(peer: &Peer, error: &str) -> String {
    format!("the member {}: {error}", peer.address)
}

/// All members, by what one of them says.
pub fn members(contact: SocketAddr, tls: Option<&ClientTls>) -> Result<Vec<SocketAddr>, String> {
    let mut peer = Peer::connect(contact, tls)?;
    let address = |row: &[Value<'_>]| match row {
        [Value::Inet(address), Value::Int(port)] => Some(SocketAddr::new(*address, u16::try_from(*port).ok()?)),
        _ => None,
    };
    let mut members = peer.rows(OWN, address)?;
    members.extend(peer.rows(OTHERS, address)?);
    if members.is_empty() {
        return Err("names no member of its ring".to_owned());
    }
    Ok(members)
}
