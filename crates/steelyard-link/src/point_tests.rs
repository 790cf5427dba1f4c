//! What frames meet on point-to-point links: arithmetic where nothing is drawn, bounds where something is.

use super::*;
use crate::config::{MediumConfig, Port};

/// 20 Mb/s: a frame of 1,250 bytes with its header takes half a millisecond.
const RATE_MBIT: f64 = 20.0;
const PAYLOAD_BYTES: usize = 1236;
const CABLE_NS: u64 = 500_000;
const MILLISECOND_NS: u64 = 1_000_000;

fn plain() -> PointConfig {
    PointConfig {
        rate_mbit: Some(RATE_MBIT),
        delay_ms: 0.0,
        jitter_ms: 0.0,
        loss_percent: 0.0,
        duplex: Duplex::Full,
        queue_frames: 1000,
    }
}

fn medium(config: &PointConfig, ports: usize) -> PointToPoint {
    PointToPoint::new(config, ports, 1).unwrap()
}

fn frame(id: u64, from: usize, to: usize) -> Frame {
    Frame {
        id,
        from,
        to: Some(to),
        bytes: PAYLOAD_BYTES,
    }
}

/// Everything that a medium still does.
fn rest(medium: &mut dyn Medium) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    while let Some(due_ns) = medium.due_ns() {
        medium.advance(due_ns, &mut deliveries);
    }
    deliveries
}

/// One frame every so often from port 0 to port 1, and what arrives.
fn regular(medium: &mut dyn Medium, frames: u64, every_ns: u64) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    for id in 0..frames {
        medium.advance(id * every_ns, &mut deliveries);
        assert!(medium.offer(id * every_ns, frame(id, 0, 1)));
    }
    deliveries.extend(rest(medium));
    deliveries
}

#[test]
fn a_frame_takes_both_cables_and_the_delay() {
    let mut medium = medium(
        &PointConfig {
            delay_ms: 5.0,
            ..plain()
        },
        2,
    );
    assert!(medium.offer(7, frame(3, 0, 1)));
    assert_eq!(medium.due_ns(), Some(7 + CABLE_NS));
    let at_ns = 7 + 2 * CABLE_NS + 5 * MILLISECOND_NS;
    let mut deliveries = Vec::new();
    medium.advance(at_ns - 1, &mut deliveries);
    assert_eq!(deliveries, []);
    medium.advance(at_ns, &mut deliveries);
    assert_eq!(deliveries, [Delivery { id: 3, to: 1, at_ns }]);
    assert_eq!(medium.due_ns(), None);
    assert_eq!(medium.counters().delivered_bytes, PAYLOAD_BYTES as u64);
}

#[test]
fn frames_follow_each_other_at_the_rate() {
    let mut medium = medium(
        &PointConfig {
            delay_ms: 1.0,
            ..plain()
        },
        2,
    );
    assert!((0..50).all(|id| medium.offer(0, frame(id, 0, 1))));
    for (number, delivery) in (0..).zip(rest(&mut medium)) {
        let at_ns = MILLISECOND_NS + (number + 2) * CABLE_NS;
        assert_eq!(
            delivery,
            Delivery {
                id: number,
                to: 1,
                at_ns
            }
        );
    }
    assert_eq!(medium.counters().delivered, 50);
    assert_eq!(medium.counters().busy_ns, 100 * CABLE_NS, "both cables");
}

#[test]
fn without_a_rate_nothing_waits() {
    let mut medium = medium(
        &PointConfig {
            rate_mbit: None,
            ..plain()
        },
        2,
    );
    assert!((0..5).all(|id| medium.offer(9, frame(id, 0, 1))));
    let ids: Vec<(u64, u64)> = rest(&mut medium)
        .iter()
        .map(|delivery| (delivery.id, delivery.at_ns))
        .collect();
    assert_eq!(ids, [(0, 9), (1, 9), (2, 9), (3, 9), (4, 9)]);
}

#[test]
fn both_directions_at_once_or_in_turns() {
    let last_ns = |duplex| {
        let mut medium = medium(&PointConfig { duplex, ..plain() }, 2);
        for id in 0..100 {
            assert!(medium.offer(0, frame(id, 0, 1)) && medium.offer(0, frame(100 + id, 1, 0)));
        }
        let deliveries = rest(&mut medium);
        assert_eq!(deliveries.len(), 200);
        let to_first = deliveries[..100].iter().filter(|delivery| delivery.to == 0).count();
        assert!((40..=60).contains(&to_first), "neither direction starves: {to_first}");
        deliveries[199].at_ns
    };
    assert_eq!(last_ns(Duplex::Full), 101 * CABLE_NS);
    let half = last_ns(Duplex::Half);
    assert!(
        (200 * CABLE_NS..=202 * CABLE_NS).contains(&half),
        "each cable carries 200 frames: {half}"
    );
}

#[test]
fn one_way_traffic_is_as_fast_in_half_duplex() {
    let mut medium = medium(
        &PointConfig {
            duplex: Duplex::Half,
            ..plain()
        },
        2,
    );
    assert!((0..100).all(|id| medium.offer(0, frame(id, 0, 1))));
    assert_eq!(rest(&mut medium)[99].at_ns, 101 * CABLE_NS);
}

#[test]
fn a_full_queue_drops_at_the_sender_and_in_the_switch() {
    let config = PointConfig {
        queue_frames: 3,
        ..plain()
    };
    let mut medium = medium(&config, 3);
    let taken = (0..10).filter(|id| medium.offer(0, frame(*id, 0, 1))).count();
    assert_eq!(taken, 4, "one is being sent, three wait");
    assert_eq!(rest(&mut medium).len(), 4);

    let mut medium = self::medium(&config, 3);
    let mut deliveries = Vec::new();
    for id in 0..20 {
        let now_ns = id * CABLE_NS;
        medium.advance(now_ns, &mut deliveries);
        assert!(medium.offer(now_ns, frame(2 * id, 0, 2)) && medium.offer(now_ns, frame(2 * id + 1, 1, 2)));
    }
    deliveries.extend(rest(&mut medium));
    let mut losses = Vec::new();
    medium.losses(&mut losses);
    // Two cables feed one: of 20 frame times it sends 20 frames; three more wait then.
    assert_eq!((deliveries.len(), losses.len()), (23, 17));
    assert!(losses.iter().all(|(_, loss)| *loss == Loss::QueueFull));
    let mut ids: Vec<u64> = deliveries
        .iter()
        .map(|delivery| delivery.id)
        .chain(losses.iter().map(|(id, _)| *id))
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..40).collect::<Vec<_>>(), "each frame has one end");
    let counters = medium.counters();
    assert_eq!(
        (counters.offered, counters.delivered, counters.queue_drops),
        (40, 23, 17)
    );
}

#[test]
fn losses_are_binomial_and_do_not_depend_on_when_frames_come() {
    const FRAMES: u64 = 20_000;
    let config = PointConfig {
        loss_percent: 2.0,
        ..plain()
    };
    let arrived = |every_ns, seed| {
        let mut medium = PointToPoint::new(&config, 2, seed).unwrap();
        let deliveries = regular(&mut medium, FRAMES, every_ns);
        let counters = medium.counters();
        assert_eq!(counters.delivered + counters.lost, FRAMES);
        deliveries.iter().map(|delivery| delivery.id).collect::<Vec<_>>()
    };
    let first = arrived(CABLE_NS, 1);
    // Mean 400, standard deviation 19.8: five of them.
    let lost = FRAMES - first.len() as u64;
    assert!((301..=499).contains(&lost), "{lost}");
    assert_eq!(first, arrived(3 * CABLE_NS, 1));
    assert_ne!(first, arrived(CABLE_NS, 2));
}

#[test]
fn jitter_varies_the_delay_and_keeps_the_order() {
    const FRAMES: u64 = 5000;
    let config = PointConfig {
        delay_ms: 5.0,
        jitter_ms: 2.0,
        ..plain()
    };
    // So seldom that no frame ever waits for the one before.
    let every_ns = 10 * MILLISECOND_NS;
    let delays_ns: Vec<u64> = regular(&mut medium(&config, 2), FRAMES, every_ns)
        .iter()
        .map(|delivery| delivery.at_ns - delivery.id * every_ns - 2 * CABLE_NS)
        .collect();
    assert!(
        delays_ns
            .iter()
            .all(|delay| (3 * MILLISECOND_NS..=7 * MILLISECOND_NS).contains(delay))
    );
    let mean_ms = delays_ns.iter().sum::<u64>() as f64 / FRAMES as f64 / 1e6;
    // Standard deviation 2 / sqrt(3) ms over the root of 5000: 0.0163; five of them.
    assert!((mean_ms - 5.0).abs() < 0.082, "{mean_ms}");
    let spread = |low: u64, high: u64| delays_ns.iter().filter(|delay| (low..high).contains(*delay)).count();
    assert!(
        spread(3 * MILLISECOND_NS, 4 * MILLISECOND_NS) > 1000 && spread(6 * MILLISECOND_NS, 7 * MILLISECOND_NS) > 1000
    );

    let close = regular(&mut medium(&config, 2), FRAMES, CABLE_NS);
    let ids: Vec<u64> = close.iter().map(|delivery| delivery.id).collect();
    assert_eq!(ids, (0..FRAMES).collect::<Vec<_>>());
}

#[test]
fn a_seed_gives_the_same_deliveries_again() {
    let config = PointConfig {
        delay_ms: 5.0,
        jitter_ms: 5.0,
        loss_percent: 10.0,
        ..plain()
    };
    let deliveries = |seed| regular(&mut PointToPoint::new(&config, 2, seed).unwrap(), 1000, CABLE_NS);
    assert_eq!(deliveries(4), deliveries(4));
    assert_ne!(deliveries(4), deliveries(5));
}

#[test]
fn dilated_twice_it_is_exactly_half_as_fast() {
    let config = PointConfig {
        rate_mbit: Some(7.3),
        delay_ms: 1.7,
        jitter_ms: 0.9,
        loss_percent: 3.0,
        duplex: Duplex::Half,
        queue_frames: 1000,
    };
    let ports = ["n1", "n2"].map(|name| Port {
        name: name.to_owned(),
        wired: false,
    });
    let deliveries = |dilation: u32| {
        let point = MediumConfig::PointToPoint(config.clone());
        let mut medium = crate::build(&point, &ports, f64::from(dilation), 9).unwrap();
        regular(&mut *medium, 1000, u64::from(dilation) * CABLE_NS)
    };
    let undiluted = deliveries(1);
    let twice: Vec<Delivery> = undiluted
        .iter()
        .map(|delivery| Delivery {
            at_ns: 2 * delivery.at_ns,
            ..*delivery
        })
        .collect();
    assert!(undiluted.len() > 900);
    assert_eq!(deliveries(2), twice);
}

#[test]
fn a_broadcast_reaches_all_others_each_by_its_own_cable() {
    let mut medium = medium(&plain(), 4);
    assert!(medium.offer(
        0,
        Frame {
            to: None,
            ..frame(5, 1, 0)
        }
    ));
    let mut deliveries = rest(&mut medium);
    deliveries.sort_by_key(|delivery| delivery.to);
    let to = |to| Delivery {
        id: 5,
        to,
        at_ns: 2 * CABLE_NS,
    };
    assert_eq!(deliveries, [to(0), to(2), to(3)]);
    assert_eq!((medium.counters().offered, medium.counters().delivered), (1, 3));
}

#[test]
fn settings_that_cannot_be_are_refused_by_name() {
    let cases = [
        (
            PointConfig {
                rate_mbit: Some(0.0),
                ..plain()
            },
            "rate_mbit",
        ),
        (
            PointConfig {
                delay_ms: -1.0,
                ..plain()
            },
            "delay_ms",
        ),
        (
            PointConfig {
                delay_ms: 1.0,
                jitter_ms: 2.0,
                ..plain()
            },
            "jitter_ms",
        ),
        (
            PointConfig {
                loss_percent: f64::NAN,
                ..plain()
            },
            "loss_percent",
        ),
        (
            PointConfig {
                queue_frames: 0,
                ..plain()
            },
            "queue_frames",
        ),
    ];
    for (config, name) in cases {
        let error = PointToPoint::new(&config, 2, 1).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}
