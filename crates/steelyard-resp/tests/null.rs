//! The whole path, from order to records, over real sockets against servers of a single node.
#![allow(clippy::unwrap_used)]

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use steelyard_resp::{connect, null};
use steelyard_testing::scenarios::{Protocol, Reply, is_answered_by_the_null_server, null_server};
use steelyard_wire::{Resp, Target};

use crate::server::{greet, start, start_at};
use crate::{drive, order, refused};

const CLIENT: Protocol = Protocol {
    serve: |address, replying| {
        start_at(address, move |parts, out| {
            if greet(parts, out) {
                return true;
            }
            let reply = replying();
            out.extend_from_slice(match reply {
                Reply::Row => b"*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
                Reply::NoRow => b"*0\r\n",
                Reply::Close => b"",
            });
            reply != Reply::Close
        })
    },
    order,
    drive: |order| drive(order, 1),
};

fn null(address: SocketAddr, listening: mpsc::Sender<SocketAddr>) -> io::Result<()> {
    null::serve(address, Duration::ZERO, |address| listening.send(address).unwrap())
}

#[test]
fn every_kind_of_operation_is_answered_by_the_null_server() {
    let mut order = order(&[null_server(null)], 2_000);
    let index = Some("_indices".to_owned());
    order.target = Target::Resp(Resp { index });
    order.connections_per_node = 3;
    is_answered_by_the_null_server(order, 6, |order| drive(order, 2));
}

#[test]
fn a_planted_stall_is_seen_as_the_schedule_says() {
    CLIENT.sees_a_planted_stall_as_the_schedule_says();
}

#[test]
fn a_connection_that_is_lost_ends_what_was_in_flight_and_is_made_again() {
    CLIENT.survives_a_lost_connection();
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
fn errors_of_the_server_are_kept_in_its_words() {
    let server = start(|parts, out| {
        if !greet(parts, out) {
            out.extend_from_slice(b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
        }
        true
    });
    let done = drive(&order(&[server.contact()], 100), 1).done;
    assert_eq!(done.errors_by_kind, [("server".to_owned(), 100)].into());
    assert!(done.error_texts["server"][0].starts_with("WRONGTYPE "), "{done:?}");
}

#[test]
fn what_is_not_possible_is_refused_in_words() {
    let server = start(greet);
    let other = start(greet);
    let contacts = [server.contact()];
    let mut tls = order(&contacts, 1);
    tls.tls = Some(steelyard_wire::Tls::default());
    assert!(refused(&tls).to_string().contains("tls: not possible over resp"));
    let two = order(&[server.contact(), other.contact()], 1);
    assert!(refused(&two).to_string().contains("no member of a cluster"));
    let mut away = order(&["127.0.0.1:1".to_owned()], 1);
    assert_eq!(refused(&away).to_string(), "127.0.0.1:1 refused the connection");
    away.contacts.push("127.0.0.1:2".to_owned());
    away.some_contacts = true;
    assert!(
        refused(&away)
            .to_string()
            .starts_with("no contact answers: 127.0.0.1:1")
    );
    away.contacts[1] = server.contact();
    let (_, connected) = connect(&away, &Resp::default(), &[1]).unwrap();
    assert_eq!((connected.nodes, connected.absent.len()), (contacts.to_vec(), 1));
}
