//! Checks of a whole program, before any part of it is compiled.

use steelyard_wire::program::Program;
use steelyard_wire::{Action, Order};

use crate::OrderError;
use crate::operation::MOST_SHARES;

/// Most kinds of operations, statements, and statements of a batch: their numbers have 16 bits.
const MOST: usize = 65_535;

/// Refuses a program that cannot be carried out as it is.
pub fn check(program: &Program, order: &Order) -> Result<(), OrderError> {
    let ensure = |good: bool, field: &'static str, read: String, allowed: &'static str| {
        if good {
            Ok(())
        } else {
            Err(OrderError::new(field, read, allowed))
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
        "work.records",
        records.to_string(),
        "numbers below 2^62",
    )?;
    let stride = program.populate_stride;
    ensure(stride > 0, "work.populate_stride", stride.to_string(), "at least 1")?;
    let counts = [program.operations.len(), program.statements.len()];
    ensure(
        counts.iter().all(|count| *count < MOST),
        "work",
        format!("{counts:?} operations and statements"),
        "at most 65534 of each",
    )?;
    let fraction = program.validate_fraction;
    ensure(
        (0.0..=1.0).contains(&fraction),
        "work.validate_fraction",
        fraction.to_string(),
        "0 to 1",
    )?;
    if order.action == Action::Populate {
        let steps = program.populate.len();
        return ensure(steps > 0, "work.populate", "no step".to_owned(), "at least one step");
    }
    ensure(
        !program.operations.is_empty(),
        "work.operations",
        "none".to_owned(),
        "at least one",
    )?;
    for operation in &program.operations {
        let name = format!("no step of {}", operation.name);
        ensure(
            !operation.steps.is_empty(),
            "work.operations",
            name,
            "at least one step",
        )?;
    }
    Ok(())
}
