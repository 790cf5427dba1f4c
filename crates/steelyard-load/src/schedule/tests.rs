//! Schedules by tables and by properties: monotone, as many as the integral of the rate, shares that make up the whole.
#![allow(clippy::unwrap_used)]

use std::f64::consts::PI;

use super::*;

const S: u64 = 1_000_000_000;

fn constant(rate_per_s: f64, duration_s: Option<f64>) -> Result<Pace, OrderError> {
    let in_flight = 1;
    Pace::new(&Wanted::Constant { rate_per_s, in_flight }, duration_s, 1)
}

fn poisson(rate_per_s: f64, duration_s: Option<f64>, seed: u64) -> Pace {
    let in_flight = 1;
    Pace::new(&Wanted::Poisson { rate_per_s, in_flight }, duration_s, seed).unwrap()
}

fn ramp(from_per_s: f64, to_per_s: f64, ramp_s: f64, arrivals: Arrivals) -> Wanted {
    Wanted::Ramp {
        from_per_s,
        to_per_s,
        ramp_s,
        in_flight: 1,
        arrivals,
    }
}

fn steps(rates_per_s: &[f64], step_s: f64, arrivals: Arrivals) -> Wanted {
    Wanted::Steps {
        rates_per_s: rates_per_s.to_vec(),
        step_s,
        in_flight: 1,
        arrivals,
    }
}

fn sine(mean_per_s: f64, amplitude_per_s: f64, period_s: f64, arrivals: Arrivals) -> Wanted {
    Wanted::Sine {
        mean_per_s,
        amplitude_per_s,
        period_s,
        in_flight: 1,
        arrivals,
    }
}

fn even(schedule: &Wanted) -> Pace {
    Pace::new(schedule, None, 1).unwrap()
}

/// Every shape, among them the awkward ones: from and to nothing, a step without operations, a sine that touches 0.
fn shapes(arrivals: Arrivals) -> Vec<Wanted> {
    vec![
        ramp(100.0, 1000.0, 10.0, arrivals),
        ramp(1000.0, 100.0, 7.0, arrivals),
        ramp(0.0, 500.0, 5.0, arrivals),
        ramp(500.0, 0.0, 5.0, arrivals),
        ramp(300.0, 300.0, 5.0, arrivals),
        steps(&[100.0, 0.0, 700.0], 3.0, arrivals),
        steps(&[0.0, 250.5], 1.5, arrivals),
        sine(400.0, 300.0, 6.0, arrivals),
        sine(400.0, 400.0, 7.0, arrivals),
        sine(3.0, 0.0, 0.5, arrivals),
    ]
}

#[test]
fn constant_table() {
    let table: [(f64, Option<f64>, u64, Option<u64>); 8] = [
        (1000.0, None, 0, Some(0)),
        (1000.0, None, 1, Some(1_000_000)),
        (1000.0, None, 3_600_000, Some(3_600_000_000_000)),
        (3.0, None, 1, Some(333_333_333)),
        (3.0, None, 3, Some(S)),
        (1000.0, Some(1.0), 999, Some(999_000_000)),
        (1000.0, Some(1.0), 1000, None),
        (0.5, None, 2, Some(4 * S)),
    ];
    for (rate, duration, index, due) in table {
        let mut pace = constant(rate, duration).unwrap();
        assert_eq!(pace.due(index), due, "{rate} {duration:?} {index}");
    }
}

#[test]
fn shapes_table() {
    let table: [(Wanted, u64, Option<u64>); 15] = [
        // 0 to 10/s within 10 s: n = t^2 / 2.
        (ramp(0.0, 10.0, 10.0, Arrivals::Even), 0, Some(0)),
        (ramp(0.0, 10.0, 10.0, Arrivals::Even), 2, Some(2 * S)),
        (ramp(0.0, 10.0, 10.0, Arrivals::Even), 50, Some(10 * S)),
        (ramp(0.0, 10.0, 10.0, Arrivals::Even), 60, Some(11 * S)),
        // 10/s to nothing within 10 s: n = 10 t - t^2 / 2.
        (ramp(10.0, 0.0, 10.0, Arrivals::Even), 18, Some(2 * S)),
        (ramp(10.0, 0.0, 10.0, Arrivals::Even), 32, Some(4 * S)),
        (ramp(10.0, 0.0, 10.0, Arrivals::Even), 50, None),
        (steps(&[1.0, 4.0], 2.0, Arrivals::Even), 1, Some(S)),
        (steps(&[1.0, 4.0], 2.0, Arrivals::Even), 2, Some(2 * S)),
        (steps(&[1.0, 4.0], 2.0, Arrivals::Even), 4, Some(2 * S + S / 2)),
        (steps(&[1.0, 4.0], 2.0, Arrivals::Even), 14, Some(5 * S)),
        // Nothing is due in a step without operations, not even at its edge.
        (steps(&[1.0, 0.0, 1.0], 2.0, Arrivals::Even), 2, Some(4 * S)),
        (steps(&[1.0, 0.0], 2.0, Arrivals::Even), 2, None),
        // After each whole period the mean's operations; after the first half 2 x amplitude x period / 2 pi more than that.
        (sine(100.0, 50.0, 4.0, Arrivals::Even), 800, Some(8 * S)),
        (sine(PI, PI, 2.0, Arrivals::Even), 0, Some(0)),
    ];
    for (schedule, index, due) in table {
        assert_eq!(even(&schedule).due(index), due, "{schedule:?} {index}");
    }
    // n = pi t + 1 - cos(pi t): n(1) = pi + 2.
    let half = shape_of(&sine(PI, PI, 2.0, Arrivals::Even)).time_ns(PI + 2.0).unwrap();
    assert!((half / 1e9 - 1.0).abs() < 1e-12, "{half}");
}

fn shape_of(schedule: &Wanted) -> Shape {
    Shape::new(schedule).unwrap().unwrap()
}

#[test]
fn due_times_never_fall_and_their_number_is_the_integral_of_the_rate() {
    for schedule in shapes(Arrivals::Even) {
        let (mut pace, shape) = (even(&schedule), shape_of(&schedule));
        let dues: Vec<u64> = (0..4000).map_while(|index| pace.due(index)).collect();
        assert!(dues.windows(2).all(|pair| pair[0] <= pair[1]), "{schedule:?}");
        let last = dues[dues.len() - 1] as f64 / 1e9;
        for part in 1..=200 {
            let t = last * f64::from(part) / 200.0;
            let due = dues.iter().filter(|due| **due as f64 / 1e9 <= t).count() as f64;
            let whole = shape.count(t);
            assert!(
                (due - whole).abs() <= 1.0 + 1e-6,
                "{schedule:?}: {due} of {whole} at {t}"
            );
        }
    }
}

#[test]
fn the_inverse_undoes_the_sum() {
    for schedule in shapes(Arrivals::Even) {
        let shape = shape_of(&schedule);
        for n in (0..2000).map(|n| f64::from(n) * 0.7) {
            let Some(ns) = shape.time_ns(n) else { continue };
            let again = shape.count(ns / 1e9);
            assert!(
                (again - n).abs() < 1e-6 * (1.0 + n),
                "{schedule:?}: {n} gave {ns}, which is {again}"
            );
        }
    }
}

#[test]
fn shares_make_up_the_whole() {
    for arrivals in [Arrivals::Even, Arrivals::Poisson] {
        for schedule in shapes(arrivals) {
            let whole: Vec<_> = {
                let mut pace = even(&schedule);
                (0..999).map(|index| pace.due(index)).collect()
            };
            let mut parts = vec![None; 999];
            for share in 0..3 {
                let mut pace = even(&schedule);
                for index in (share..999).step_by(3) {
                    parts[index] = pace.due(index as u64);
                }
            }
            assert_eq!(parts, whole, "{schedule:?}");
        }
    }
}

#[test]
fn poisson_arrivals_follow_the_shape() {
    for schedule in shapes(Arrivals::Poisson) {
        let (mut pace, shape) = (even(&schedule), shape_of(&schedule));
        let dues: Vec<u64> = (0..3000).map_while(|index| pace.due(index)).collect();
        assert!(dues.windows(2).all(|pair| pair[0] <= pair[1]), "{schedule:?}");
        for number in [dues.len() / 3, dues.len() - 1] {
            // The added-up rate at the n-th arrival is the sum of n unit gaps: mean n, variance n.
            let (sum, n) = (shape.count(dues[number] as f64 / 1e9), (number + 1) as f64);
            assert!((sum - n).abs() < 4.5 * n.sqrt(), "{schedule:?}: {sum} for {n}");
        }
    }
}

#[test]
fn schedules_that_cannot_be_are_refused_by_their_field() {
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 1e-300] {
        assert_eq!(constant(rate, None).unwrap_err().field, "schedule.rate_per_s");
    }
    for duration_s in [0.0, f64::INFINITY, 1e12] {
        assert_eq!(constant(1.0, Some(duration_s)).unwrap_err().field, "stop.duration_s");
    }
    let even = Arrivals::Even;
    for (schedule, field) in [
        (ramp(-1.0, 1.0, 1.0, even), "schedule.from_per_s"),
        (ramp(1.0, f64::NAN, 1.0, even), "schedule.to_per_s"),
        (ramp(0.0, 0.0, 1.0, even), "schedule.to_per_s"),
        (ramp(0.0, 1e308, 1.0, even), "schedule.to_per_s"),
        (ramp(0.0, 1.0, 0.0, even), "schedule.ramp_s"),
        (steps(&[], 1.0, even), "schedule.rates_per_s"),
        (steps(&[0.0, 0.0], 1.0, even), "schedule.rates_per_s"),
        (steps(&[1.0, -1.0], 1.0, even), "schedule.rates_per_s"),
        (steps(&[1.0], 0.0, even), "schedule.step_s"),
        (sine(0.0, 0.0, 1.0, even), "schedule.mean_per_s"),
        (sine(1.0, 1.1, 1.0, even), "schedule.amplitude_per_s"),
        (sine(1.0, 1.0, -1.0, even), "schedule.period_s"),
        (sine(1.0, 1.0, 1e-300, even), "schedule.period_s"),
    ] {
        let error = Pace::new(&schedule, None, 1).unwrap_err();
        assert_eq!(error.field, field, "{schedule:?}");
    }
}

#[test]
fn poisson_is_pure_in_seed_and_index() {
    let mut forward = poisson(1000.0, None, 7);
    let dues: Vec<_> = (0..100).map(|index| forward.due(index)).collect();
    assert!(dues.windows(2).all(|pair| pair[0] <= pair[1]));
    assert_eq!(forward.due(99), dues[99]);
    assert_eq!(forward.due(3), dues[3]);
    assert_ne!(poisson(1000.0, None, 8).due(0), dues[0]);
}

#[test]
fn poisson_gaps_have_mean_and_spread_of_an_exponential() {
    let mut poisson_of_a_million = poisson(1e6, None, 3);
    let count = 100_000;
    let dues: Vec<f64> = (0..count)
        .map(|index| poisson_of_a_million.due(index).unwrap() as f64)
        .collect();
    let gaps: Vec<f64> = dues.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
    // Standard errors are 0.32% and about 0.45%.
    assert!((mean / 1000.0 - 1.0).abs() < 0.013, "{mean}");
    assert!((deviation / 1000.0 - 1.0).abs() < 0.02, "{deviation}");
    assert_eq!(poisson(1000.0, Some(1.0), 3).due(2000), None);
}

#[test]
fn a_trace_ends_with_its_file_or_with_the_phase() {
    let path = std::env::temp_dir().join(format!("steelyard-trace-{}", std::process::id()));
    std::fs::write(&path, "5\n5.5\n7\n").unwrap();
    let wanted = Wanted::Trace {
        file: path.display().to_string(),
        speed: 1.0,
        in_flight: 1,
    };
    let mut whole = Pace::new(&wanted, None, 1).unwrap();
    let mut cut = Pace::new(&wanted, Some(1.0), 1).unwrap();
    std::fs::remove_file(path).unwrap();
    let dues: Vec<_> = (0..4).map(|index| whole.due(index)).collect();
    assert_eq!(dues, [Some(0), Some(S / 2), Some(2 * S), None]);
    assert_eq!(
        (cut.due(1), cut.due(2), cut.operations(1.0)),
        (Some(S / 2), None, Some(2.0))
    );
}
