//! Waking a medium only when something may arrive: the same function of seed and arrivals as waking it for every event.
#![allow(clippy::unwrap_used)] // helpers of tests

use steelyard_link::{Counters, Delivery, Frame, Loss, Medium, MediumConfig, Port, WifiConfig, build};

use crate::shared::medium;

const FRAMES: u64 = 3_000;
const SEEDS: u64 = 6;

/// What comes out of a medium, and how often it was woken for it.
#[derive(Debug, Default)]
struct Course {
    deliveries: Vec<Delivery>,
    losses: Vec<(u64, Loss)>,
    counters: Counters,
    woken: usize,
}

/// A medium, its ports' wiring and its dilation, for people by name.
struct Case {
    name: &'static str,
    config: WifiConfig,
    wired: Vec<bool>,
    dilation: f64,
}

fn case(name: &'static str, phy: &str, wired: &[bool], change: impl Fn(&mut WifiConfig)) -> Case {
    let mut config = medium(phy);
    config.queue_frames = 20;
    config.retry_limit = Some(4);
    change(&mut config);
    Case {
        name,
        config,
        wired: wired.to_vec(),
        dilation: 1.0,
    }
}

fn cases() -> Vec<Case> {
    let hidden = vec![("n0".to_owned(), "n2".to_owned()), ("n1".to_owned(), "n3".to_owned())];
    let plain = |_: &mut WifiConfig| ();
    vec![
        case("stations to each other", "802.11g-54", &[false; 3], plain),
        case("some over a wire", "802.11g-54", &[false, false, true, true], plain),
        case("one station", "802.11b-11", &[false, true], plain),
        case(
            "hidden, damaged",
            "802.11g-24",
            &[false, false, false, false, true],
            |config| {
                config.hidden.clone_from(&hidden);
                config.frame_error = 0.2;
            },
        ),
        case("RTS for some, hidden", "802.11g-54", &[false; 4], |config| {
            config.hidden.clone_from(&hidden);
            config.rts_threshold_bytes = Some(700);
            config.retry_limit = None;
        }),
        case(
            "aggregates, damaged",
            "802.11n-65",
            &[false, false, false, true],
            |config| {
                config.aggregate = 8;
                config.frame_error = 0.3;
            },
        ),
        case("aggregates given up", "802.11n-26", &[false; 5], |config| {
            config.aggregate = 16;
            config.frame_error = 0.5;
            config.retry_limit = Some(2);
            config.rts_threshold_bytes = Some(3_000);
        }),
        case(
            "two access points",
            "802.11g-12",
            &[false, false, false, false, true],
            |config| {
                config.access_points = 2;
                config.frame_error = 0.05;
            },
        ),
        Case {
            dilation: 2.7,
            ..case("dilated", "802.11g-54", &[false; 4], plain)
        },
    ]
}

/// A sequence of numbers that looks random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)] // small numbers
/// Frames of random sizes, senders and receivers, in bursts and with pauses, with their times.
fn arrivals(ports: usize, seed: u64, dilation: f64) -> Vec<(u64, Frame)> {
    let mut numbers = Numbers(seed);
    let mut now_ns = 0;
    let gap = |gap_ns: u64| (gap_ns as f64 * dilation) as u64;
    (0..FRAMES)
        .map(|id| {
            now_ns += match numbers.below(8) {
                0 => gap(numbers.below(6_000_000)),
                1..4 => gap(numbers.below(600_000)),
                4..6 => gap(numbers.below(30_000)),
                _ => 0,
            };
            let from = numbers.below(ports as u64) as usize;
            let other = (from + 1 + numbers.below(ports as u64 - 1) as usize) % ports;
            let bytes = [40, 64, 576, 1_500][numbers.below(4) as usize];
            let to = (numbers.below(10) > 0).then_some(other);
            (now_ns, Frame { id, from, to, bytes })
        })
        .collect()
}

/// Drives a medium to the end of all arrivals. `next`: when it wants to be woken.
fn course(case: &Case, seed: u64, next: fn(&dyn Medium) -> Option<u64>) -> Course {
    let name = |(place, wired): (usize, &bool)| Port {
        name: format!("n{place}"),
        wired: *wired,
    };
    let ports: Vec<Port> = case.wired.iter().enumerate().map(name).collect();
    let mut medium = build(&MediumConfig::Wifi(case.config.clone()), &ports, case.dilation, seed).unwrap();
    let mut course = Course::default();
    let wake_until = |medium: &mut dyn Medium, course: &mut Course, end_ns: u64| {
        while let Some(wake_ns) = next(medium).filter(|wake_ns| *wake_ns <= end_ns) {
            assert!(medium.due_ns().is_some_and(|due_ns| due_ns <= wake_ns), "{}", case.name);
            let before = course.deliveries.len();
            medium.advance(wake_ns, &mut course.deliveries);
            course.woken += 1;
            for delivery in &course.deliveries[before..] {
                assert_eq!(delivery.at_ns, wake_ns, "{}, seed {seed}: woken too late", case.name);
            }
        }
    };
    for (now_ns, frame) in arrivals(ports.len(), seed, case.dilation) {
        wake_until(medium.as_mut(), &mut course, now_ns);
        let before = course.deliveries.len();
        medium.advance(now_ns, &mut course.deliveries);
        assert_eq!(
            course.deliveries.len(),
            before,
            "{}: a delivery was not foreseen",
            case.name
        );
        medium.offer(now_ns, frame);
    }
    wake_until(medium.as_mut(), &mut course, u64::MAX);
    assert_eq!(medium.due_ns(), None, "{}: it comes to rest", case.name);
    medium.losses(&mut course.losses);
    course.counters = medium.counters();
    course
}

#[test]
fn a_medium_that_is_woken_for_deliveries_alone_does_the_same_as_event_by_event() {
    let (mut every_event, mut foreseen) = (0, 0);
    for case in cases() {
        for seed in 1..=SEEDS {
            let events = course(&case, seed, |medium| medium.due_ns());
            let wakes = course(&case, seed, |medium| medium.wake_ns());
            assert_eq!(wakes.deliveries, events.deliveries, "{}, seed {seed}", case.name);
            assert_eq!(wakes.losses, events.losses, "{}, seed {seed}", case.name);
            assert_eq!(wakes.counters, events.counters, "{}, seed {seed}", case.name);
            assert!(
                wakes.deliveries.len() > 300,
                "{}, seed {seed}: little arrived",
                case.name
            );
            every_event += events.woken;
            foreseen += wakes.woken;
        }
    }
    assert!(2 * foreseen < every_event, "{every_event} events, {foreseen} wake-ups");
}
