//! Expected operations: what an order's schedules ask for in all, and what YCSB's workload takes from that.
#![allow(clippy::unwrap_used)]

use steelyard_load::schedule::expected_operations;
use steelyard_wire::{Order, Proportions, Schedule, Share, Stop, Ycsb};
use steelyard_workload::insert_lag::LAG_PER_OPERATION_IN_FLIGHT;
use steelyard_workload::ycsb::settled;

fn order() -> Order {
    serde_json::from_str(include_str!("../../../schema/order.example.json")).unwrap()
}

fn ycsb(order: &mut Order) -> &mut Ycsb {
    order.work.ycsb_mut().unwrap()
}

#[test]
fn an_order_settles_what_its_workload_leaves_open() {
    let mut order = order();
    ycsb(&mut order).proportions = Proportions {
        read: 95.0,
        insert: 5.0,
        ..Proportions::default()
    };
    let settle = |order: &Order| {
        let workload = settled(order, order.work.ycsb().unwrap(), expected_operations(order));
        (workload.expected_new_keys, workload.insert_lag)
    };
    order.stop = Stop {
        keys: None,
        operations: Some(10_000),
        duration_s: None,
    };
    assert_eq!(settle(&order), (Some(1000), Some(0)));
    order.schedule = Schedule::Closed { threads: 4 };
    order.share = Share { index: 1, of: 2 };
    assert_eq!(settle(&order), (Some(1000), Some(7 * LAG_PER_OPERATION_IN_FLIGHT)));
    order.stop = Stop {
        keys: None,
        operations: None,
        duration_s: Some(10.0),
    };
    assert_eq!(settle(&order).0, Some(0));
    order.schedule = Schedule::Poisson {
        rate_per_s: 300.0,
        in_flight: 2,
    };
    assert_eq!(settle(&order).0, Some(300));
    (ycsb(&mut order).expected_new_keys, ycsb(&mut order).insert_lag) = (Some(5), Some(6));
    assert_eq!(settle(&order), (Some(5), Some(6)));
}
