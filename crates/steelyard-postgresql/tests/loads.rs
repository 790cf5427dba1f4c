//! The whole path, from order to records, over real sockets against servers of a single node.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use steelyard_postgresql::null;
use steelyard_testing::scenarios::{Protocol, Reply, is_answered_by_the_null_server, null_server};
use steelyard_wire::Proportions;

use crate::server::{WELCOME, done, error, start, start_at};
use crate::{drive, order};

const CLIENT: Protocol = Protocol {
    serve: |address, replying| {
        start_at(address, WELCOME, Arc::default(), move |name, out| {
            let reply = replying();
            match reply {
                Reply::Row => done(name, out),
                Reply::NoRow => out.extend_from_slice(b"C\0\0\0\x0dSELECT 0\0"),
                Reply::Close => {}
            }
            reply != Reply::Close
        })
    },
    order,
    drive: |order| drive(order, 1),
};

#[test]
fn every_kind_of_operation_is_answered_by_the_null_server() {
    let null = |address, listening: mpsc::Sender<_>| {
        null::serve(address, Duration::ZERO, |address| listening.send(address).unwrap())
    };
    let mut order = order(&[null_server(null)], 2_000);
    order.connections_per_node = 3;
    order.work.ycsb_mut().unwrap().write_all_fields = false;
    is_answered_by_the_null_server(order.clone(), 6, |order| drive(order, 2));
    // Its scans name the key of what they find, and its reads that of another record.
    let ycsb = order.work.ycsb_mut().unwrap();
    ycsb.validate_fraction = 1.0;
    ycsb.read_all_fields = false;
    ycsb.proportions = Proportions {
        read: 0.5,
        scan: 0.5,
        ..Proportions::default()
    };
    let compared = drive(&order, 1).done;
    assert!((900..1_100).contains(&compared.operations), "{compared:?}");
    assert_eq!(compared.errors_by_kind.keys().collect::<Vec<_>>(), ["invalid"]);
}

#[test]
fn a_planted_stall_is_seen_as_the_schedule_says() {
    CLIENT.sees_a_planted_stall_as_the_schedule_says();
}

#[test]
fn a_killed_server_loses_nothing_and_is_found_again() {
    CLIENT.survives_a_killed_server();
}

#[test]
fn an_answer_that_comes_too_late_is_dropped() {
    CLIENT.drops_an_answer_that_comes_too_late();
}

#[test]
fn an_error_concerns_one_operation_only() {
    let reads = AtomicU64::new(0);
    let server = start(move |name, out| {
        match reads.fetch_add(1, Ordering::Relaxed) % 5 {
            0 => error("40001", out),
            1 => error("53300", out),
            _ => done(name, out),
        }
        true
    });
    let driven = drive(&order(&[server.contact()], 1_000), 1);
    let wanted = [("overloaded".to_owned(), 200), ("server".to_owned(), 200)].into();
    assert_eq!(driven.done.errors_by_kind, wanted);
    assert_eq!(
        driven.done.error_texts["server"],
        ["40001 serialization_failure: made up"]
    );
    assert_eq!(driven.done.reconnections, 0);
    driven.nothing_is_lost();
}

/// An answer is cut off behind each of its bytes in turn; the operations that were in flight end, and no others.
#[test]
fn a_connection_that_is_lost_within_an_answer_ends_what_was_in_flight() {
    const EVERY: u64 = 100;
    let reads = AtomicU64::new(0);
    let server = start(move |name, out| {
        done(name, out);
        let read = reads.fetch_add(1, Ordering::Relaxed);
        let cut = read % EVERY == EVERY - 1;
        if cut {
            out.truncate(out.len() - (read / EVERY) as usize);
        }
        !cut
    });
    let driven = drive(&order(&[server.contact()], 3_000), 1);
    let done = &driven.done;
    assert_eq!(done.operations + done.errors, 3_000, "{done:?}");
    assert!((26..=30).contains(&done.reconnections), "{done:?}");
    assert!((26..=8 * 30).contains(&done.errors), "{done:?}");
    assert_eq!(done.errors_by_kind.keys().collect::<Vec<_>>(), ["connection"]);
    driven.nothing_is_lost();
}

#[test]
fn what_a_server_says_before_it_hangs_up_is_kept() {
    let reads = AtomicU64::new(0);
    let server = start(move |name, out| {
        let goes_on = reads.fetch_add(1, Ordering::Relaxed) != 200;
        if goes_on {
            done(name, out);
        } else {
            error("57P01", out);
        }
        goes_on
    });
    let driven = drive(&order(&[server.contact()], 1_000), 1);
    let texts = &driven.done.error_texts;
    assert_eq!(texts["connection"], ["57P01 admin_shutdown: made up"]);
    driven.nothing_is_lost();
}
