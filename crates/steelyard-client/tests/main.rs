//! Integration tests of the client, in one program, so that they are linked once.
#![allow(clippy::unwrap_used)]

mod connections;
mod drawn_keys;
mod null;
mod program_values;
mod programs;
mod server;
mod tables;
mod topology;
mod values;

use steelyard_wire::{Done, Record};

/// The last record, which must be the end of a phase.
fn last_done(records: &[u8]) -> Done {
    let last = records
        .split(|byte| *byte == b'\n')
        .rfind(|line| !line.is_empty())
        .unwrap();
    match serde_json::from_slice(last).unwrap() {
        Record::Done(done) => done,
        other => panic!("{other:?}"),
    }
}
