//! The planted scalability law: how long one operation keeps one server of one node busy, in a cluster of n nodes.
//!
//! Gunther's universal scalability law says that n nodes have the relative capacity
//! `C(n) = n / (1 + contention * (n - 1) + coherency * n * (n - 1))`
//! (N. J. Gunther, *Guerrilla Capacity Planning*, Springer 2007, chapter 4). We plant it from below: each node's service time is
//! `s(n) = s(1) * (1 + contention * (n - 1) + coherency * n * (n - 1))`,
//! so that n nodes with m servers each can do `n * m / s(n) = m / s(1) * C(n)` operations a second.

use crate::draw::{Draws, Stream};

/// How service times vary around s(n).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Every operation takes the mean.
    Constant,
    /// Memoryless: the standard deviation equals the mean.
    Exponential,
}

/// s(n) and its spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// Mean service time of one operation on a cluster of one node.
    pub service_us: f64,
    /// Share of the work that is serial: waiting for something that only one can have.
    pub contention: f64,
    /// Cost of each pair of nodes agreeing.
    pub coherency: f64,
    /// How service times vary around the mean.
    pub distribution: Distribution,
}

impl Law {
    /// Mean service time on a cluster of `nodes`, in nanoseconds.
    pub fn service_ns(&self, nodes: u32) -> f64 {
        let n = f64::from(nodes);
        1e3 * self.service_us * (1.0 + self.contention * (n - 1.0) + self.coherency * n * (n - 1.0))
    }

    /// What all nodes together can do, in operations per second.
    pub fn capacity_per_s(&self, nodes: u32, servers: u32) -> f64 {
        f64::from(nodes) * f64::from(servers) * 1e9 / self.service_ns(nodes)
    }

    /// Service time of the operation `count` in nanoseconds: pure in (draws, count).
    pub fn draw_ns(&self, nodes: u32, draws: Draws, count: u64) -> f64 {
        let mean_ns = self.service_ns(nodes);
        match self.distribution {
            Distribution::Constant => mean_ns,
            // Inverse transform; the uniform draw is never 0.
            Distribution::Exponential => -mean_ns * draws.uniform(Stream::Service, count).ln(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(contention: f64, coherency: f64, distribution: Distribution) -> Law {
        Law {
            service_us: 500.0,
            contention,
            coherency,
            distribution,
        }
    }

    #[test]
    fn service_time_and_capacity_by_nodes() {
        // contention, coherency, nodes, service in us, capacity per second
        for (contention, coherency, nodes, service_us, capacity) in [
            (0.0, 0.0, 1, 500.0, 2000.0),
            (0.0, 0.0, 6, 500.0, 12000.0),
            (0.02, 0.0, 1, 500.0, 2000.0),
            (0.02, 0.0, 3, 520.0, 5_769.230_769),
            (0.02, 0.0, 6, 550.0, 10_909.090_909),
            (0.1, 0.01, 4, 500.0 * 1.42, 5_633.802_817),
        ] {
            let law = law(contention, coherency, Distribution::Constant);
            assert!(
                (law.service_ns(nodes) / 1e3 - service_us).abs() < 1e-9,
                "{contention} {coherency} {nodes}"
            );
            assert!(
                (law.capacity_per_s(nodes, 1) - capacity).abs() < 1e-5,
                "{contention} {coherency} {nodes}"
            );
        }
        assert!((law(0.0, 0.0, Distribution::Constant).capacity_per_s(2, 4) - 16000.0).abs() < 1e-9);
    }

    #[test]
    fn capacity_over_one_nodes_is_gunthers_law() {
        let law = law(0.05, 0.002, Distribution::Constant);
        for nodes in 1..=32 {
            let n = f64::from(nodes);
            let gunther = n / (1.0 + 0.05 * (n - 1.0) + 0.002 * n * (n - 1.0));
            let relative = law.capacity_per_s(nodes, 3) / law.capacity_per_s(1, 3);
            assert!((relative - gunther).abs() < 1e-9, "{nodes}: {relative} {gunther}");
        }
    }

    #[test]
    fn exponential_draws_have_mean_and_deviation_of_the_law() {
        let law = law(0.0, 0.0, Distribution::Exponential);
        let draws = Draws::new(7);
        let all: Vec<f64> = (0..40_000).map(|count| law.draw_ns(1, draws, count)).collect();
        let mean = all.iter().sum::<f64>() / 40_000.0;
        let deviation = (all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 40_000.0).sqrt();
        // Standard error of the mean is 0.5%.
        assert!((mean / 500_000.0 - 1.0).abs() < 0.02, "{mean}");
        assert!((deviation / 500_000.0 - 1.0).abs() < 0.04, "{deviation}");
        assert!(
            (law.draw_ns(1, draws, 11) - all[11]).abs() < f64::EPSILON,
            "pure in the count"
        );
    }
}
