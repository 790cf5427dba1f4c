//! YCSB over the gateway of etcd, against the null server and a gateway that refuses.
#![allow(clippy::unwrap_used)]

use steelyard_testing::scenarios::{is_answered_by_the_null_server, null_server};
use steelyard_wire::{Etcd, Order, Proportions, Schedule, Stop, Target};

use crate::null::null;
use crate::server::{Server, put, start};
use crate::{drive, refused};

fn order(contacts: &[String], operations: u64) -> Order {
    let mut order: Order = serde_json::from_str(include_str!("../../../schema/etcd-order.example.json")).unwrap();
    order.contacts = contacts.to_vec();
    order.target = Target::Etcd(Etcd::default());
    order.stop = Stop {
        operations: Some(operations),
        ..Stop::default()
    };
    order.schedule = Schedule::Closed { threads: 8 };
    order
}

/// A gateway that answers so to all but `/version`.
fn gateway(status: &'static str, body: &'static str) -> Server {
    start(move |request, out| {
        if request.starts_with("GET /version ") {
            put("200 OK", br#"{"etcdserver":"3.4.23","etcdcluster":"3.4.0"}"#, out);
        } else {
            put(status, body.as_bytes(), out);
        }
        true
    })
}

#[test]
fn every_kind_of_operation_is_answered_by_the_null_server() {
    let order = order(&[null_server(null)], 2_000);
    is_answered_by_the_null_server(order, 8, |order| drive(order, 2));
}

#[test]
fn errors_of_etcd_are_kept_in_its_words() {
    let body = r#"{"error":"etcdserver: request timed out","message":"etcdserver: request timed out","code":14}"#;
    let server = gateway("503 Service Unavailable", body);
    let done = drive(&order(&[server.contact()], 100), 1).done;
    assert_eq!(done.errors_by_kind, [("unavailable".to_owned(), 100)].into());
    assert_eq!(done.error_texts["unavailable"], ["etcdserver: request timed out"]);
}

#[test]
fn records_that_are_not_there_are_not_found() {
    let server = gateway("200 OK", r#"{"header":{"revision":"1"}}"#);
    let mut order = order(&[server.contact()], 100);
    order.work.ycsb_mut().unwrap().proportions = Proportions {
        read: 1.0,
        ..Proportions::default()
    };
    let driven = drive(&order, 1);
    assert_eq!((driven.done.not_found, driven.done.errors), (100, 0));
    assert_eq!(driven.connected.server, "3.4.23");
}

#[test]
fn a_body_that_is_no_json_breaks_the_connection_off() {
    let server = gateway("200 OK", "<html>");
    let done = drive(&order(&[server.contact()], 20), 1).done;
    assert_eq!(done.errors_by_kind, [("connection".to_owned(), 20)].into());
    assert!(
        done.error_texts["connection"][0].ends_with("the body is not one JSON object"),
        "{done:?}"
    );
}

#[test]
fn a_server_of_documents_is_no_etcd() {
    let server = start(|_, out| {
        put("404 Not Found", b"no", out);
        true
    });
    let error = refused(&order(&[server.contact()], 1)).to_string();
    assert!(error.ends_with("is no etcd: 404 Not Found for /version"), "{error}");
}
