//! The operation stream of an order: one closed type over the kinds of workloads.

use std::sync::Arc;

use steelyard_wire::{Action, Order, Work};

use crate::operation::{Kinds, Operation};
use crate::{OrderError, program, read_back, requests, ycsb};

/// The kinds of an order's operations, by the numbers that its stream uses. Errors: a workload that is not possible.
pub fn kinds(order: &Order) -> Result<Arc<Kinds>, OrderError> {
    Ok(Arc::new(match &order.work {
        Work::Ycsb(_) => ycsb::kinds(),
        Work::Program(program) => program::kinds(program, order.action),
        Work::Requests(_) => requests::kinds(),
    }))
}

/// Puts into `stop.operations` of an order that ends by `stop.keys` how many operations take them. Errors: a workload whose keys are
/// not counted; operations before the measured phase, or phases, which would take keys too.
pub fn settle(order: &mut Order) -> Result<(), OrderError> {
    let Some(keys) = order.stop.keys else {
        return Ok(());
    };
    let alone = order.action == Action::Load && order.warm_up_s == 0.0 && order.phases.is_empty();
    let operations = match &order.work {
        Work::Program(program) if alone && keys > 0 => program::operations_of_keys(order, program)?,
        _ => {
            let allowed = "at least 1, and only for action load of a program without warm_up_s and phases";
            return Err(OrderError::new("stop.keys", keys, allowed));
        }
    };
    order.stop.operations = Some(order.stop.operations.map_or(operations, |most| most.min(operations)));
    Ok(())
}

/// The operations of one share of an order, in index order.
#[derive(Clone, Debug)]
pub enum Stream {
    /// YCSB's core workload.
    Ycsb(Box<ycsb::Stream>),
    /// A program.
    Program(Box<program::Stream>),
    /// Requests for documents.
    Requests(requests::Stream),
    /// Reads of rows that were written.
    ReadBack(read_back::Stream),
}

impl Stream {
    /// The operations of the order's share from `first_index` on. `expected_operations` is how many operations the order asks for
    /// over all shares, as far as that is known: key spaces are sized by it. Errors: a workload that is not possible.
    pub fn from_order(order: &Order, expected_operations: f64, first_index: u64) -> Result<Self, OrderError> {
        Ok(match &order.work {
            Work::Ycsb(workload) => Self::Ycsb(Box::new(ycsb::Stream::from_order(
                order,
                workload,
                expected_operations,
                first_index,
            )?)),
            Work::Program(program) => Self::Program(Box::new(program::Stream::from_order(
                order,
                program,
                expected_operations,
                first_index,
            )?)),
            Work::Requests(requests) => {
                Self::Requests(requests::Stream::new(requests, order.seed, order.share, first_index)?)
            }
        })
    }

    /// The next operation of this share. Never ends: the order's stop does.
    #[allow(clippy::should_implement_trait)] // An Iterator would wrap every operation in an Option that is never None.
    #[inline]
    pub fn next(&mut self) -> Operation {
        match self {
            Self::Ycsb(stream) => stream.next(),
            Self::Program(stream) => stream.next(),
            Self::Requests(stream) => stream.next(),
            Self::ReadBack(stream) => stream.next(),
        }
    }

    /// Whether the key is inserted by the load itself and not by the fill. A read may miss it without a fault of the system: its
    /// insert may have failed, or still be in flight in spite of the insert lag.
    pub fn is_new(&self, key: u64) -> bool {
        match self {
            Self::Ycsb(stream) => stream.is_new(key),
            Self::Program(stream) => stream.is_new(key),
            Self::Requests(_) | Self::ReadBack(_) => false,
        }
    }

    /// The field of the operation's row by which its write is read back; `None`: it writes nothing, or is no workload of YCSB's.
    pub fn written_field(&self, operation: &Operation) -> Option<u32> {
        match self {
            Self::Ycsb(stream) => stream.written_field(operation),
            _ => None,
        }
    }
}
