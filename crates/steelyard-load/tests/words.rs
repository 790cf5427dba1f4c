//! Words to a running load: phases as they are decided, on the clock that is moved by hand.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, mpsc};

use steelyard_load::clock::Clock;
use steelyard_load::drive;
use steelyard_wire::{Order, Stop, Word};

use crate::drive::{Fake, MS, Run, S, Seen, after, constant, order, seconds};
use crate::intervals_and_done;

fn phase_word(name: &str, rate_per_s: f64, duration_s: f64, settle_s: f64) -> Word {
    Word::Phase {
        name: name.to_owned(),
        schedule: constant(rate_per_s, 16),
        duration_s,
        settle_s,
        in_s: 0.0,
    }
}

fn order_by_words() -> Order {
    Order {
        words: true,
        ..order(constant(1000.0, 16), Stop::default())
    }
}

/// Carries out these words; the clock stands still while the load waits for one.
fn drive_by_words(order: &Order, words: Vec<Word>) -> (Result<(), String>, Run) {
    let hand: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(S)));
    let seen = Arc::new(Mutex::new(Seen::default()));
    let fake = Fake::new(hand, Box::new(after(MS)), &seen);
    let (sender, receiver) = mpsc::channel();
    for word in words {
        sender.send(Ok(word)).unwrap();
    }
    drop(sender);
    let (mut out, stop, clock) = (Vec::new(), AtomicBool::new(false), Clock::by_hand(hand));
    let ended = drive::run_by_words(vec![fake], order, &receiver, clock, &stop, &mut out);
    let (intervals, done) = intervals_and_done(&out);
    (ended.map_err(|error| error.to_string()), Run { intervals, done, seen })
}

#[test]
fn phases_are_carried_out_as_they_are_asked_for_and_the_operations_go_on() {
    let mut order = order_by_words();
    order.warm_up_s = 1.0;
    let words = vec![
        Word::Go { in_s: 0.5 },
        phase_word("w1", 1000.0, 2.0, 1.0),
        phase_word("w2", 500.0, 1.0, 0.0),
        Word::Stop {},
    ];
    let (ended, run) = drive_by_words(&order, words);
    assert_eq!(ended, Ok(()));
    let counts: Vec<(&str, u64)> = run
        .done
        .iter()
        .map(|done| (done.phase.as_str(), done.operations))
        .collect();
    assert_eq!(
        counts,
        [("warm-up", 1000), ("search-settle", 999), ("w1", 2001), ("w2", 500)]
    );
    // No operation twice, none left out: the connections and the stream are those of one load.
    let seen = run.seen.lock().unwrap();
    assert!(seen.operations.iter().map(|operation| operation.index).eq(0..4500));
    assert!(
        (run.done[0].first_sent_s - 1.5).abs() < 0.01,
        "{}",
        run.done[0].first_sent_s
    );
    assert!((run.done[2].first_sent_s - run.done[1].first_sent_s - 1.0).abs() < 1e-6);
    assert!(run.done[3].first_sent_s >= run.done[2].last_done_s);
}

#[test]
fn words_that_are_not_possible_end_the_load_and_say_what_is() {
    let phase = |name: &str| phase_word(name, 1000.0, 0.1, 0.0);
    let cases = [
        (vec![phase("w1")], "phase \"w1\" before go"),
        (
            vec![Word::Go { in_s: 0.0 }, Word::Go { in_s: 0.0 }],
            "go was already sent",
        ),
        (vec![Word::Go { in_s: -1.0 }], "0 to 3600"),
        (
            vec![Word::Go { in_s: 0.0 }, phase("search-settle")],
            "a new name other than populate",
        ),
        (
            vec![Word::Go { in_s: 0.0 }, phase("w1"), phase("w1")],
            "a new name other than populate",
        ),
        (
            vec![Word::Go { in_s: 0.0 }, phase_word("w1", 1000.0, -1.0, 0.0)],
            "above 0",
        ),
        (
            vec![
                Word::Go { in_s: 0.0 },
                Word::Phase {
                    name: "w1".to_owned(),
                    schedule: constant(1.0, 17),
                    duration_s: 1.0,
                    settle_s: 0.0,
                    in_s: 0.0,
                },
            ],
            "1 to 16, as in the order",
        ),
    ];
    for (words, message) in cases {
        let (ended, _) = drive_by_words(&order_by_words(), words);
        let error = ended.unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn an_order_with_words_has_no_stop_of_its_own() {
    let mut order = order_by_words();
    order.stop = seconds(1.0);
    let (ended, _) = drive_by_words(&order, vec![]);
    assert!(ended.unwrap_err().contains("which arrive as words"));
}

/// Carries out an order that waits for `go`, with these words.
fn drive_on_go(order: &Order, words: Vec<Word>, stop: bool) -> (Result<(), String>, Run) {
    let hand: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(S)));
    let seen = Arc::new(Mutex::new(Seen::default()));
    let fake = Fake::new(hand, Box::new(after(MS)), &seen);
    let (sender, receiver) = mpsc::channel();
    for word in words {
        sender.send(Ok(word)).unwrap();
    }
    let (mut out, stop, clock) = (Vec::new(), AtomicBool::new(stop), Clock::by_hand(hand));
    let ended = drive::run_on_go(vec![fake], order, &receiver, clock, &stop, &mut out);
    let (intervals, done) = intervals_and_done(&out);
    (ended.map_err(|error| error.to_string()), Run { intervals, done, seen })
}

#[test]
fn an_order_that_waits_for_go_starts_by_it_and_its_measured_phase_by_the_clock() {
    let mut order = Order {
        go: true,
        ..order(constant(100.0, 16), seconds(1.0))
    };
    order.warm_up_s = 1.0;
    let (ended, run) = drive_on_go(&order, vec![Word::Go { in_s: 0.5 }], false);
    assert_eq!(ended, Ok(()));
    assert_eq!(run.done[0].first_sent_s, 1.5);
    assert_eq!(run.done[1].first_sent_s, 2.75);
    let (ended, run) = drive_on_go(&order, Vec::new(), true);
    assert_eq!((ended, run.done.len()), (Ok(()), 0), "stopped before it began");
    let (ended, _) = drive_on_go(&order, vec![Word::Stop {}], false);
    assert!(ended.unwrap_err().contains("accepts no other word"));
    let (ended, _) = drive_on_go(&order, vec![Word::Go { in_s: -1.0 }], false);
    assert!(ended.unwrap_err().contains("word: in_s"));
    order.start_at_s = Some(4.0);
    let (ended, _) = drive_on_go(&order, vec![Word::Go { in_s: 0.0 }], false);
    assert!(ended.unwrap_err().contains("go"));
}
