//! Integration tests of the driving loop, in one program, so that they are linked once.
#![allow(clippy::unwrap_used)]

mod drive;
mod expected_operations;
mod schedules;
mod workers;

use steelyard_wire::Record;

/// The records of a load's output.
fn records(out: &[u8]) -> Vec<Record> {
    out.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}
