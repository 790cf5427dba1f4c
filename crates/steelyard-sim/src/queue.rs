//! Queueing model of a node: first come, first served, on a virtual clock.
//!
//! Each operation's end is computed when it arrives, from the ends of those before it: service begins when it arrived or when a server
//! is *due* to be free, whichever is later. That the program answers some microseconds late does therefore not delay the
//! next operation, and slips do not add up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::draw::{Draws, Stream};
use crate::law::Law;

/// Nothing in service for longer than this ends a burst.
pub const IDLE_GAP_NS: u64 = 1_000_000_000;

/// A time in which the node stands still, counted from the first operation of each burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Nanoseconds after the burst's first operation.
    pub at_ns: u64,
    /// How long, nanoseconds.
    pub for_ns: u64,
}

/// A node that gets faster with the operations that it has served itself: service times begin at `factor` times the
/// planted one, and what they are above it falls by 1 / e every `operations`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUp {
    /// Of the first operation.
    pub factor: f64,
    /// Of this node, from its start on.
    pub operations: f64,
}

impl WarmUp {
    /// Factor on the service time of the operation that comes after `count` others.
    fn factor_after(self, count: u64) -> f64 {
        #[allow(clippy::cast_precision_loss)] // far below 2^53 operations
        let served = count as f64;
        1.0 + (self.factor - 1.0) * (-served / self.operations).exp()
    }
}

/// What the queue is made of.
#[derive(Clone, Debug)]
pub struct QueueSettings {
    /// Mean service time as a function of the cluster's size.
    pub law: Law,
    /// Nodes of the cluster, at first.
    pub nodes: u32,
    /// Operations that the node serves at the same time.
    pub servers: u32,
    /// Coefficient of variation of the factor that is drawn once a process.
    pub start_cv: f64,
    /// Coefficient of variation of the factor that is drawn anew for each burst.
    pub trial_cv: f64,
    /// How the node gets faster with its own operations; None: it is as fast from the first.
    pub warm_up: Option<WarmUp>,
    /// When the node stands still.
    pub stalls: Vec<Stall>,
    /// Draws of the factors: the same for all nodes of a cluster, so that a cluster is slow or fast as a whole.
    pub cluster_draws: Draws,
    /// Draws of the service times: each node's own.
    pub node_draws: Draws,
}

/// The state of a node. A *burst* is a series of operations, what a laboratory would call one phase of load: it begins with the
/// first operation of all, after a TRUNCATE, after the clients of the operations before have all gone, and after more than
/// `IDLE_GAP_NS` with nothing in service.
#[derive(Debug)]
pub struct Queue {
    settings: QueueSettings,
    /// When each server is due to be free.
    free: BinaryHeap<Reverse<u64>>,
    count: u64,
    bursts: u64,
    burst_began_ns: u64,
    last_end_ns: u64,
    renewed: bool,
    start_factor: f64,
    trial_factor: f64,
    /// Factor on the service time while a node of the cluster streams.
    cost: f64,
    /// Time that the servers are taken up by all operations admitted so far.
    taken_ns: u64,
}

impl Queue {
    /// A queue at rest.
    pub fn new(mut settings: QueueSettings) -> Self {
        settings.stalls.sort_by_key(|stall| stall.at_ns);
        let start_factor = settings.cluster_draws.factor(Stream::Start, 0, settings.start_cv);
        Self {
            free: (0..settings.servers.max(1)).map(|_| Reverse(0)).collect(),
            count: 0,
            bursts: 0,
            burst_began_ns: 0,
            last_end_ns: 0,
            renewed: true,
            start_factor,
            trial_factor: 1.0,
            cost: 1.0,
            taken_ns: 0,
            settings,
        }
    }

    /// The factor that this process drew.
    pub fn start_factor(&self) -> f64 {
        self.start_factor
    }

    /// The next operation begins a new burst.
    pub fn renew(&mut self) {
        self.renewed = true;
    }

    /// From the next operation on the cluster has so many nodes.
    pub fn set_nodes(&mut self, nodes: u32) {
        self.settings.nodes = nodes;
    }

    /// From the next operation on service times are multiplied by this.
    pub fn set_cost(&mut self, factor: f64) {
        self.cost = factor;
    }

    /// Bursts that have begun.
    pub fn bursts(&self) -> u64 {
        self.bursts
    }

    /// Has the factor of a cluster in which so many bursts have begun: the next burst here is the last of those.
    pub fn catch_up(&mut self, bursts: u64) {
        self.bursts = bursts.saturating_sub(1);
    }

    /// Operations admitted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Operations that are served at the same time.
    pub fn servers(&self) -> u32 {
        self.settings.servers
    }

    /// Server time spent until `now_ns`, stalls within a service included. Exact, because a server that is due to be free
    /// later than now has no pause until then.
    pub fn busy_ns(&self, now_ns: u64) -> u64 {
        let ahead = self.free.iter().map(|Reverse(free_ns)| free_ns.saturating_sub(now_ns));
        self.taken_ns.saturating_sub(ahead.sum())
    }

    /// Takes an operation that arrived at `now_ns` and says when it ends. Instants must not go backwards.
    pub fn admit(&mut self, now_ns: u64) -> u64 {
        if self.renewed || now_ns > self.last_end_ns.saturating_add(IDLE_GAP_NS) {
            self.begin_burst(now_ns);
        }
        let drawn_ns = self
            .settings
            .law
            .draw_ns(self.settings.nodes, self.settings.node_draws, self.count);
        let warm_up_factor = self
            .settings
            .warm_up
            .map_or(1.0, |warm_up| warm_up.factor_after(self.count));
        self.count += 1;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, far below 2^63 ns
        let service_ns = (drawn_ns * self.start_factor * self.trial_factor * warm_up_factor * self.cost).round() as u64;
        let Reverse(free_ns) = self.free.pop().unwrap_or(Reverse(0));
        let start_ns = free_ns.max(now_ns);
        let end_ns = self.end(start_ns, service_ns);
        self.taken_ns += end_ns - start_ns;
        self.free.push(Reverse(end_ns));
        self.last_end_ns = self.last_end_ns.max(end_ns);
        end_ns
    }

    fn begin_burst(&mut self, now_ns: u64) {
        self.renewed = false;
        self.burst_began_ns = now_ns;
        self.trial_factor = self
            .settings
            .cluster_draws
            .factor(Stream::Trial, self.bursts, self.settings.trial_cv);
        self.bursts += 1;
    }

    /// Service that meets a stall is interrupted by it and goes on after it.
    fn end(&self, start_ns: u64, service_ns: u64) -> u64 {
        let mut end_ns = start_ns + service_ns;
        for stall in &self.settings.stalls {
            let from_ns = self.burst_began_ns + stall.at_ns;
            let until_ns = from_ns + stall.for_ns;
            if end_ns > from_ns && start_ns < until_ns {
                end_ns += until_ns - start_ns.max(from_ns);
            }
        }
        end_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Distribution;

    const US: u64 = 1_000;
    const S: u64 = 1_000_000_000;

    fn settings(servers: u32, stalls: &[(u64, u64)]) -> QueueSettings {
        QueueSettings {
            law: Law {
                service_us: 100.0,
                contention: 0.0,
                coherency: 0.0,
                distribution: Distribution::Constant,
            },
            nodes: 1,
            servers,
            start_cv: 0.0,
            trial_cv: 0.0,
            warm_up: None,
            stalls: stalls
                .iter()
                .map(|(at_ns, for_ns)| Stall {
                    at_ns: *at_ns,
                    for_ns: *for_ns,
                })
                .collect(),
            cluster_draws: Draws::new(1),
            node_draws: Draws::new(2),
        }
    }

    fn ends_us(settings: QueueSettings, arrivals_us: &[u64]) -> Vec<u64> {
        let mut queue = Queue::new(settings);
        arrivals_us
            .iter()
            .map(|arrival| queue.admit(arrival * US) / US)
            .collect()
    }

    #[test]
    fn first_come_first_served_on_the_due_times() {
        for (servers, arrivals, ends) in [
            (1, vec![0, 0, 0], vec![100, 200, 300]),
            (1, vec![0, 150, 160, 500], vec![100, 250, 350, 600]),
            // Late readings of the clock do not move the ends of those that wait.
            (1, vec![7, 8, 150], vec![107, 207, 307]),
            (2, vec![0, 0, 0, 0], vec![100, 100, 200, 200]),
            (2, vec![0, 50, 60, 70], vec![100, 150, 200, 250]),
        ] {
            assert_eq!(
                ends_us(settings(servers, &[]), &arrivals),
                ends,
                "{servers} servers, {arrivals:?}"
            );
        }
    }

    #[test]
    fn a_stall_interrupts_and_holds_back() {
        let stall = [(1_000 * US, 500 * US)];
        for (arrivals, ends) in [
            // before, in the midst of, and behind the stall (1000..1500)
            (vec![0, 900], vec![100, 1000]),
            (vec![0, 950], vec![100, 1550]),
            (vec![0, 1200], vec![100, 1600]),
            (vec![0, 1200, 1300], vec![100, 1600, 1700]),
            (vec![0, 1500], vec![100, 1600]),
        ] {
            assert_eq!(ends_us(settings(1, &stall), &arrivals), ends, "{arrivals:?}");
        }
        let two = [(3_000 * US, 10 * US), (1_000 * US, 500 * US)];
        assert_eq!(ends_us(settings(1, &two), &[0, 950, 2950]), [100, 1550, 3060]);
    }

    #[test]
    fn stalls_count_from_the_first_operation_of_a_burst() {
        let mut queue = Queue::new(settings(1, &[(0, 3 * S)]));
        assert_eq!(queue.admit(10 * S), 13 * S + 100 * US);
        // Silence while everything waits for the end of the stall is no idle gap.
        assert_eq!(queue.admit(13 * S + 200 * US), 13 * S + 300 * US);
        assert_eq!(queue.admit(15 * S), 18 * S + 100 * US, "a new burst");
        queue.renew();
        assert_eq!(
            queue.admit(18 * S + 200 * US),
            21 * S + 300 * US,
            "a burst after TRUNCATE"
        );
    }

    #[test]
    fn factors_change_with_start_and_burst() {
        let vary = |start_cv, trial_cv, seed| QueueSettings {
            start_cv,
            trial_cv,
            cluster_draws: Draws::new(seed),
            ..settings(1, &[])
        };
        let service_us = |queue: &mut Queue, at: u64| queue.admit(at) - at;
        let mut start = Queue::new(vary(0.2, 0.0, 5));
        let first = service_us(&mut start, 0);
        assert_ne!(first, 100 * US);
        assert_eq!(service_us(&mut start, 50 * S), first, "one factor a process");
        assert_ne!(
            service_us(&mut Queue::new(vary(0.2, 0.0, 6)), 0),
            first,
            "another seed, another factor"
        );
        let mut trial = Queue::new(vary(0.0, 0.2, 5));
        let first = service_us(&mut trial, 0);
        assert_eq!(service_us(&mut trial, S / 2), first);
        assert_ne!(service_us(&mut trial, 50 * S), first, "one factor a burst");
    }

    #[test]
    fn a_node_warms_up_with_its_own_operations() {
        let warm_up = WarmUp {
            factor: 3.0,
            operations: 1_000.0,
        };
        let mut queue = Queue::new(QueueSettings {
            warm_up: Some(warm_up),
            ..settings(1, &[])
        });
        let mut now_ns = 0;
        let took_us: Vec<u64> = (0..10_000)
            .map(|_| {
                // Long pauses and TRUNCATE change nothing: what is compiled stays.
                now_ns += 2 * S;
                queue.renew();
                (queue.admit(now_ns) - now_ns) / US
            })
            .collect();
        assert_eq!(took_us[0], 300);
        // 100 us * (1 + 2 / e)
        assert_eq!(took_us[1_000], 173);
        assert_eq!(took_us[9_999], 100);
    }

    #[test]
    fn nodes_and_cost_hold_from_the_next_operation_on() {
        let mut queue = Queue::new(QueueSettings {
            law: Law {
                contention: 0.1,
                ..settings(1, &[]).law
            },
            ..settings(1, &[])
        });
        let took_us = |queue: &mut Queue, at: u64| (queue.admit(at * S) - at * S) / US;
        assert_eq!(took_us(&mut queue, 1), 100);
        queue.set_nodes(3);
        assert_eq!(took_us(&mut queue, 2), 120);
        queue.set_cost(1.5);
        assert_eq!(took_us(&mut queue, 3), 180);
        queue.set_cost(1.0);
        queue.set_nodes(1);
        assert_eq!(took_us(&mut queue, 4), 100);
    }

    #[test]
    fn busy_time_is_what_the_servers_have_worked() {
        let mut queue = Queue::new(settings(2, &[]));
        for at_us in [0, 0, 0, 500] {
            queue.admit(at_us * US);
        }
        // Two at once, the third behind one of them until 200; the fourth alone from 500 to 600.
        assert_eq!(
            [500, 550, 600, 900].map(|at| queue.busy_ns(at * US) / US),
            [300, 350, 400, 400]
        );
        let mut queue = Queue::new(settings(2, &[]));
        for _ in 0..3 {
            queue.admit(0);
        }
        assert_eq!(
            [0, 50, 100, 150, 200, 900].map(|at| queue.busy_ns(at * US) / US),
            [0, 100, 200, 250, 300, 300]
        );
    }

    #[test]
    fn a_joiner_draws_the_factor_of_the_burst_in_which_the_cluster_is() {
        let settings = || QueueSettings {
            trial_cv: 0.3,
            ..settings(1, &[])
        };
        let (mut member, mut joiner) = (Queue::new(settings()), Queue::new(settings()));
        for burst in 1..=3 {
            member.renew();
            member.admit(burst * 10 * S);
        }
        joiner.catch_up(member.bursts());
        assert_eq!(member.admit(31 * S), joiner.admit(31 * S));
        member.renew();
        joiner.renew();
        assert_eq!(member.admit(32 * S), joiner.admit(32 * S));
    }

    #[test]
    fn capacity_is_kept_to_the_nanosecond() {
        let mut queue = Queue::new(settings(3, &[]));
        let last = (0..30_000).map(|_| queue.admit(0)).max();
        assert_eq!(last, Some(10_000 * 100 * US));
    }
}
