//! How far the medium can be left alone: when something may arrive at a port next.
//!
//! Between two deliveries lie a dozen instants that nobody outside sees: gaps, slots, answers, the way to an access point. They
//! are functions of what was offered, so whoever drives the medium in real time may carry them out later, all at once, before it
//! offers the next frame. What is computed here is a time before which no port can receive anything unless a frame is offered:
//! never too late, and as late as can be told without drawing random numbers. Nothing here changes any state.

use std::cmp::Reverse;

use super::{Dcf, Event, Exchange, Kind, Node, Transmission};

impl Dcf {
    /// No later than the next arrival at a port, if nothing is enqueued; None while nothing is under way.
    pub fn wake_ns(&self) -> Option<u64> {
        let due_ns = self.due_ns()?;
        let events = self
            .events
            .iter()
            .filter_map(|Reverse((at_ns, event))| self.seen_of_event_ns(*at_ns, event));
        let ends_ns = self.events.iter().filter_map(|Reverse((at_ns, event))| match event {
            Event::End { .. } => Some(*at_ns),
            Event::Timeout { .. } | Event::Begin(_) => None,
        });
        let first_end_ns = ends_ns.min().unwrap_or(due_ns);
        let nodes = self
            .nodes
            .iter()
            .filter_map(|node| self.seen_of_node_ns(node, first_end_ns));
        // What nobody will see is carried out when it is due.
        Some(events.chain(nodes).min().unwrap_or(due_ns).max(due_ns))
    }

    /// No later than what is seen of an event that is planned, before anybody contends anew.
    fn seen_of_event_ns(&self, at_ns: u64, event: &Event) -> Option<u64> {
        match event {
            Event::End { transmission, .. } => self.seen_of_end_ns(at_ns, transmission),
            Event::Begin(transmission) => self.seen_of_end_ns(at_ns + transmission.lasts_ns, transmission),
            Event::Timeout { node } => {
                let node = &self.nodes[*node];
                let waits = |exchange: &Exchange| exchange.deadline_ns == Some(at_ns);
                (node.exchange.as_ref().is_some_and(waits) && node.queue.holds_back()).then_some(at_ns)
            }
        }
    }

    /// The same of a transmission that ends at a time.
    fn seen_of_end_ns(&self, end_ns: u64, transmission: &Transmission) -> Option<u64> {
        let sifs_ns = self.timing.sifs_ns;
        let data_of = |sender: usize| self.nodes[sender].exchange.as_ref().map(|exchange| exchange.data);
        match (transmission.kind, transmission.to) {
            (Kind::Data, None) => Some(end_ns),
            (Kind::Data, Some(_)) => {
                // Its access point is silent until it has answered.
                let relayed_ns = self.relayed_ns(&self.nodes[transmission.from]);
                Some(end_ns + relayed_ns.map_or(0, |relayed_ns| transmission.reserves_ns + relayed_ns))
            }
            (Kind::Rts, _) => {
                let data = data_of(transmission.from)?;
                let begin_ns = end_ns + 2 * sifs_ns + transmission.answer_ns;
                self.seen_of_end_ns(begin_ns + data.lasts_ns, &data)
            }
            (Kind::Cts, to) => {
                let data = data_of(to?)?;
                self.seen_of_end_ns(end_ns + sifs_ns + data.lasts_ns, &data)
            }
            // Frames that are given up let those behind them pass.
            (Kind::Ack, to) => self.nodes[to?].queue.holds_back().then_some(end_ns),
        }
    }

    /// No later than what is seen of what a node contends for next. `first_end_ns`: the first end of a transmission.
    fn seen_of_node_ns(&self, node: &Node, first_end_ns: u64) -> Option<u64> {
        if node.queue.is_empty() {
            return None;
        }
        let begin_ns = match &node.exchange {
            None => node.contention.earliest_access_ns(first_end_ns),
            // Without a deadline its data are planned, or in the air: they are seen before anything else of it.
            Some(exchange) => exchange.deadline_ns? + self.timing.ifs_ns,
        };
        Some(begin_ns + self.least_airtime_ns(node, node) + self.relayed_ns(node).unwrap_or(0))
    }

    /// What any of the next frames of a node's queue takes at least if `sender` sends it.
    fn least_airtime_ns(&self, node: &Node, sender: &Node) -> u64 {
        let standard = self.settings.standard;
        let bytes = node.queue.least_bytes(self.settings.aggregate);
        let data_ns = standard.data_ns(sender.member.rate, bytes);
        data_ns.min(standard.broadcast_ns(bytes))
    }

    /// What lies at least between the access point's answer to a node and the end of what it passes on; None if any of the node's
    /// next frames is seen as soon as it is received.
    fn relayed_ns(&self, node: &Node) -> Option<u64> {
        if node.queue.surfaces(self.settings.aggregate) {
            return None;
        }
        let access_point = &self.nodes[node.member.access_point?];
        Some(self.timing.ifs_ns + self.least_airtime_ns(node, access_point))
    }
}
