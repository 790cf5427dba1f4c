//! Insert lag: how many operations must lie between an insert and the first request for its key.
//!
//! A request sees only the keys of inserts that are at least this many operations old, because newer ones may still be in
//! flight. The lag is part of the order, or follows from how many operations may be in flight.

use steelyard_wire::{Order, Work};

/// Operations of lag for each other operation in flight. One each would do if all took equally long; in a simulated closed loop
/// of 64 threads with log-normal service times (sigma 1) and YCSB's workload D, 5% of the reads then asked for a key still in
/// flight, and 0.005% with 16.
pub const LAG_PER_OPERATION_IN_FLIGHT: u64 = 16;

/// `LAG_PER_OPERATION_IN_FLIGHT` for each other operation in flight, over all shares. One thread has no lag: it knows that all
/// operations before are done.
pub fn default_insert_lag(order: &Order) -> u64 {
    let in_flight = order
        .measured_schedules()
        .map(|(schedule, _)| schedule.in_flight().1)
        .max();
    (u64::from(in_flight.unwrap_or(1)) * order.share.of).saturating_sub(1) * LAG_PER_OPERATION_IN_FLIGHT
}

/// The order with the insert lag that its own shares want, where it gives none. A share that is divided further, among threads,
/// must keep that lag: the operations must stay the same.
pub fn with_insert_lag(order: &Order) -> Order {
    let mut order = order.clone();
    let default = default_insert_lag(&order);
    let lag = match &mut order.work {
        Work::Ycsb(workload) => &mut workload.insert_lag,
        Work::Program(program) => &mut program.insert_lag,
        Work::Requests(_) => return order,
    };
    lag.get_or_insert(default);
    order
}
