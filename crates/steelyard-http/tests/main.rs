//! Integration tests of the client, in one program, so that they are linked once.
#![allow(clippy::unwrap_used)]

mod bad_servers;
mod etcd;
mod exercise;
mod loads;
mod mutations;
mod nodes;
mod null;
mod server;

use std::sync::atomic::AtomicBool;

use steelyard_http::connect;
use steelyard_load::drive::slots;
use steelyard_protocol::ConnectError;
use steelyard_testing::driven::{self, Driven};
use steelyard_wire::{Document, Http, Order, Requests, Schedule, Stop, Target, Work};

/// Requests for a document of that length, in a closed loop of eight.
fn order(contacts: &[String], keep_alive: bool, bytes: u64, operations: u64) -> Order {
    let mut order: Order = serde_json::from_str(include_str!("../../../schema/http-order.example.json")).unwrap();
    order.contacts = contacts.to_vec();
    order.target = Target::Http(Http { keep_alive });
    order.work = Work::Requests(Requests {
        documents: vec![document(bytes)],
        validate_fraction: 1.0,
    });
    order.stop = Stop {
        operations: Some(operations),
        ..Stop::default()
    };
    order.schedule = Schedule::Closed { threads: 8 };
    order
}

fn document(bytes: u64) -> Document {
    Document {
        path: format!("/{bytes}.bin"),
        bytes,
        share: 1.0,
    }
}

fn refused(order: &Order) -> ConnectError {
    connect(order, &[1]).err().unwrap()
}

fn drive(order: &Order, workers: u32) -> Driven {
    let connected = connect(order, &slots(order, workers).unwrap()).unwrap();
    driven::drive(connected, order, &AtomicBool::new(false))
}
