//! Integration tests of the driving loop, in one program, so that they are linked once.
#![allow(clippy::unwrap_used)]

mod drive;
mod expected_operations;
mod schedules;
mod words;
mod workers;

use steelyard_wire::{Done, Interval, Record};

/// The records of a load's output.
fn records(out: &[u8]) -> Vec<Record> {
    out.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// The intervals and the ends of phases of a load's output, which has nothing else.
fn intervals_and_done(out: &[u8]) -> (Vec<Interval>, Vec<Done>) {
    let (mut intervals, mut done) = (Vec::new(), Vec::new());
    for record in records(out) {
        match record {
            Record::Interval(interval) => intervals.push(interval),
            Record::Done(end) => done.push(end),
            other => panic!("{other:?}"),
        }
    }
    (intervals, done)
}
