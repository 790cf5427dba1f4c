//! The medium as the live program drives it: frames between ports, by their places.
#![allow(clippy::unwrap_used)] // helpers of tests

use steelyard_link::{Counters, Delivery, Frame, Loss, Medium, MediumConfig, Port, build};

use crate::shared::medium;

const UPLINK_NS: u64 = 254_000;

fn ports(wired: &[bool]) -> Vec<Port> {
    let port = |(place, wired): (usize, &bool)| Port {
        name: format!("n{place}"),
        wired: *wired,
    };
    wired.iter().enumerate().map(port).collect()
}

fn frame(id: u64, from: usize, to: Option<usize>) -> Frame {
    Frame {
        id,
        from,
        to,
        bytes: 1500,
    }
}

/// Everything that arrives until nothing is under way.
fn drained(medium: &mut dyn Medium) -> Vec<Delivery> {
    let mut out = Vec::new();
    for _ in 0..10_000 {
        let Some(due_ns) = medium.due_ns() else {
            return out;
        };
        medium.advance(due_ns, &mut out);
    }
    panic!("the medium never comes to rest");
}

fn wifi(wired: &[bool], dilation: f64) -> Box<dyn Medium> {
    build(&MediumConfig::Wifi(medium("802.11g-54")), &ports(wired), dilation, 7).unwrap()
}

#[test]
fn a_frame_between_stations_wins_the_medium_twice() {
    let mut medium = wifi(&[false, false, true], 1.0);
    assert!(medium.offer(1_000_000, frame(1, 0, Some(2))));
    let over_one_hop = drained(medium.as_mut());
    assert_eq!(
        over_one_hop,
        [Delivery {
            id: 1,
            to: 2,
            at_ns: 1_000_000 + UPLINK_NS
        }]
    );
    assert!(medium.offer(2_000_000, frame(2, 0, Some(1))));
    let over_two_hops = drained(medium.as_mut());
    assert_eq!(over_two_hops[0].to, 1);
    // Data, SIFS, ACK, DIFS, the access point's back-off of up to 15 slots, data again.
    let least = 2_000_000 + 2 * UPLINK_NS + 10_000 + 34_000 + 28_000;
    assert!(
        (least..=least + 15 * 9_000).contains(&over_two_hops[0].at_ns),
        "{over_two_hops:?}"
    );
    assert_eq!(medium.counters().attempts, 3);
}

#[test]
fn a_wire_takes_no_time_and_no_medium() {
    let mut medium = wifi(&[false, true, true], 1.0);
    assert!(medium.offer(5, frame(1, 1, Some(2))));
    assert_eq!(medium.due_ns(), Some(5));
    assert_eq!(drained(medium.as_mut()), [Delivery { id: 1, to: 2, at_ns: 5 }]);
    assert_eq!(medium.counters().attempts, 0);
}

#[test]
fn a_broadcast_reaches_everybody_else_once() {
    for from in [0, 3] {
        let mut medium = wifi(&[false, false, false, true], 1.0);
        assert!(medium.offer(1_000_000, frame(1, from, None)));
        let mut receivers: Vec<usize> = drained(medium.as_mut()).iter().map(|delivery| delivery.to).collect();
        receivers.sort_unstable();
        let others: Vec<usize> = (0..4).filter(|port| *port != from).collect();
        assert_eq!(receivers, others);
    }
}

#[test]
fn frames_of_one_station_arrive_in_order_also_when_some_are_damaged() {
    let mut config = medium("802.11n-65");
    config.aggregate = 8;
    config.frame_error = 0.3;
    let mut medium = build(&MediumConfig::Wifi(config), &ports(&[false, false]), 1.0, 3).unwrap();
    for id in 0..200 {
        assert!(medium.offer(0, frame(id, 0, Some(1))));
    }
    let ids: Vec<u64> = drained(medium.as_mut()).iter().map(|delivery| delivery.id).collect();
    assert_eq!(ids, (0..200).collect::<Vec<u64>>());
    assert!(medium.counters().retries > 10);
}

#[test]
fn a_full_queue_drops() {
    let mut config = medium("802.11g-54");
    config.queue_frames = 2;
    let mut medium = build(&MediumConfig::Wifi(config), &ports(&[false, true]), 1.0, 3).unwrap();
    let taken: Vec<bool> = (0..3).map(|id| medium.offer(0, frame(id, 0, Some(1)))).collect();
    assert_eq!(taken, [true, true, false]);
    assert_eq!(drained(medium.as_mut()).len(), 2);
    let Counters {
        offered,
        delivered,
        delivered_bytes,
        queue_drops,
        ..
    } = medium.counters();
    assert_eq!((offered, delivered, delivered_bytes, queue_drops), (3, 2, 3_000, 1));
}

#[test]
fn dilation_multiplies_every_time() {
    let run = |dilation: f64| {
        let mut medium = wifi(&[false, false, true], dilation);
        for id in 0..20 {
            assert!(medium.offer(0, frame(id, (id % 2) as usize, Some(2))));
        }
        (drained(medium.as_mut()), medium.counters().busy_ns)
    };
    let ((plain, busy), (slow, slow_busy)) = (run(1.0), run(2.5));
    assert_eq!(plain.len(), 20);
    for (plain, slow) in plain.iter().zip(&slow) {
        assert_eq!(
            (plain.id, plain.to, plain.at_ns * 5 / 2),
            (slow.id, slow.to, slow.at_ns)
        );
    }
    assert_eq!(busy * 5 / 2, slow_busy);
    assert!(build(&MediumConfig::Wifi(medium("802.11g-54")), &ports(&[false]), 0.0, 7).is_err());
}

#[test]
fn pairs_that_do_not_hear_each_other_are_named_by_port() {
    let mut config = medium("802.11g-54");
    config.hidden = vec![("n0".to_owned(), "n2".to_owned())];
    let mut medium = build(&MediumConfig::Wifi(config), &ports(&[false, true, false]), 1.0, 3).unwrap();
    // The second begins while the first is in the air: only a station that hears it would wait.
    assert!(medium.offer(1_000_000, frame(1, 0, Some(1))));
    let mut out = Vec::new();
    medium.advance(1_100_000, &mut out);
    assert!(medium.offer(1_100_000, frame(2, 2, Some(1))));
    assert_eq!(drained(medium.as_mut()).len(), 2);
    assert!(medium.counters().collisions >= 2, "{:?}", medium.counters());
}

#[test]
fn every_accepted_frame_arrives_or_is_a_loss() {
    let mut config = medium("802.11g-54");
    config.queue_frames = 3;
    config.retry_limit = Some(2);
    config.frame_error = 0.3;
    config.hidden = vec![("n0".to_owned(), "n1".to_owned())];
    let ports = ports(&[false, false, false, true]);
    let mut medium = build(&MediumConfig::Wifi(config), &ports, 1.0, 9).unwrap();
    let (mut arrived, mut losses) = (Vec::new(), Vec::new());
    let mut expected = 0;
    for id in 0..400_u64 {
        let now_ns = id * 200_000;
        medium.advance(now_ns, &mut arrived);
        let from = (id % 4) as usize;
        let to = [None, Some((from + 1) % 4)][usize::from(id % 7 > 0)];
        if medium.offer(now_ns, frame(id, from, to)) {
            expected += to.map_or(3, |_| 1);
        }
    }
    arrived.append(&mut drained(medium.as_mut()));
    medium.losses(&mut losses);
    let counters = medium.counters();
    assert_eq!(arrived.len() + losses.len(), expected, "{counters:?}");
    let lost = losses.iter().filter(|(_, loss)| *loss == Loss::Lost).count();
    assert_eq!(lost as u64, counters.lost);
    assert!(lost > 0 && losses.len() > lost, "{counters:?}");
}
