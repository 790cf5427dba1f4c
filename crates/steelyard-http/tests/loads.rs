//! Loads of single servers that stall, die, close connections, and answer in other ways.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use steelyard_channel::answering::{self, Answered};
use steelyard_testing::scenarios::paced;
use steelyard_wire::Schedule;

use crate::server::{put, start, start_at};
use crate::{drive, order};

fn abc(_: &str, out: &mut Vec<u8>) -> bool {
    put("200 OK", b"abc", out);
    true
}

/// A server of one thread, which stalls whole at a request. Its contact.
fn stalling_server(at: u64, stall: Duration) -> String {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        answering::serve("127.0.0.1:0".parse().unwrap(), |address| {
            sender.send(address).unwrap();
            let mut requests = 0;
            move |(): &mut (), input: &[u8], out: &mut Vec<u8>| {
                let request = String::from_utf8_lossy(input);
                put("200 OK", if request.starts_with("HEAD ") { b"" } else { b"abc" }, out);
                requests += 1;
                if requests == at {
                    thread::sleep(stall);
                }
                let closes = request.contains("Connection: close");
                Ok(Answered {
                    used: input.len(),
                    closes,
                })
            }
        })
    });
    receiver.recv().unwrap().to_string()
}

/// Operations due during a stall of the server are late by what was left of it, and all are sent.
#[test]
fn a_planted_stall_is_seen_as_the_schedule_says() {
    const STALL_MS: u64 = 600;
    for keep_alive in [true, false] {
        let contact = stalling_server(75, Duration::from_millis(STALL_MS));
        let order = paced(order(&[contact], keep_alive, 3, 0), 250.0, 1.5);
        let driven = drive(&order, 1);
        let done = &driven.done;
        assert_eq!((done.operations, done.errors, done.unsent), (375, 0, 0), "{done:?}");
        for ms in [100, 300, 500] {
            let (late, wanted) = (driven.later_than(ms), (STALL_MS - ms) / 4);
            // A busy machine can only make more of them late.
            assert!(
                (wanted - 12..=wanted + 40).contains(&late),
                "{late} later than {ms} ms, not {wanted}"
            );
        }
    }
}

#[test]
fn a_killed_server_loses_nothing_and_is_found_again() {
    for keep_alive in [true, false] {
        let server = start(abc);
        let (address, contact) = (server.address, server.contact());
        let mut order = paced(order(std::slice::from_ref(&contact), keep_alive, 3, 0), 500.0, 2.0);
        order.timeout_ms = 300;
        let killer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(500));
            drop(server);
            thread::sleep(Duration::from_millis(500));
            start_at(address, abc)
        });
        let driven = drive(&order, 1);
        drop(killer.join().unwrap());
        let done = &driven.done;
        assert!(done.operations > 300 && done.errors > 0, "{done:?}");
        assert_eq!(done.errors_by_kind.keys().collect::<Vec<_>>(), ["connection"]);
        let refused = format!("{contact} refused the connection");
        assert!(done.error_texts["connection"].contains(&refused), "{done:?}");
        assert_eq!(done.reconnections > 0, keep_alive, "{done:?}");
        driven.nothing_is_lost();
    }
}

/// While it is away the second time, what is due waits as it did the first time.
#[test]
fn a_server_that_dies_twice_is_found_again_twice() {
    for keep_alive in [true, false] {
        let server = start(abc);
        let address = server.address;
        let order = paced(order(&[server.contact()], keep_alive, 3, 0), 300.0, 2.0);
        let killer = thread::spawn(move || {
            let mut server = Some(server);
            for _ in 0..2 {
                thread::sleep(Duration::from_millis(300));
                drop(server.take());
                thread::sleep(Duration::from_millis(300));
                server = Some(start_at(address, abc));
            }
            server
        });
        let driven = drive(&order, 1);
        drop(killer.join().unwrap());
        let done = &driven.done;
        // None where nothing was in flight as it died; in between what is due waits.
        assert!(done.errors <= 40 && done.operations >= 560, "{done:?}");
        driven.nothing_is_lost();
    }
}

/// A server may close a kept connection: as it says, or without a word while nothing is in flight.
#[test]
fn connections_that_the_server_closes_between_requests_are_no_errors() {
    for said in [true, false] {
        let server = start(move |_, out| {
            let close = if said { "Connection: close\r\n" } else { "" };
            out.extend_from_slice(format!("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n{close}\r\nabc").as_bytes());
            false
        });
        // Slow enough that the end of the connection comes before the next request.
        let mut order = paced(order(&[server.contact()], true, 3, 0), 25.0, 1.6);
        order.schedule = Schedule::Constant {
            rate_per_s: 25.0,
            in_flight: 1,
        };
        let driven = drive(&order, 1);
        let done = &driven.done;
        assert_eq!((done.operations, done.errors), (40, 0), "{done:?}");
        assert_eq!(done.reconnections >= 39, !said, "{done:?}");
        assert!(server.accepted() > 40);
    }
}

#[test]
fn a_request_whose_connection_is_closed_without_an_answer_is_an_error_and_sent_once() {
    let requests = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&requests);
    let server = start(move |request, out| {
        if seen.fetch_add(1, Ordering::Relaxed) % 10 == 9 {
            return false;
        }
        abc(request, out)
    });
    let done = drive(&order(&[server.contact()], true, 3, 500), 1).done;
    assert_eq!((done.operations, done.errors), (450, 50), "{done:?}");
    let closed = format!("{} closed the connection", server.contact());
    assert_eq!(done.error_texts["connection"], [closed]);
    assert_eq!(requests.load(Ordering::Relaxed), 500);
    assert!(done.reconnections >= 45, "{done:?}");
}

/// The answer to an operation that was given up must not be taken for the next one's.
#[test]
fn an_answer_that_comes_too_late_is_nobodys() {
    let requests = AtomicU64::new(0);
    let server = start(move |request, out| {
        if requests.fetch_add(1, Ordering::Relaxed) == 50 {
            thread::sleep(Duration::from_millis(1200));
            put("404 Not Found", b"late", out);
            return true;
        }
        abc(request, out)
    });
    let mut order = order(&[server.contact()], true, 3, 500);
    order.schedule = Schedule::Closed { threads: 1 };
    // Longer than a busy machine keeps any of the others waiting.
    order.timeout_ms = 400;
    let done = drive(&order, 1).done;
    assert_eq!(
        (done.operations, done.not_found, done.reconnections),
        (499, 0, 1),
        "{done:?}"
    );
    assert_eq!(done.errors_by_kind, [("timeout".to_owned(), 1)].into());
}

#[test]
fn bodies_come_in_chunks_and_until_the_end_of_the_connection() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n";
    let unsized_body = "HTTP/1.1 200 OK\r\n\r\nabc";
    let old = "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    for (answer, goes_on) in [(chunked, true), (unsized_body, false), (old, false)] {
        for keep_alive in [true, false] {
            let server = start(move |_, out| {
                out.extend_from_slice(answer.as_bytes());
                goes_on
            });
            let driven = drive(&order(&[server.contact()], keep_alive, 3, 200), 1);
            assert_eq!(
                (driven.done.operations, driven.done.errors),
                (200, 0),
                "{:?}",
                driven.done
            );
        }
    }
}

#[test]
fn answers_that_are_no_document_are_of_their_kinds() {
    let answers = [
        "404 Not Found",
        "500 Internal Server Error",
        "503 Service Unavailable",
        "429 Slow Down",
        "200 OK",
    ];
    let requests = AtomicU64::new(0);
    let server = start(move |_, out| {
        let number = requests.fetch_add(1, Ordering::Relaxed) as usize;
        put(answers[number % answers.len()], b"abd", out);
        true
    });
    let done = drive(&order(&[server.contact()], true, 3, 500), 1).done;
    assert_eq!(
        (done.operations, done.not_found, done.errors),
        (100, 100, 400),
        "{done:?}"
    );
    let kinds = [
        ("invalid".to_owned(), 100),
        ("overloaded".to_owned(), 200),
        ("server".to_owned(), 100),
    ];
    assert_eq!(done.errors_by_kind, kinds.into());
    assert_eq!(done.error_texts["server"], ["HTTP 500 Internal Server Error"]);
    assert_eq!(done.error_texts["overloaded"].len(), 2);
    assert_eq!(done.error_texts["invalid"], ["GET /3.bin: another byte at 2"]);
}

/// Each request has a connection of its own, which the server closes first.
#[test]
fn a_connection_for_each_request_is_made_and_closed() {
    let server = start(|request, out| {
        assert!(request.contains("Connection: close\r\n"));
        abc(request, out);
        false
    });
    let driven = drive(&order(&[server.contact()], false, 3, 300), 1);
    assert_eq!(
        (driven.done.operations, driven.done.errors),
        (300, 0),
        "{:?}",
        driven.done
    );
    // One more asked whether this is a server of HTTP.
    assert_eq!(server.accepted(), 301);
}
