//! What an 802.11 medium does that a link by itself does not: sharing, anomaly, relay, hidden stations.
//!
//! The four scenarios at the end are those that users of other emulators reported as wrong there.
#![allow(clippy::unwrap_used)] // helpers of tests

use steelyard_link::{Scenario, Traffic};

use crate::shared::{mbit, outcome, saturated};

fn with_rts(mut scenario: Scenario) -> Scenario {
    scenario.medium.rts_threshold_bytes = Some(0);
    scenario
}

fn hidden(mut scenario: Scenario) -> Scenario {
    scenario.hidden = true;
    scenario
}

#[test]
fn the_same_seed_gives_the_same_and_another_one_other_numbers() {
    let scenario = saturated("802.11g-54", 5, 2.0);
    let first = outcome(&scenario);
    assert_eq!(first, outcome(&scenario));
    assert_ne!(first.counters, outcome(&Scenario { seed: 2, ..scenario }).counters);
}

#[test]
fn a_relay_delivers_one_of_n_plus_1_wins() {
    // The access point gets 1 of n + 1 wins, and only what it sends is delivered. Minutes, since shares settle slowly.
    for n in [2_u8, 5] {
        let direct = mbit(&saturated("802.11g-54", usize::from(n) + 1, 30.0));
        let relay = outcome(&Scenario {
            traffic: Traffic::Relay,
            ..saturated("802.11g-54", usize::from(n), 300.0)
        });
        let expected = direct / f64::from(n + 1);
        let got = relay.throughput_mbit_per_s;
        println!("relay, n = {n}: {got:.3} Mb/s, S(n + 1) / (n + 1) = {expected:.3}");
        assert!((got / expected - 1.0).abs() < 0.03, "n = {n}: {got} {expected}");
        assert!(relay.counters.queue_drops > 0);
    }
}

#[test]
fn stations_share_fairly() {
    for n in [2, 3, 5] {
        let index = outcome(&saturated("802.11g-54", n, 10.0)).jain_index;
        assert!(index >= 0.99, "n = {n}: {index}");
    }
    let index = |seed: u64| {
        let scenario = saturated("802.11g-6", 10, 10.0);
        outcome(&Scenario { seed, ..scenario }).jain_index
    };
    let mean = (1..=20).map(index).sum::<f64>() / 20.0;
    println!("Jain's index of 10 stations of 6 Mb/s over 10 s, mean of 20 seeds: {mean:.4}");
    assert!((mean - 0.96).abs() < 0.01, "{mean}");
}

#[test]
fn hidden_stations_need_rts() {
    // With the usual retry limit: without one a station that lost often hardly sends any more, and the other one has the medium.
    let pair = |phy: &str| {
        let mut scenario = saturated(phy, 2, 60.0);
        scenario.medium.retry_limit = Some(7);
        scenario
    };
    for (phy, most) in [("802.11g-54", 0.75), ("802.11g-6", 0.25)] {
        let heard = mbit(&pair(phy));
        let unheard = mbit(&hidden(pair(phy)));
        let heard_rts = mbit(&with_rts(pair(phy)));
        let unheard_rts = mbit(&hidden(with_rts(pair(phy))));
        println!("{phy}: S(2) {heard:.2} Mb/s, hidden {unheard:.2}; RTS {heard_rts:.2}, hidden {unheard_rts:.2}");
        assert!(unheard < most * heard, "{phy}: {unheard} {heard}");
        assert!(
            (unheard_rts / heard_rts - 1.0).abs() < 0.1,
            "{phy}: {unheard_rts} {heard_rts}"
        );
    }
}

#[test]
fn a_lone_frame_is_on_its_way_at_once() {
    // At a tenth of the load most frames find the medium idle for DIFS already: their delay is the airtime, 254 us. The mean, with
    // those that wait, is near DIFS and airtime.
    for n in [1, 5] {
        let light = outcome(&Scenario {
            load: Some(0.1),
            ..saturated("802.11g-54", n, 20.0)
        });
        let delay = light.delay_ms.unwrap();
        println!("10% load, n = {n}: {delay:?}");
        assert!((delay.p50 / 0.254 - 1.0).abs() < 0.001, "{delay:?}");
        assert!((delay.mean / (0.254 + 0.028) - 1.0).abs() < 0.05, "{delay:?}");
        let offered = 0.1 * light.single_station_mbit_per_s;
        assert!((light.throughput_mbit_per_s / offered - 1.0).abs() < 0.05, "{light:?}");
    }
}

#[test]
fn errors_cost_attempts_and_a_limit_gives_frames_up() {
    let mut scenario = saturated("802.11n-65", 2, 10.0);
    scenario.medium.aggregate = 16;
    let clean = outcome(&scenario);
    scenario.medium.frame_error = 0.2;
    let damaged = outcome(&scenario);
    assert_eq!(damaged.counters.lost, 0);
    let share = damaged.throughput_mbit_per_s / clean.throughput_mbit_per_s;
    assert!((0.7..0.9).contains(&share), "{share}");
    scenario.medium.aggregate = 1;
    scenario.medium.retry_limit = Some(1);
    let given_up = outcome(&scenario);
    let counters = given_up.counters;
    #[allow(clippy::cast_precision_loss)]
    let lost = counters.lost as f64 / (counters.lost + counters.delivered) as f64;
    assert!(lost > 0.2 && lost < 0.35, "{counters:?}");
    assert_eq!(counters.retries, 0);
}

#[test]
fn wrong_settings_are_named() {
    let message = |change: fn(&mut Scenario)| {
        let mut scenario = saturated("802.11g-54", 2, 1.0);
        change(&mut scenario);
        steelyard_link::simulate(&scenario).unwrap_err().to_string()
    };
    for (change, words) in [
        (
            (|s| s.medium.aggregate = 4) as fn(&mut Scenario),
            "aggregate: 802.11g-54 cannot aggregate",
        ),
        (
            |s| s.medium.ack_rate_mbit = Some(11.0),
            "ack_rate_mbit: 11 is not one of 6, 12, 24",
        ),
        (|s| s.medium.retry_limit = Some(0), "retry_limit"),
        (
            |s| s.medium.frame_error = 1.0,
            "frame_error: 1 is not a probability below 1",
        ),
        (
            |s| s.medium.phy = "802.11x".to_owned(),
            "\"802.11x\" is not one of 802.11b-1, 802.11b-2",
        ),
        (
            |s| s.medium.hidden = vec![("s0".to_owned(), "s9".to_owned())],
            "\"s9\" is none of the stations s0, s1",
        ),
        (|s| s.stations = 0, "stations: 0 is not from 1"),
        (|s| s.seconds = f64::NAN, "seconds"),
        (|s| s.load = Some(-1.0), "load"),
        (|s| s.slow = 3, "slow: 3 of 2 stations"),
    ] {
        let text = message(change);
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn scenario_1_the_medium_saturates() {
    let offered = |load: f64| {
        let scenario = Scenario {
            load: Some(load),
            ..saturated("802.11g-54", 5, 10.0)
        };
        outcome(&scenario)
    };
    let (half, all, twice) = (offered(0.5), offered(1.0), offered(2.0));
    let ceiling = mbit(&saturated("802.11g-54", 5, 10.0));
    assert!((half.throughput_mbit_per_s / (0.5 * half.single_station_mbit_per_s) - 1.0).abs() < 0.05);
    assert!((twice.throughput_mbit_per_s / ceiling - 1.0).abs() < 0.02, "{twice:?}");
    assert!(twice.counters.queue_drops > 0);
    assert!(all.delay_ms.unwrap().p50 > 3.0 * half.delay_ms.unwrap().p50);
}

#[test]
fn scenario_2_two_access_points_on_one_channel_interfere() {
    let apart = mbit(&saturated("802.11g-54", 2, 10.0));
    let mut scenario = saturated("802.11g-54", 4, 10.0);
    let one = mbit(&scenario);
    scenario.medium.access_points = 2;
    let two = outcome(&scenario);
    assert!((two.throughput_mbit_per_s / one - 1.0).abs() < 0.02, "{two:?}");
    assert!(two.throughput_mbit_per_s < 0.55 * 2.0 * apart);
    // Their stations reach each other over the wire between them.
    scenario.traffic = Traffic::Relay;
    assert!(mbit(&scenario) > 1.0);
}

#[test]
fn scenario_3_a_station_of_54_reaches_more_than_20() {
    for traffic in [Traffic::Uplink, Traffic::Downlink] {
        let got = mbit(&Scenario {
            traffic,
            ..saturated("802.11g-54", 1, 5.0)
        });
        assert!(got > 20.0, "{traffic:?}: {got}");
    }
}

#[test]
fn scenario_4_a_station_of_65_reaches_more_than_40_with_aggregates() {
    for traffic in [Traffic::Uplink, Traffic::Downlink] {
        let mut scenario = Scenario {
            traffic,
            ..saturated("802.11n-65", 1, 5.0)
        };
        assert!(mbit(&scenario) < 40.0);
        scenario.medium.aggregate = 16;
        let got = mbit(&scenario);
        assert!(got > 40.0, "{traffic:?}: {got}");
    }
}
