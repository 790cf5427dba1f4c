//! The 802.11 medium against Bianchi's model of saturation throughput.
//!
//! G. Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function", IEEE JSAC 18(3), 2000; with the
//! correction of G. Bianchi and I. Tinnirello, "Remarks on IEEE 802.11 DCF performance analysis", IEEE Communications Letters
//! 9(8), 2005: who has just sent may draw 0 and send again before anybody else counts. Collisions last as long as a success
//! (EIFS variant). Times in microseconds.
#![allow(clippy::unwrap_used)] // helpers of tests

use steelyard_link::Scenario;

use crate::shared::{mbit, outcome, saturated};

/// What the model needs to know of a standard, and of its exchanges.
#[derive(Clone, Copy)]
struct Model {
    slot: f64,
    window: f64,
    stages: i32,
    success: f64,
    collision: f64,
    payload_bits: f64,
    corrected: bool,
}

impl Model {
    /// Throughput of n saturated stations, in Mb/s.
    fn mbit(&self, n: i32) -> f64 {
        let tau = self.tau(n);
        let any = 1.0 - (1.0 - tau).powi(n);
        let one = f64::from(n) * tau * (1.0 - tau).powi(n - 1);
        let again = if self.corrected { 1.0 / self.window } else { 0.0 };
        let extra = if self.corrected { self.slot } else { 0.0 };
        let success = self.success / (1.0 - again) + extra;
        let time = (1.0 - any) * self.slot + one * success + (any - one) * self.collision;
        one * self.payload_bits / (1.0 - again) / time
    }

    /// Probability that a station sends in a slot: tau falls with p, the probability of a collision, which rises with tau.
    fn tau(&self, n: i32) -> f64 {
        let sends = |p: f64| {
            let windows: f64 = (0..self.stages).map(|stage| (2.0 * p).powi(stage)).sum();
            2.0 / (1.0 + self.window + p * self.window * windows)
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if sends(1.0 - (1.0 - middle).powi(n - 1)) > middle {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Airtime of OFDM: SERVICE and tail are 22 bits, a symbol lasts 4 us.
fn ofdm(preamble: f64, bytes: u32, bits_per_symbol: u32) -> f64 {
    preamble + 4.0 * f64::from((22 + 8 * bytes).div_ceil(bits_per_symbol))
}

/// 802.11a/g with ACKs at another rate; rates in bits of a symbol. 1,500 bytes + 8 of LLC + 28 of MAC.
fn g(data_bits: u32, control_bits: u32) -> Model {
    let exchange = ofdm(20.0, 1536, data_bits) + 16.0 + ofdm(20.0, 14, control_bits) + 34.0;
    Model {
        slot: 9.0,
        window: 16.0,
        stages: 6,
        success: exchange,
        collision: exchange,
        payload_bits: 12_000.0,
        corrected: true,
    }
}

/// 802.11b at 11 Mb/s, long preamble, ACKs at 2 Mb/s.
fn b() -> Model {
    let exchange = 192.0 + 1536.0 * 8.0 / 11.0 + 10.0 + 192.0 + 56.0 + 50.0;
    Model {
        slot: 20.0,
        window: 32.0,
        stages: 5,
        success: exchange,
        collision: exchange,
        ..g(216, 96)
    }
}

/// HT20 at 65 Mb/s (260 bits a symbol), answers at 24 Mb/s, AIFS 43 us; an A-MPDU of k frames of 1,500 bytes + 8 + 30, each with
/// a delimiter and padding (1,544 bytes), answered by a block ACK; one frame by itself, by an ACK.
fn n(k: u32) -> Model {
    let (bytes, answer) = if k == 1 { (1538, 14) } else { (k * 1544, 32) };
    let exchange = ofdm(36.0, bytes, 260) + 16.0 + ofdm(20.0, answer, 96) + 43.0;
    Model {
        success: exchange,
        collision: exchange,
        payload_bits: 12_000.0 * f64::from(k),
        corrected: false,
        ..g(216, 96)
    }
}

/// The model without the correction's addends is exact for one station: payload over exchange and mean back-off.
fn arithmetic(model: &Model) -> f64 {
    model.payload_bits / (model.success + model.slot * (model.window - 1.0) / 2.0)
}

/// A saturated medium without a retry limit beside the model; and how far a limit of 7 moves it.
fn held(phy: &str, ack_rate_mbit: f64, model: &Model, stations: &[i32], seconds: f64) {
    for n in stations {
        let mut scenario = saturated(phy, usize::try_from(*n).unwrap(), seconds);
        scenario.medium.ack_rate_mbit = Some(ack_rate_mbit);
        let off = compare(&scenario, model, *n);
        scenario.medium.retry_limit = Some(7);
        let change = mbit(&scenario) / off - 1.0;
        println!(
            "{phy}, n = {n}: a retry limit of 7 changes it by {:+.1}%",
            100.0 * change
        );
        assert!((-0.07..0.01).contains(&change), "{phy} n = {n}: {change}");
    }
}

/// Several stations within 2% of the model, one within 0.5% of the arithmetic.
fn compare(scenario: &Scenario, model: &Model, n: i32) -> f64 {
    let (expected, tolerance) = if n == 1 {
        (arithmetic(model), 0.005)
    } else {
        (model.mbit(n), 0.02)
    };
    let got = mbit(scenario);
    let error = got / expected - 1.0;
    println!(
        "{}, n = {n}, aggregate {}: {got:.3} Mb/s, model {expected:.3}, {:+.2}%",
        scenario.medium.phy,
        scenario.medium.aggregate,
        100.0 * error
    );
    assert!(
        error.abs() <= tolerance,
        "{} n = {n}: {got} against {expected}",
        scenario.medium.phy
    );
    got
}

/// Throughput of each of n stations of which one is slow: the same chance of sending, other durations.
fn of_each_beside_a_slow_one(fast: &Model, slow: &Model, n: i32) -> f64 {
    let tau = fast.tau(n);
    let quiet = |stations: i32| (1.0 - tau).powi(stations);
    let again = 1.0 / fast.window;
    let success = |model: &Model| model.success / (1.0 - again) + model.slot;
    let one = tau * quiet(n - 1);
    let fast_ones_collide = (1.0 - tau) * (1.0 - quiet(n - 1) - f64::from(n - 1) * tau * quiet(n - 2));
    let slow_one_collides = tau * (1.0 - quiet(n - 1));
    let time = quiet(n) * fast.slot
        + one * (f64::from(n - 1) * success(fast) + success(slow))
        + fast_ones_collide * fast.collision
        + slow_one_collides * slow.collision;
    one * fast.payload_bits / (1.0 - again) / time
}

#[test]
fn the_model_gives_the_published_values() {
    // ns-3, src/wifi/examples/wifi-bianchi.cc, at n = 5 and 10. Its 802.11a/g frames are 2 bytes shorter, which is less than a symbol
    // in some.
    for (model, five, ten) in [
        (g(216, 96), 29.286, 27.376),
        (g(24, 24), 4.690, 4.320),
        (b(), 6.382, 6.027),
    ] {
        assert!((model.mbit(5) / five - 1.0).abs() < 0.001, "{}", model.mbit(5));
        assert!((model.mbit(10) / ten - 1.0).abs() < 0.001, "{}", model.mbit(10));
    }
    assert!((arithmetic(&g(216, 96)) - 30.495).abs() < 0.001);
}

#[test]
fn g_at_54_with_acks_at_24() {
    held("802.11g-54", 24.0, &g(216, 96), &[1, 2, 5, 10, 20, 50], 30.0);
}

#[test]
fn g_at_6_with_acks_at_6() {
    held("802.11g-6", 6.0, &g(24, 24), &[1, 2, 5, 10, 20, 50], 150.0);
}

#[test]
fn b_at_11_long_preamble_with_acks_at_2() {
    held("802.11b-11", 2.0, &b(), &[1, 2, 5, 10, 20, 50], 120.0);
}

#[test]
fn n_at_65_with_aggregates() {
    for (k, seconds) in [(1, 30.0), (4, 40.0), (16, 80.0), (28, 100.0)] {
        for stations in [1, 2, 3, 6, 10] {
            let mut scenario = saturated("802.11n-65", usize::try_from(stations).unwrap(), seconds);
            scenario.medium.ack_rate_mbit = Some(24.0);
            scenario.medium.aggregate = k as usize;
            compare(&scenario, &n(k), stations);
        }
    }
}

#[test]
fn g_at_54_with_rts_at_24() {
    let (rts, cts) = (ofdm(20.0, 20, 96), ofdm(20.0, 14, 96));
    let basic = g(216, 96);
    let model = Model {
        success: rts + 16.0 + cts + 16.0 + basic.success,
        // EIFS variant: room for the CTS.
        collision: rts + 16.0 + cts + 34.0,
        ..basic
    };
    for n in [1, 2, 5, 10, 20, 50] {
        let mut scenario = saturated("802.11g-54", usize::try_from(n).unwrap(), 30.0);
        scenario.medium.ack_rate_mbit = Some(24.0);
        scenario.medium.rts_threshold_bytes = Some(0);
        compare(&scenario, &model, n);
    }
}

#[test]
fn one_slow_station_drags_all_to_its_level() {
    // Heusse et al., "Performance anomaly of 802.11b", INFOCOM 2003: equal chances, so equal throughput.
    let expected = of_each_beside_a_slow_one(&g(216, 96), &g(24, 24), 4);
    let mixed = outcome(&Scenario {
        slow: 1,
        ..saturated("802.11g-54", 4, 100.0)
    });
    println!(
        "one slow of four: {:?} Mb/s, model {expected:.3}",
        mixed.stations_mbit_per_s
    );
    assert!(
        (mixed.throughput_mbit_per_s / 4.0 / expected - 1.0).abs() < 0.03,
        "{expected} {mixed:?}"
    );
    assert!(mixed.jain_index > 0.99, "{mixed:?}");
    assert!(expected < 0.45 * g(216, 96).mbit(4) / 4.0);
}
