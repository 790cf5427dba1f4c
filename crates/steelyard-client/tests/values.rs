//! Values that are read are compared with those written.
#![allow(clippy::unwrap_used)]

use steelyard_client::blocking_connection::{Access, BlockingConnection};
use steelyard_cql::Consistency;
use steelyard_wire::{Proportions, RequestDistribution};
use steelyard_workload::ycsb::write_key;

use crate::connections::{LIMIT, RECORDS, drive_with, fill_and_load, node, order};

/// Each trial writes with a seed of its own, and all of them know what they read.
#[test]
fn values_that_are_not_as_they_were_written_are_found() {
    let address = node(|_| {});
    let mut order = order(address, |order| {
        let ycsb = order.work.ycsb_mut().unwrap();
        ycsb.validate_fraction = 1.0;
        ycsb.proportions = Proportions {
            read: 0.2,
            update: 0.3,
            insert: 0.1,
            scan: 0.2,
            read_modify_write: 0.2,
        };
    });
    fill_and_load(&order);
    order.seed += 1;
    order.work.ycsb_mut().unwrap().read_all_fields = false;
    let (_, done) = drive_with(&order);
    assert_eq!((done.operations, done.errors), (1_000, 0), "{done:?}");
    let mut connection = BlockingConnection::open(&address.to_string(), &Access::default(), LIMIT).unwrap();
    let mut name = Vec::new();
    write_key(7, order.work.ycsb().unwrap(), &mut name);
    let name = String::from_utf8(name).unwrap();
    let update = format!("UPDATE ycsb.usertable SET field3 = 'x' WHERE y_id = '{name}'");
    connection.query(&update, Consistency::One).unwrap();
    let ycsb = order.work.ycsb_mut().unwrap();
    (ycsb.read_all_fields, ycsb.request_distribution) = (true, RequestDistribution::Sequential);
    ycsb.proportions = Proportions {
        read: 1.0,
        ..Proportions::default()
    };
    order.stop.operations = Some(RECORDS);
    let (_, done) = drive_with(&order);
    assert_eq!((done.operations, done.errors_by_kind["invalid"]), (RECORDS - 1, 1));
}
