//! What several tests need.
#![allow(clippy::unwrap_used)] // helpers of tests

use steelyard_link::{Outcome, Scenario, Traffic, WifiConfig, simulate};

/// An 802.11 medium as the tests want it: no retry limit, nothing else switched on.
pub fn medium(phy: &str) -> WifiConfig {
    WifiConfig {
        phy: phy.to_owned(),
        ack_rate_mbit: None,
        rts_threshold_bytes: None,
        aggregate: 1,
        retry_limit: None,
        frame_error: 0.0,
        hidden: Vec::new(),
        access_points: 1,
        queue_frames: 1000,
    }
}

/// Saturated stations that send 1,500 bytes to the access point.
pub fn saturated(phy: &str, stations: usize, seconds: f64) -> Scenario {
    Scenario {
        medium: medium(phy),
        stations,
        slow: 0,
        hidden: false,
        seconds,
        payload_bytes: 1500,
        traffic: Traffic::Uplink,
        load: None,
        seed: 1,
    }
}

pub fn outcome(scenario: &Scenario) -> Outcome {
    simulate(scenario).unwrap()
}

pub fn mbit(scenario: &Scenario) -> f64 {
    outcome(scenario).throughput_mbit_per_s
}
