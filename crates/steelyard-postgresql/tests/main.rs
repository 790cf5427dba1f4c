//! Integration tests of the client, in one program, so that they are linked once.
#![allow(clippy::unwrap_used)]

mod bad_servers;
mod exercise;
mod loads;
mod mutations;
mod nodes;
mod server;

use std::sync::atomic::AtomicBool;

use steelyard_load::drive::slots;
use steelyard_postgresql::connect;
use steelyard_protocol::ConnectError;
use steelyard_testing::driven::{self, Driven};
use steelyard_wire::{Order, Postgresql, Proportions, ReadFrom, RequestDistribution, Schedule, Stop, Target};

fn target(read_from: ReadFrom) -> Target {
    Target::Postgresql(Postgresql {
        database: "steelyard".to_owned(),
        user: "steelyard".to_owned(),
        table: "usertable".to_owned(),
        key: "ycsb_key".to_owned(),
        read_from,
    })
}

/// An example's workload with reads only, in a closed loop of eight.
fn order(contacts: &[String], operations: u64) -> Order {
    let mut order: Order = serde_json::from_str(include_str!("../../../schema/resp-order.example.json")).unwrap();
    order.contacts = contacts.to_vec();
    order.target = target(ReadFrom::Primary);
    order.stop = Stop {
        operations: Some(operations),
        ..Stop::default()
    };
    let ycsb = order.work.ycsb_mut().unwrap();
    ycsb.request_distribution = RequestDistribution::Uniform;
    ycsb.write_all_fields = true;
    ycsb.proportions = Proportions {
        read: 1.0,
        ..Proportions::default()
    };
    order.schedule = Schedule::Closed { threads: 8 };
    order
}

fn refused(order: &Order) -> ConnectError {
    let Target::Postgresql(target) = &order.target else {
        panic!()
    };
    connect(order, target, &[1]).err().unwrap()
}

fn drive(order: &Order, workers: u32) -> Driven {
    drive_until(order, workers, &AtomicBool::new(false))
}

fn drive_until(order: &Order, workers: u32, stop: &AtomicBool) -> Driven {
    let Target::Postgresql(target) = &order.target else {
        panic!()
    };
    let connected = connect(order, target, &slots(order, workers).unwrap()).unwrap();
    driven::drive(connected, order, stop)
}
