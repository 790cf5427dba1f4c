//! Programs: workloads as data, compiled once into something that is cheap to carry out.
//!
//! `Stream` says which operations there are and on which keys; `Requests` says which statements they execute, with which values.
//! Everything is a pure function of seed, index, key and version, so that no two processes need to agree on anything.

mod content;
mod context;
mod cql_type;
mod encode;
mod expect;
mod fixed;
mod maker;
mod numbers;
mod requests;
mod stream;
mod ycsb;

use steelyard_wire::program::{Program, Step};
use steelyard_wire::{Action, Order};

use crate::LoadError;
use crate::operation::{Kinds, MOST_SHARES};

pub use cql_type::{CqlType, Native};
pub(crate) use encode::put_decimal;
pub use maker::{At, Maker};
pub use numbers::Numbers;
pub use requests::{Batch, Request, Requests, Statement};
pub use stream::Stream;

/// What the fill of a program is called in records.
const POPULATE: &str = "populate";
/// Most kinds of operations, statements, and statements of a batch: their numbers have 16 bits.
const MOST: usize = 65_535;

/// The kinds of operations of a program, in its order; the one that fills the table, where that is asked for.
pub(crate) fn kinds(program: &Program, action: Action) -> Result<Kinds, LoadError> {
    let mut kinds = Kinds::default();
    let mut add = |name: &str, steps: &[Step]| {
        let names: Vec<String> = steps.iter().map(step_name).collect();
        kinds.add(name, &names.iter().map(String::as_str).collect::<Vec<_>>(), true);
    };
    match action {
        Action::Populate => add(POPULATE, &program.populate),
        Action::Load => program
            .operations
            .iter()
            .for_each(|operation| add(&operation.name, &operation.steps)),
    }
    Ok(kinds)
}

/// A step is called as its statement, a batch as its statements.
fn step_name(step: &Step) -> String {
    match step {
        Step::Execute { statement } => statement.clone(),
        Step::Batch { statements, .. } => statements.join("+"),
    }
}

/// Refuses a program that cannot be carried out as it is.
fn check(program: &Program, order: &Order) -> Result<(), LoadError> {
    let ensure = |good: bool, field: &'static str, read: String, allowed: &'static str| {
        if good {
            Ok(())
        } else {
            Err(LoadError::new(field, read, allowed))
        }
    };
    let share = order.share;
    let of = (1..=MOST_SHARES).contains(&share.of);
    ensure(of, "share.of", share.of.to_string(), "1 to a million")?;
    let index = share.index.to_string();
    ensure(share.index < share.of, "share.index", index, "0 up to share.of - 1")?;
    let records = program.records;
    ensure(
        records < 1 << 62,
        "workload.records",
        records.to_string(),
        "numbers below 2^62",
    )?;
    let stride = program.populate_stride;
    ensure(stride > 0, "workload.populate_stride", stride.to_string(), "1 and more")?;
    let counts = [program.operations.len(), program.statements.len()];
    ensure(
        counts.iter().all(|count| *count < MOST),
        "workload",
        format!("{counts:?} operations and statements"),
        "65534 of each at most",
    )?;
    let fraction = program.validate_fraction;
    ensure(
        (0.0..=1.0).contains(&fraction),
        "workload.validate_fraction",
        fraction.to_string(),
        "0 to 1",
    )?;
    if order.action == Action::Populate {
        let steps = program.populate.len();
        return ensure(
            steps > 0,
            "workload.populate",
            "no step".to_owned(),
            "one step and more",
        );
    }
    ensure(
        !program.operations.is_empty(),
        "workload.operations",
        "none".to_owned(),
        "one and more",
    )?;
    for operation in &program.operations {
        let name = format!("no step of {}", operation.name);
        ensure(
            !operation.steps.is_empty(),
            "workload.operations",
            name,
            "one step and more",
        )?;
    }
    Ok(())
}
